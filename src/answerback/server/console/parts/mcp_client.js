// An MCP client for the browser, over Streamable HTTP, in both eras.

const STATEFUL = "2025-11-25";
const STATELESS = "2026-07-28";
const CLIENT_INFO = { name: "answerback-console", version: "1" };
const META = "io.modelcontextprotocol/";
const CLIENT_CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  extensions: {
    [META + "ui"]: { mimeTypes: ["text/html;profile=mcp-app"] },
    [META + "tasks"]: {},
  },
};
const NAMED = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};
const ENTRY_KEYS = { resources: "uri", resourceTemplates: "uriTemplate", tasks: "taskId" };
const ENTRY_TEXTS = ["name", "title", "description"];
const URL_ELICITATION_REQUIRED = -32042;
const WITHOUT_TASKS = {
  ...CLIENT_CAPABILITIES,
  extensions: { [META + "ui"]: CLIENT_CAPABILITIES.extensions[META + "ui"] },
};
const MAX_ROUNDS = 10;

class RpcError extends Error {
  constructor(error, status, challenge) {
    super(error.message || "The server sent an error without a message");
    this.code = error.code;
    this.data = error.data;
    this.status = status;
    this.challenge = challenge; // The WWW-Authenticate header.
  }
}

class McpClient {
  // `ask(method, params, options)` answers the server's questions; `notify(message, place)` receives its
  // notifications. A request's options are: signal, progress(params), place (where its questions and
  // messages are shown) and task (whether the server may turn a call into a task).
  constructor({ url, version, headers, ask, notify }) {
    this.url = url;
    this.version = version;
    this.headers = headers;
    this.ask = ask;
    this.notify = notify;
    this.session = null;
    this.capabilities = {};
    this.info = null;
    this.instructions = "";
    this.nextId = 1;
    this.odd = {}; // What is wrong with each of the server's lists, by method.
    this.connecting = null;
  }

  get stateless() {
    return this.version === STATELESS;
  }

  // Opens the connection, once.
  connect(signal) {
    this.connecting ??= this.open(signal).catch((error) => {
      this.connecting = null;
      throw error;
    });
    return this.connecting;
  }

  async open(signal) {
    if (this.stateless) {
      const { result } = await this.exchange("server/discover", {}, { signal });
      this.capabilities = result.capabilities || {};
      this.info = (result._meta || {})[META + "serverInfo"] || null;
      this.instructions = result.instructions || "";
      return;
    }
    const { result } = await this.exchange("initialize", {
      protocolVersion: this.version,
      capabilities: CLIENT_CAPABILITIES,
      clientInfo: CLIENT_INFO,
    }, { signal });
    this.version = result.protocolVersion;
    this.capabilities = result.capabilities || {};
    this.info = result.serverInfo;
    this.instructions = result.instructions || "";
    await this.post({ jsonrpc: "2.0", method: "notifications/initialized" });
    // Without a level, a server sends no log messages.
    if (this.capabilities.logging) {
      await this.exchange("logging/setLevel", { level: "debug" }).catch(() => {});
    }
  }

  // Sends a request; returns { result, response, status, ms }. Throws RpcError.
  // A restarted server does not know the session, so a new one is opened.
  async request(method, params = {}, options = {}) {
    await this.connect();
    try {
      return await this.requestWithAnswers(method, params, options);
    } catch (error) {
      if (error.status !== 404 || !this.session) throw error;
      this.session = null;
      this.connecting = null;
      await this.connect();
      return this.requestWithAnswers(method, params, options);
    }
  }

