// @ts-check
/**
 * The bridge between a widget and its host. One widget works in ChatGPT (`window.openai`) and in
 * MCP Apps hosts (`ui/*` JSON-RPC messages to the parent window).
 *
 *     const app = answerback.connect();
 *     app.onData((data) => { ... });
 *
 * As a script it sets the global `answerback`; a bundler or Node imports it as a module.
 * The types are in bridge.d.ts. The file needs no build step and loads nothing.
 */
(function (root) {
  "use strict";

  /** @typedef {import("./bridge").App} App */
  /** @typedef {import("./bridge").Options} Options */
  /** @typedef {import("./bridge").Refusal} Refusal */
  /** @typedef {import("./bridge").CallResult} CallResult */
  /** @typedef {import("./bridge").Theme} Theme */
  /** @typedef {Record<string, any>} Json */
  /** @typedef {CallResult & {refused: boolean}} Result */

  const PROTOCOL_VERSION = "2026-01-26";
  const MAX_WAITING = 200;
  const METHOD_NOT_FOUND = -32601;

  // Hosts older than the MCP Apps specification use these names.
  /** @type {Record<string, string>} */
  const OLD_REQUESTS = {
    "ui/open-link": "openLink",
    "ui/message": "sendMessage",
    "ui/request-display-mode": "requestDisplayMode",
  };
  /** @type {Record<string, string>} */
  const OLD_NOTIFICATIONS = {
    "ui/notifications/initialized": "notifications/initialized",
    "ui/notifications/size-changed": "notifications/size_changed",
  };

  /** @type {Record<string, [string, string]>} The title and the button of the default prompt. */
  const PROMPTS = {
    LOGIN_REQUIRED: ["Log in to continue", "Log in"],
    INVALID_TOKEN: ["Log in again", "Log in"],
    SUBSCRIPTION_REQUIRED: ["A subscription is needed", "See plans"],
    LINK_REQUIRED: ["Link an account to continue", "Link account"],
    SCOPE_REQUIRED: ["More permission is needed", "Allow access"],
    CANCELLED: ["The call was cancelled", "Open"],
  };

  // ---- Reading results ----

  /** @param {any} value @returns {value is Json} */
  function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }

  /** @param {any} value */
  function isBlocks(value) {
    return Array.isArray(value) && value.every((block) => typeof block?.type === "string");
  }

  /** @param {any} value @returns {value is Json} */
  function isToolResult(value) {
    if (!isObject(value)) return false;
    if (isBlocks(value.content) || isObject(value._meta)) return true;
    return "structuredContent" in value || "isError" in value;
  }

  /** @param {string} text Returns its object or array if it is JSON, else undefined. */
  function parseJson(text) {
    if (!/^\s*[[{]/.test(text)) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  /**
   * Hosts pass a full result, its blocks, its data, or its text.
   *
   * @param {any} value
   * @returns {Json}
   */
  function toToolResult(value) {
    if (isToolResult(value)) return value;
    if (typeof value === "string") {
      const parsed = parseJson(value);
      return isToolResult(parsed) ? parsed : { content: [{ type: "text", text: value }] };
    }
    if (Array.isArray(value) && value.length > 0 && isBlocks(value)) return { content: value };
    return value === null || value === undefined ? {} : { structuredContent: value };
  }

  /** @param {string[]} texts The data in the text, for hosts that drop `structuredContent`. */
  function dataInText(texts) {
    for (const text of [...texts, texts.join("")]) {
      const parsed = parseJson(text);
      if (parsed !== undefined) return isToolResult(parsed) ? readResult(parsed).data : parsed;
    }
    return null;
  }

  /** @param {any} data @param {any} added The name of a member that is only for models. */
  function withoutAdded(data, added) {
    if (!isObject(data) || typeof added !== "string") return data;
    return Object.fromEntries(Object.entries(data).filter(([name]) => name !== added));
  }

  /** @param {any} value @returns {Result} */
  function readResult(value) {
    const result = toToolResult(value);
    const blocks = Array.isArray(result.content) ? result.content : [];
    const texts = blocks
      .filter((block) => block?.type === "text" && typeof block.text === "string")
      .filter((block) => block._meta?.["answerback/added"] !== true)
      .map((block) => block.text);
    const text = texts.join("\n");
    const meta = isObject(result._meta) ? result._meta : {};
    const refusal = meta["answerback/refusal"];
    const refused = isObject(refusal);
    const error = refused ? toRefusal(refusal, text) : result.isError ? toError(meta, text) : null;
    const sent = withoutAdded(result.structuredContent, meta["answerback/added"]);
    const data = sent ?? (error ? null : dataInText(texts));
    return { data, text, meta, error, refused };
  }

  /** @param {Json} given @param {string} text @returns {Refusal} */
  function toRefusal(given, text) {
    const code = typeof given.code === "string" ? given.code : "REFUSED";
    const message = typeof given.message === "string" ? given.message : text || code;
    return { ...given, code, message };
  }

  /** @param {Json} meta @param {string} text @returns {Refusal} */
  function toError(meta, text) {
    const known = meta["answerback/error"];
    const code = typeof known?.code === "string" ? known.code : "TOOL_EXECUTION_ERROR";
    return { code, message: text || "The tool failed." };
  }

  /** @param {string} code @param {string} message @returns {Result} */
  function failed(code, message) {
    return { data: null, text: "", meta: {}, error: { code, message }, refused: false };
  }

  /** @param {any} url */
  function isWebLink(url) {
    try {
      return ["https:", "http:"].includes(new URL(url).protocol);
    } catch {
      return false;
    }
  }

  // ---- The default prompt ----

  /**
   * @param {string} tag
   * @param {string} text
   * @param {Record<string, string>} style
   */
  function element(tag, text, style) {
    const made = document.createElement(tag);
    made.textContent = text;
    // Set one by one, which even a policy without 'unsafe-inline' for styles allows.
    for (const [name, value] of Object.entries(style)) made.style.setProperty(name, value);
    return made;
  }

  /** @param {string} text Server messages begin in lower case and have no full stop. */
  function sentence(text) {
    const end = /[A-Za-z0-9'")]$/.test(text) ? "." : "";
    return text.slice(0, 1).toUpperCase() + text.slice(1) + end;
  }

  /** @param {string} title @param {Refusal} refusal */
  function promptBox(title, refusal) {
    const box = element("section", "", {
      font: "14px/1.5 var(--font-sans, system-ui, sans-serif)",
      color: "var(--color-text-primary, CanvasText)",
      background: "var(--color-background-primary, Canvas)",
      border: "1px solid var(--color-border-primary, GrayText)",
      "border-radius": "var(--border-radius-md, 8px)",
      padding: "16px",
      margin: "8px",
    });
    box.setAttribute("role", "alert");
    box.dataset.answerback = "refusal";
    box.dataset.code = refusal.code;
    box.append(element("h2", title, { font: "inherit", "font-weight": "600", margin: "0 0 4px" }));
    // The button replaces the link at the end of a message.
    const ending = `: ${refusal.url}`;
    const message = refusal.message;
    const shown = message.endsWith(ending) ? message.slice(0, -ending.length) : message;
    box.append(element("p", sentence(shown), { margin: "0" }));
    if (typeof refusal.hint === "string" && refusal.hint !== refusal.message) {
      const color = "var(--color-text-secondary, inherit)";
      box.append(element("p", sentence(refusal.hint), { margin: "4px 0 0", color }));
    }
    return box;
  }

  /** @param {string} label @param {() => void} act */
  function promptButton(label, act) {
    const button = element("button", label, {
      font: "inherit",
      "font-weight": "600",
      color: "var(--color-text-inverse, Canvas)",
      background: "var(--color-background-inverse, CanvasText)",
      border: "0",
      "border-radius": "var(--border-radius-sm, 6px)",
      padding: "8px 16px",
      margin: "12px 8px 0 0",
      cursor: "pointer",
    });
    button.setAttribute("type", "button");
    button.addEventListener("click", act);
    return button;
  }

  /**
   * @param {HTMLElement} box
   * @param {string} url
   * @param {(url: string) => Promise<void>} openLink
   * @param {HTMLElement | undefined} again The button shown afterwards.
   */
  async function follow(box, url, openLink, again) {
    if (again) box.append(again);
    try {
      await openLink(url);
    } catch {
      // The user can still copy the address.
      if (!box.querySelector("code")) box.append(element("code", url, { display: "block" }));
    }
  }

  class Prompt {
    constructor() {
      /** @type {HTMLElement | null} */
      this.box = null;
      this.turn = 0;
      /** @type {[HTMLElement, string][]} */
      this.covered = [];
    }

    /**
     * @param {Refusal} refusal
     * @param {(url: string) => Promise<void>} openLink
     * @param {{cover: boolean, retry?: () => void}} options Cover: the page has no data to show.
     */
    show(refusal, openLink, { cover, retry }) {
      this.hide();
      const turn = this.turn;
      // Elements that do not exist yet cannot be hidden.
      whenParsed(() => {
        if (turn === this.turn) this.draw(refusal, openLink, { cover, retry });
      });
    }

    /**
     * @param {Refusal} refusal
     * @param {(url: string) => Promise<void>} openLink
     * @param {{cover: boolean, retry?: () => void}} options
     */
    draw(refusal, openLink, { cover, retry }) {
      const [title, label] = PROMPTS[refusal.code] ?? ["This did not work", "Open"];
      const box = promptBox(title, refusal);
      const url = refusal.url;
      if (typeof url === "string" && isWebLink(url)) {
        const again = retry && promptButton("Try again", retry);
        box.append(promptButton(label, () => follow(box, url, openLink, again)));
      }
      if (cover) this.coverPage();
      document.body.prepend(box);
      this.box = box;
    }

    coverPage() {
      for (const child of document.body.children) {
        if (!(child instanceof HTMLElement)) continue;
        this.covered.push([child, child.style.display]);
        child.style.display = "none";
      }
    }

    hide() {
      this.turn += 1;
      this.box?.remove();
      this.box = null;
      for (const [child, display] of this.covered) child.style.display = display;
      this.covered = [];
    }
  }

  // ---- Messages to and from an MCP Apps host ----

  class HostError extends Error {
    /** @param {string} code @param {string} message */
    constructor(code, message) {
      super(message);
      this.name = "HostError";
      this.code = code;
    }
  }

  /** JSON-RPC with the parent window. It listens from the start and queues incoming messages. */
  class Channel {
    constructor() {
      this.origin = "";
      this.lastId = 0;
      /** @type {Map<number, (message: Json) => void>} */
      this.pending = new Map();
      /** @type {{message: Json, origin: string}[] | null} */
      this.waiting = [];
      /** @type {(message: Json) => void} */
      this.receive = () => {};
      window.addEventListener("message", (event) => this.accept(event));
    }

    /** @param {MessageEvent} event */
    accept(event) {
      const message = event.data;
      if (event.source !== window.parent || window.parent === window) return;
      if (!isObject(message) || message.jsonrpc !== "2.0") return;
      if (this.origin && event.origin !== this.origin) return;
      const origin = event.origin;
      if (!this.waiting) this.dispatch(message, origin);
      else if (this.waiting.length < MAX_WAITING) this.waiting.push({ message, origin });
    }

    /** @param {(message: Json) => void} receive Receives all but awaited replies. */
    open(receive) {
      this.receive = receive;
      const waiting = this.waiting;
      this.waiting = null;
      waiting?.forEach(({ message, origin }) => this.dispatch(message, origin));
    }

    /** @param {Json} message @param {string} origin */
    dispatch(message, origin) {
      if (this.origin && origin !== this.origin) return;
      const isReply = message.method === undefined && ("result" in message || "error" in message);
      if (isReply) this.origin ||= origin;
      const settle = isReply ? this.pending.get(Number(message.id)) : undefined;
      (settle ?? this.receive)(message);
    }

    /** @param {Json} message */
    post(message) {
      const target = this.origin && this.origin !== "null" ? this.origin : "*";
      window.parent.postMessage({ jsonrpc: "2.0", ...message }, target);
    }

    /**
     * @param {string} method
     * @param {Json} params
     * @param {number} timeout
     * @returns {Promise<any>}
     */
    async request(method, params, timeout) {
      const id = ++this.lastId;
      /** @type {ReturnType<typeof setTimeout> | undefined} */
      let timer;
      const reply = new Promise((resolve, reject) => {
        this.pending.set(id, resolve);
        const late = `the host did not answer ${method} within ${timeout / 1000} seconds`;
        timer = setTimeout(() => reject(new HostError("TIMEOUT", late)), timeout);
      });
      this.post({ id, method, params });
      try {
        const message = await reply;
        if (!message.error) return message.result;
        if (message.error.code === METHOD_NOT_FOUND && method in OLD_REQUESTS) {
          return await this.request(OLD_REQUESTS[method], params, timeout);
        }
        const code = message.error.data?.code ?? "HOST_ERROR";
        throw new HostError(code, `the host refused ${method}: ${message.error.message}`);
      } finally {
        clearTimeout(timer);
        this.pending.delete(id);
      }
    }
  }

  /** A host that speaks `ui/*` messages. */
  class McpAppsHost {
    /** @param {Channel} channel @param {Connection} app */
    constructor(channel, app) {
      this.channel = channel;
      this.app = app;
      this.isOld = false;
      this.isAnswered = false;
      /** @type {() => void} */
      this.markReady = () => {};
      /** @type {Promise<void>} */
      this.ready = new Promise((resolve) => {
        this.markReady = resolve;
      });
    }

    /** Sends `ui/initialize`; the channel is already open. */
    start() {
      const { name, version, displayModes } = this.app.options;
      const params = {
        protocolVersion: PROTOCOL_VERSION,
        appInfo: { name: name ?? (document.title || "widget"), version: version ?? "1" },
        appCapabilities: displayModes ? { availableDisplayModes: displayModes } : {},
      };
      const request = { id: ++this.channel.lastId, method: "ui/initialize", params };
      this.channel.pending.set(request.id, (reply) => this.initialized(reply));
      this.channel.post(request);
      setTimeout(() => {
        if (this.isAnswered) return;
        // The host missed the request, or never answers. It may hide the frame until it gets this.
        this.channel.post(request);
        this.finish();
      }, this.app.options.handshakeTimeout ?? 2000);
    }

    /** @param {Json} reply */
    initialized(reply) {
      if (this.isAnswered) return;
      this.isAnswered = true;
      const result = isObject(reply.result) ? reply.result : {};
      this.isOld = !isObject(result.hostInfo) && !/^\d{4}-/.test(result.protocolVersion ?? "");
      if (isObject(result.hostContext)) this.app.setContext(result.hostContext);
      this.finish();
    }

    finish() {
      this.notify("ui/notifications/initialized", {});
      this.markReady();
    }

    /** @param {Json} message A request, a notification, or a reply that nothing is waiting for. */
    receive(message) {
      if (message.method === undefined) {
        // Some hosts answer with their own id.
        if (!this.isAnswered && "result" in message) this.initialized(message);
      } else if (message.id !== undefined) {
        this.answer(message);
      } else {
        this.notified(message.method, isObject(message.params) ? message.params : {});
      }
    }

    /** @param {Json} message */
    answer({ id, method }) {
      if (method === "ui/resource-teardown") this.app.stop();
      const known = method === "ui/resource-teardown" || method === "ping";
      const error = { code: METHOD_NOT_FOUND, message: `unknown method ${method}` };
      this.channel.post(known ? { id, result: {} } : { id, error });
    }

    /** @param {string} method @param {Json} params */
    notified(method, params) {
      switch (method) {
        case "ui/notifications/tool-input":
          return this.app.setInput(params.arguments);
        case "notifications/tools/call/input":
          return this.app.setInput(params.input);
        case "ui/notifications/tool-result":
          return this.app.deliver(readResult(params));
        case "notifications/tools/call/result":
          return this.app.deliver(readResult(params.result));
        case "ui/notifications/tool-cancelled":
          return this.app.deliver(failed("CANCELLED", params.reason || "The call was cancelled."));
        case "ui/notifications/host-context-changed":
        case "notifications/host_context/changed":
          return this.app.setContext(params);
      }
    }

    /** @param {string} method @param {Json} params */
    notify(method, params) {
      this.channel.post({ method, params });
      if (this.isOld) this.channel.post({ method: OLD_NOTIFICATIONS[method], params });
    }

    /** @param {string} method @param {Json} params */
    async request(method, params) {
      await this.ready;
      return this.channel.request(method, params, this.app.options.timeout ?? 60000);
    }

    /** @param {string} name @param {Json} args */
    callTool(name, args) {
      return this.request("tools/call", { name, arguments: args });
    }

    /** @param {string} url */
    async openLink(url) {
      const result = await this.request("ui/open-link", { url });
      if (result?.isError) throw new HostError("HOST_ERROR", `the host did not open ${url}`);
    }

    /** @param {string} text */
    async sendMessage(text) {
      const content = [{ type: "text", text }];
      const result = await this.request("ui/message", { role: "user", content });
      if (result?.isError) throw new HostError("HOST_ERROR", "the host did not accept the message");
    }

    /** @param {string} mode */
    async requestDisplayMode(mode) {
      return (await this.request("ui/request-display-mode", { mode }))?.mode ?? mode;
    }

    /** @param {number} width @param {number} height */
    async reportSize(width, height) {
      await this.ready;
      this.notify("ui/notifications/size-changed", { width, height });
    }
  }

  /** ChatGPT: everything is in `window.openai`, and an event says what has changed. */
  class ChatGptHost {
    /** @param {Connection} app */
    constructor(app) {
      this.app = app;
      this.ready = Promise.resolve();
      this.seen = "";
    }

    /** @param {Json} [changed] */
    update(changed) {
      const globals = { ...readGlobals(), ...changed };
      if (isObject(globals.toolInput)) this.app.setInput(globals.toolInput);
      this.app.setContext({ theme: globals.theme, displayMode: globals.displayMode });
      const { toolOutput: output, toolResponseMetadata: metadata } = globals;
      const whole = metadata?.mcp_tool_result ?? metadata?.call_tool_result;
      const refused = isObject(metadata?.["answerback/refusal"]);
      if ((output === null || output === undefined) && !isToolResult(whole) && !refused) return;
      const seen = JSON.stringify([output, metadata]);
      if (seen === this.seen) return;
      this.seen = seen;
      this.app.deliver(readResult(this.combine(output, metadata, whole)));
    }

    /** @param {any} output @param {any} metadata @param {any} whole @returns {Json} */
    combine(output, metadata, whole) {
      const result = { ...toToolResult(output) };
      const from = isToolResult(whole) ? whole : {};
      const meta = { ...(isObject(metadata) ? metadata : {}), ...from._meta, ...result._meta };
      return { ...from, ...result, _meta: meta };
    }

    /** @param {string} name */
    method(name) {
      const found = root.openai?.[name];
      if (typeof found === "function") return found.bind(root.openai);
      throw new HostError("HOST_ERROR", `the host has no window.openai.${name}`);
    }

    /** @param {string} name @param {Json} args */
    callTool(name, args) {
      return this.app.inTime(`the tool ${name}`, this.method("callTool")(name, args));
    }

    /** @param {string} url */
    async openLink(url) {
      await this.method("openExternal")({ href: url });
    }

    /** @param {string} text */
    async sendMessage(text) {
      await this.method("sendFollowUpMessage")({ prompt: text });
    }

    /** @param {string} mode */
    async requestDisplayMode(mode) {
      return (await this.method("requestDisplayMode")({ mode }))?.mode ?? mode;
    }

    /** @param {number} _width @param {number} height */
    reportSize(_width, height) {
      root.openai?.notifyIntrinsicHeight?.(height);
    }
  }

  /** A page opened on its own, outside any host. */
  class NoHost {
    constructor() {
      this.ready = Promise.resolve();
    }

    /** @returns {Promise<any>} */
    async callTool() {
      throw new HostError("NO_HOST", "the widget is not in a host");
    }

    /** @param {string} url */
    async openLink(url) {
      window.open(url, "_blank", "noopener");
    }

    async sendMessage() {
      throw new HostError("NO_HOST", "the widget is not in a host");
    }

    /** @param {string} _mode */
    async requestDisplayMode(_mode) {
      return "inline";
    }

    reportSize() {}
  }

  /** @returns {Json} A copy of `window.openai`, whose members may be getters. */
  function readGlobals() {
    const openai = root.openai ?? {};
    const { toolInput, toolOutput, toolResponseMetadata, theme, displayMode } = openai;
    return { toolInput, toolOutput, toolResponseMetadata, theme, displayMode };
  }

  // ---- The object that authors use ----

  /** @implements {App} */
  class Connection {
    /** @param {Channel} channel @param {Options} options */
    constructor(channel, options) {
      this.options = options;
      this.input = null;
      /** @type {Theme} */
      this.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      /** @type {Json} */
      this.context = {};
      this._state = null;
      /** @type {Result | null} */
      this._last = null;
      /** @type {Result | null} */
      this._published = null;
      /** @type {Set<Function>} */
      this._onData = new Set();
      /** @type {Set<Function>} */
      this._onRefused = new Set();
      /** @type {Set<Function>} */
      this._onTheme = new Set();
      this._prompt = new Prompt();
      /** @type {ResizeObserver | null} */
      this._observer = null;
      this._size = "";
      /** @type {"chatgpt" | "mcp-apps" | "none"} */
      this.host = "none";
      /** @type {McpAppsHost | ChatGptHost | NoHost} */
      this._host = new NoHost();
      this._begin(channel);
    }

    /** @param {Channel} channel Adds all listeners before sending the first message. */
    _begin(channel) {
      const apps = new McpAppsHost(channel, this);
      window.addEventListener("openai:set_globals", (event) => this._openAi(event));
      if (isObject(root.openai)) this._openAi(null);
      else if (window.parent !== window) {
        this.host = "mcp-apps";
        this._host = apps;
      }
      channel.open((message) => apps.receive(message));
      if (this.host === "mcp-apps") apps.start();
      if (this.options.autoResize !== false) this._watchSize();
    }

    /** @param {Event | null} event */
    _openAi(event) {
      if (!(this._host instanceof ChatGptHost)) {
        this.host = "chatgpt";
        this._host = new ChatGptHost(this);
      }
      const globals = /** @type {any} */ (event)?.detail?.globals;
      this._host.update(isObject(globals) ? globals : {});
    }

    get ready() {
      return this._host.ready;
    }

    // ---- Data and refusals ----

    /** @param {any} input */
    setInput(input) {
      this.input = isObject(input) ? input : null;
    }

    /** @param {Result} result */
    deliver(result) {
      this._last = result;
      // Deferred, so that listeners added by the same script are in place.
      queueMicrotask(() => {
        if (this._last === result) this._publish(result);
      });
    }

    /** @param {(result: Result) => void} act Receives the last result, if other listeners have. */
    _repeat(act) {
      const last = this._last;
      if (last !== this._published) return;
      queueMicrotask(() => {
        if (last && last === this._last) act(last);
      });
    }

    /** @param {Result} result */
    _publish(result) {
      this._published = result;
      if (result.error) return this._refuse(result.error, true);
      this._prompt.hide();
      for (const listener of this._onData) this._tell(listener, result);
    }

    /** @param {Function} listener @param {Result} result */
    _tell(listener, { data, text, meta }) {
      safely(() => listener(data, { meta, text, input: this.input }));
    }

    /** @param {Refusal} refusal @param {boolean} cover */
    _refuse(refusal, cover) {
      for (const listener of this._onRefused) safely(() => listener(refusal));
      if (this._onRefused.size === 0 && this.options.prompt !== false) {
        const name = cover ? this.context.toolInfo?.tool?.name : undefined;
        const retry = name ? () => void this._retry(name) : undefined;
        this._draw(refusal, { cover, retry });
      }
    }

    /** @param {Refusal} refusal @param {{cover: boolean, retry?: () => void}} options */
    _draw(refusal, options) {
      this._prompt.show(refusal, (url) => this.openLink(url), options);
    }

    /** @param {string} name The refused call did not run, so it can be retried. */
    async _retry(name) {
      this.deliver(await this._run(name, this.input ?? {}));
    }

    /** @param {Function} listener */
    onData(listener) {
      this._onData.add(listener);
      this._repeat((last) => {
        if (!last.error) this._tell(listener, last);
      });
      return () => void this._onData.delete(listener);
    }

    /** @param {(refusal: Refusal) => void} listener Replaces the default prompt. */
    onRefused(listener) {
      this._onRefused.add(listener);
      this._prompt.hide();
      this._repeat(({ error }) => {
        if (error) safely(() => listener(error));
      });
      return () => void this._onRefused.delete(listener);
    }

    /** @param {Refusal} refusal */
    showRefusal(refusal) {
      this._draw(refusal, { cover: false });
    }

    // ---- Requests to the host ----

    /** @param {string} name @param {Json} [args] @returns {Promise<CallResult>} */
    async call(name, args) {
      const result = await this._run(name, args ?? {});
      if (result.error && result.refused) this._refuse(result.error, false);
      const { data, text, meta, error } = result;
      return { data, text, meta, error };
    }

    /** @param {string} name @param {Json} args @returns {Promise<Result>} */
    async _run(name, args) {
      try {
        return readResult(await this._host.callTool(name, args));
      } catch (error) {
        return failed(errorCode(error), errorText(error));
      }
    }

    /** @param {string} what @param {Promise<any>} answer @returns {Promise<any>} */
    inTime(what, answer) {
      const timeout = this.options.timeout ?? 60000;
      const late = `the host did not answer ${what} within ${timeout / 1000} seconds`;
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new HostError("TIMEOUT", late)), timeout);
        Promise.resolve(answer).then(resolve, reject).finally(() => clearTimeout(timer));
      });
    }

    /** @param {string} url */
    async openLink(url) {
      if (!isWebLink(url)) {
        throw new HostError("BAD_LINK", `${url} is not an http or https address`);
      }
      await this._host.openLink(url);
    }

    /** @param {string} text */
    async sendMessage(text) {
      await this._host.sendMessage(text);
    }

    /** @param {"inline" | "fullscreen" | "pip"} mode */
    async requestDisplayMode(mode) {
      return await this._host.requestDisplayMode(mode);
    }

    // ---- State, theme and size ----

    get state() {
      return this.host === "chatgpt" ? root.openai?.widgetState ?? this._state : this._state;
    }

    /** @param {any} state */
    setState(state) {
      this._state = state;
      if (this.host === "chatgpt") root.openai?.setWidgetState?.(state);
    }

    /** @param {Json} changed */
    setContext(changed) {
      this.context = { ...this.context, ...changed };
      const page = document.documentElement;
      const variables = isObject(changed.styles?.variables) ? changed.styles.variables : {};
      for (const [name, value] of Object.entries(variables)) {
        if (name.startsWith("--") && typeof value === "string") page.style.setProperty(name, value);
      }
      if (changed.theme !== "light" && changed.theme !== "dark") return;
      const isNew = changed.theme !== this.theme;
      this.theme = changed.theme;
      page.dataset.theme = this.theme;
      page.style.colorScheme = this.theme;
      if (isNew) for (const listener of this._onTheme) safely(() => listener(this.theme));
    }

    /** @param {(theme: Theme) => void} listener Called immediately, and on each change. */
    onTheme(listener) {
      this._onTheme.add(listener);
      safely(() => listener(this.theme));
      return () => void this._onTheme.delete(listener);
    }

    _watchSize() {
      if (typeof ResizeObserver === "undefined") return;
      this._observer = new ResizeObserver(() => {
        const box = document.documentElement.getBoundingClientRect();
        const [width, height] = [Math.ceil(box.width), Math.ceil(box.height)];
        if (this._size === `${width}x${height}`) return;
        this._size = `${width}x${height}`;
        this._host.reportSize(width, height);
      });
      this._observer.observe(document.documentElement);
    }

    stop() {
      this._observer?.disconnect();
    }
  }

  /** @param {() => void} act A listener that throws must not keep the result from the others. */
  function safely(act) {
    try {
      act();
    } catch (error) {
      console.error(error);
    }
  }

  /** @param {() => void} act */
  function whenParsed(act) {
    if (document.readyState !== "loading") act();
    else document.addEventListener("DOMContentLoaded", act, { once: true });
  }

  /**
   * Lets forms work in a sandbox without `allow-forms`, where browsers fire no submit event.
   * @param {MouseEvent} click
   */
  function submitForm(click) {
    const target = click.target instanceof Element ? click.target : null;
    const button = target?.closest("button, input");
    if (!(button instanceof HTMLButtonElement || button instanceof HTMLInputElement)) return;
    const form = button.form;
    if (!form || !["submit", "image"].includes(button.type)) return;
    let isSubmitted = false;
    const note = () => (isSubmitted = true);
    form.addEventListener("submit", note, { capture: true, once: true });
    // The browser fires the event right after the click listeners.
    setTimeout(() => {
      form.removeEventListener("submit", note, true);
      if (isSubmitted || click.defaultPrevented) return;
      if (!(form.noValidate || button.formNoValidate || form.reportValidity())) return;
      form.dispatchEvent(
        new SubmitEvent("submit", { bubbles: true, cancelable: true, submitter: button }),
      );
    });
  }

  /** @param {any} error */
  function errorCode(error) {
    return typeof error?.code === "string" ? error.code : "HOST_ERROR";
  }

  /** @param {any} error */
  function errorText(error) {
    return typeof error?.message === "string" ? error.message : String(error);
  }

  // A result may arrive before the author's code runs, so the channel listens from here on.
  const channel = typeof window === "undefined" ? null : new Channel();
  if (channel) window.addEventListener("click", submitForm, true);
  /** @type {Connection | null} */
  let connection = null;

  /** @param {Options} [options] @returns {App} */
  function connect(options) {
    if (!channel) throw new Error("answerback.connect needs a browser window");
    connection ??= new Connection(channel, options ?? {});
    return connection;
  }

  root.answerback = { connect };
  if (typeof module === "object" && module.exports) module.exports = root.answerback;
})(/** @type {any} */ (globalThis));