  // In the stateless era, it answers the server's questions and sends the request again.
  async requestWithAnswers(method, params, options) {
    const began = performance.now();
    const visited = new Set();
    let sent = params;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      let reply;
      try {
        reply = await this.exchange(method, sent, options);
      } catch (error) {
        if (await this.visitPages(error, visited, options)) continue;
        throw error;
      }
      reply.ms = performance.now() - began;
      const { result } = reply;
      if (result.resultType !== "input_required") return reply;
      const responses = {};
      for (const [key, question] of Object.entries(result.inputRequests || {})) {
        responses[key] = await this.ask(question.method, question.params, options);
      }
      sent = { ...params, inputResponses: responses };
      if (result.requestState !== undefined) sent.requestState = result.requestState;
    }
    throw new Error("The server asked more than ten times");
  }

  // In 2025-11-25 a server may refuse a request until its user has visited a page.
  async visitPages(error, visited, options) {
    const pages = error.code === URL_ELICITATION_REQUIRED && error.data && error.data.elicitations;
    // The query may differ each time: it can contain a token.
    const address = ({ url }) => String(url).split("?")[0];
    const fresh = (pages || []).filter((page) => !visited.has(address(page)));
    for (const page of fresh) {
      visited.add(address(page));
      const { action } = await this.ask("elicitation/create", { mode: "url", ...page }, options);
      if (action !== "accept") return false;
    }
    return fresh.length > 0;
  }

  // Reads a list page by page, and returns all entries that the views can show.
  async list(method, member) {
    const found = [];
    let cursor;
    do {
      const { result } = await this.request(method, cursor === undefined ? {} : { cursor });
      if (Array.isArray(result[member])) found.push(...result[member]);
      cursor = result.nextCursor;
    } while (cursor !== undefined && found.length < 10_000);
    this.odd[method] = [];
    return readableEntries(found, ENTRY_KEYS[member] || "name", this.odd[method]);
  }

  async exchange(method, params, options = {}) {
    const { signal, progress, task } = options;
    const id = this.nextId++;
    const meta = { ...params._meta };
    if (progress) meta.progressToken = id;
    if (this.stateless) {
      meta[META + "protocolVersion"] = this.version;
      meta[META + "clientCapabilities"] = task === false ? WITHOUT_TASKS : CLIENT_CAPABILITIES;
      meta[META + "clientInfo"] = CLIENT_INFO;
      meta[META + "logLevel"] = "debug";
    }
    const sent = Object.keys(meta).length ? { ...params, _meta: meta } : params;
    const message = { jsonrpc: "2.0", id, method, params: sent };
    if (signal && !this.stateless) {
      const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } };
      signal.addEventListener("abort", () => this.post(cancel).catch(() => {}), { once: true });
    }
    const { response, status, challenge } = await this.post(message, options);
    if (!response) throw new Error(`The server sent no response to ${method}`);
    if (response.error) throw new RpcError(response.error, status, challenge);
    return { result: response.result, response, request: message, status };
  }

  // Posts a message; returns the response to it, from JSON or from a stream of events.
  async post(message, options = {}) {
    const headers = {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      ...this.headers(),
    };
    if (this.session) headers["Mcp-Session-Id"] = this.session;
    if (this.session || this.stateless) headers["MCP-Protocol-Version"] = this.version;
    if (this.stateless) {
      headers["Mcp-Method"] = message.method;
      const name = message.params && message.params[NAMED[message.method]];
      if (name !== undefined) headers["Mcp-Name"] = headerValue(name);
    }
    const answer = await fetch(this.url, {
      method: "POST",
      headers,
      body: JSON.stringify(message),
      signal: options.signal,
    });
    this.session = answer.headers.get("Mcp-Session-Id") || this.session;
    const { status } = answer;
    const media = answer.headers.get("Content-Type") || "";
    if (media.startsWith("text/event-stream")) {
      return { response: await this.readStream(answer.body, message.id, options), status };
    }
    const text = await answer.text();
    if (!text) return { status };
    const body = readJson(text);
    const challenge = answer.headers.get("WWW-Authenticate") || "";
    if (body && body.jsonrpc) return { response: body, status, challenge };
    const reason = (body && body.error) || text.slice(0, 200);
    throw new RpcError({ message: `HTTP ${status}: ${reason}`, data: body }, status, challenge);
  }

  // Returns the response in a stream. A server may close the stream before the response and keep
  // the rest; the client then asks for it.
  async readStream(body, id, options) {
    const last = { id: "", retry: 1000 };
    for (let stream = body; stream; stream = await this.resumed(last, options)) {
      for await (const received of events(stream, last)) {
        if (received.id === id && !received.method) return received;
        this.receive(received, options);
      }
    }
    return undefined;
  }

  async resumed(last, { signal }) {
    if (this.stateless || !this.session || !last.id) return null;
    const { id, retry } = last;
    last.id = ""; // A stream without new events is not resumed again.
    await new Promise((resolve) => setTimeout(resolve, retry));
    signal?.throwIfAborted();
    const headers = { Accept: "text/event-stream", "Mcp-Session-Id": this.session, ...this.headers() };
    headers["MCP-Protocol-Version"] = this.version;
    headers["Last-Event-ID"] = id;
    const answer = await fetch(this.url, { headers, signal });
    return answer.ok ? answer.body : null;
  }

  receive(message, options = {}) {
    if (message.method && message.id !== undefined) {
      this.answer(message, options);
    } else if (message.method === "notifications/progress" && options.progress) {
      options.progress(message.params);
    } else if (message.method) {
      this.notify(message, options.place);
    }
  }

  async answer({ id, method, params }, options) {
    const reply = { jsonrpc: "2.0", id };
    try {
      reply.result = method === "ping" ? {} : await this.ask(method, params, options);
    } catch (error) {
      reply.error = { code: -32601, message: String(error.message || error) };
    }
    await this.post(reply).catch(() => {});
  }

  // Receives messages that the server sends outside a call, until it closes the stream.
  async listen(signal) {
    if (this.stateless || !this.session) return;
    const headers = { Accept: "text/event-stream", "Mcp-Session-Id": this.session, ...this.headers() };
    headers["MCP-Protocol-Version"] = this.version;
    const answer = await fetch(this.url, { headers, signal });
    if (!answer.ok || !answer.body) return;
    for await (const message of events(answer.body)) this.receive(message);
  }

  async close() {
    if (!this.session) return;
    const headers = { "Mcp-Session-Id": this.session, ...this.headers() };
    await fetch(this.url, { method: "DELETE", headers, keepalive: true }).catch(() => {});
    this.session = null;
  }
}

// The entries that have a key, without members of the wrong type; `odd` gets a sentence for each problem.
function readableEntries(entries, key, odd) {
  return entries.flatMap((entry, at) => {
    if (typeof entry?.[key] !== "string") {
      odd.push(`Entry ${at + 1} is left out: its ${key} is not a string.`);
      return [];
    }
    const readable = { ...entry };
    for (const name of ENTRY_TEXTS) {
      if ((entry[name] ?? "") === "" || typeof entry[name] === "string") continue;
      odd.push(`${entry[key]}: its ${name} is not a string.`);
      delete readable[name];
    }
    // The arguments of a prompt.
    if (Array.isArray(entry.arguments)) readable.arguments = readableEntries(entry.arguments, "name", odd);
    else delete readable.arguments;
    return [readable];
  });
}

// A header can contain only ASCII; other text is sent in base64, as MCP specifies.
function headerValue(text) {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?")) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

function readJson(text) {
  try {
    return parsedJson(text);
  } catch {
    return null;
  }
}

// An integer above 2^53 is a BigInt if the browser can write it as JSON again; otherwise it is rounded.
let isRounding = false;

if (JSON.rawJSON) {
  BigInt.prototype.toJSON = function () {
    return JSON.rawJSON(this.toString());
  };
}

function parsedJson(text) {
  // A reviver is slow, and rarely needed.
  return JSON.parse(text, /\d{16}/.test(text) ? exactInteger : undefined);
}

function exactInteger(_, value, context) {
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  if (!JSON.rawJSON) isRounding = true;
  return exactNumber(context?.source ?? String(value));
}

// The number in a string such as "7", "-0.5" or "9007199254740993".
function exactNumber(text) {
  const value = Number(text);
  return JSON.rawJSON && !Number.isSafeInteger(value) && /^[+-]?\d+$/.test(text) ? BigInt(text) : value;
}

// Yields the messages in a stream of server-sent events. `last` receives the id of the last event, and
// the milliseconds to wait before the stream is resumed.
async function* events(body, last = {}) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value.replaceAll("\r\n", "\n");
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const lines = text.slice(0, end).split("\n");
        const field = (name) =>
          lines.filter((line) => line.startsWith(name + ":")).map((line) => line.slice(name.length + 1));
        const data = field("data");
        for (const id of field("id")) last.id = id.trim();
        for (const retry of field("retry")) last.retry = Math.min(Number(retry) || 0, 10_000);
        const message = data.length ? readJson(data.join("\n")) : null;
        for (const one of Array.isArray(message) ? message : [message]) if (one) yield one;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
