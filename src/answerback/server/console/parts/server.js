// A server that the console talks to: its lists, and tool calls over each of its wires.

// The server says whether this is its /docs page: a prefix may end in "docs" too.
const IS_DOCS = document.getElementById("app").dataset.page === "docs";
const BASE = location.pathname.replace(IS_DOCS ? /docs\/?$/ : /\/?$/, IS_DOCS ? "" : "/");
const START_TOKEN = takeStartToken();

// `answerback console TARGET` puts a token in the fragment; it is removed immediately.
function takeStartToken() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found) {
    history.replaceState(null, "", location.pathname + location.search);
    sessionStorage.setItem("answerback-start", found);
  }
  return sessionStorage.getItem("answerback-start") || "";
}

function ownHeaders() {
  const headers = {};
  if (state.token) headers.Authorization = `Bearer ${state.token}`;
  if (START_TOKEN) headers["X-Answerback-Console"] = START_TOKEN;
  return headers;
}

async function fetchJson(path, body) {
  const options = { headers: { Accept: "application/json", ...ownHeaders() } };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(BASE + path, options);
  const found = readJson(await answer.text());
  if (!answer.ok) throw new Error((found && found.error) || `HTTP ${answer.status}`);
  return found;
}

class Server {
  // `about` has: name, mcp (path), functions (path, or nothing for other servers), versions.
  constructor(about) {
    this.about = about;
    this.clients = {};
  }

  client(version = this.about.versions[0]) {
    this.clients[version] ??= new McpClient({
      url: BASE + this.about.mcp,
      version,
      headers: ownHeaders,
      ask: askUser,
      notify: (message, place) => this.receive(message, version, place),
    });
    return this.clients[version];
  }

  async load() {
    const client = this.client();
    await client.connect();
    const offered = client.capabilities;
    const list = async (capability, method, member) =>
      capability ? client.list(method, member).catch(() => []) : [];
    const [tools, resources, templates, prompts] = await Promise.all([
      client.list("tools/list", "tools"),
      list(offered.resources, "resources/list", "resources"),
      list(offered.resources, "resources/templates/list", "resourceTemplates"),
      list(offered.prompts, "prompts/list", "prompts"),
    ]);
    return { tools, resources, templates, prompts };
  }

  // The wires that a tool can be called over.
  wires() {
    // A server may have chosen an older version than the requested one.
    const mcp = this.about.versions.map((id) => ({ id, name: `MCP ${this.client(id).version}` }));
    return this.about.functions !== undefined ? [{ id: "rest", name: "REST" }, ...mcp] : mcp;
  }

  // Calls a tool over one wire; returns what was sent and what came back. Never throws.
  // `task`: true asks for a task, false for a plain call; otherwise the server decides.
  async call(wire, tool, args, options = {}) {
    const began = performance.now();
    const done = (found) => ({ wire, ms: performance.now() - began, ...found });
    try {
      if (wire === "rest") return done(await this.callRest(tool, args, options));
      return done(await this.callMcp(wire, tool, args, options));
    } catch (error) {
      if (error.name === "AbortError") return done({ ok: false, cancelled: true, body: null });
      const { code, message, data, status, challenge } = error;
      return done({ ok: false, status, body: { code, message, data }, failure: message, challenge });
    }
  }

  async callMcp(wire, tool, args, options) {
    const client = this.client(wire);
    const params = { name: tool, arguments: args };
    if (options.task && !client.stateless) params.task = {};
    const { result, status, request, ms } = await client.request("tools/call", params, options);
    const { version } = client;
    const task = taskIn(result);
    if (!task) {
      // The time taken by the call itself, not counting opening the connection.
      return { ok: !result.isError, status, sent: request, body: result, result, ms, version };
    }
    const ended = await followTask(this, addTask(wire, task, tool, options.place), options);
    if (ended.error) throw ended.error;
    const body = ended.result;
    return { ok: !body.isError, status, sent: request, body, result: body, version };
  }

  // Some conventions prefix names only in MCP.
  restPath(tool) {
    const { functions, prefix = "" } = this.about;
    const name = prefix && tool.startsWith(prefix) ? tool.slice(prefix.length) : tool;
    return functions + encodeURIComponent(name);
  }

  async callRest(tool, args, options) {
    const path = BASE + this.restPath(tool);
    const { signal, task } = options;
    // Accept any type, so that an image arrives as it does with curl.
    const headers = { "Content-Type": "application/json", Accept: "*/*", ...ownHeaders() };
    if (task) headers.Prefer = "respond-async";
    const body = JSON.stringify(args);
    const answer = await fetch(path, { method: "POST", headers, body, signal });
    const found = await readRest(answer, this.about.dialect);
    if (found.status !== 202 || !found.body.taskId) return { ...found, sent: args };
    const added = addTask("rest", found.body, tool, options.place);
    const ended = await followTask(this, added, options);
    if (ended.error) throw ended.error;
    return { ...ended.result, sent: args };
  }

  receive(message, version, place) {
    recordMessage(message, version, place);
    if (/list_changed$/.test(message.method)) this.reload();
  }

  // Reloads the lists, only once for several changes.
  async reload() {
    if (this.reloading) return;
    this.reloading = true;
    await Promise.resolve();
    this.reloading = false;
    const lists = await this.load().catch(() => null);
    if (lists && state.server === this) update({ lists });
  }

  // Receives messages outside calls. A gateway to another server has no such stream.
  listen() {
    this.listening?.abort();
    if (this.about.foreign) return;
    this.listening = new AbortController();
    this.client().listen(this.listening.signal).catch(() => {});
  }

  // Drops the connections, because they belong to another user or to none.
  disconnect() {
    this.listening?.abort();
    for (const client of Object.values(this.clients)) client.close();
    this.clients = {};
  }
}

// REST's response, as the views show it.
async function readRest(answer, dialect) {
  const { ok, status } = answer;
  const headers = Object.fromEntries(answer.headers);
  const media = await mediaOf(answer);
  if (media) return { ok, status, headers, body: null, media };
  const text = await answer.text();
  const body = readJson(text) ?? text;
  const challenge = headers["www-authenticate"];
  return { status, headers, body, challenge, ...readDialect(dialect, body, ok) };
}

// What a body says in the dialect of the app's contract: whether it failed, and its data.
function readDialect(dialect, body, ok) {
  if (dialect === "mcp" && body && Array.isArray(body.content)) {
    return { ok: ok && body.isError !== true, result: body };
  }
  if (dialect === "envelope" && body && typeof body.success === "boolean") {
    const failure = body.error && body.error.message;
    return { ok: ok && body.success, data: body.success ? body.data : body.error, failure };
  }
  const failure = body && (body.detail || body.error || body);
  return ok ? { ok } : { ok, failure: typeof failure === "string" ? failure.slice(0, 500) : "" };
}

// An image or audio clip that REST sends as bytes, as an MCP block; null for text and JSON.
async function mediaOf(answer) {
  const [mimeType] = (answer.headers.get("Content-Type") || "").split(";");
  const [type] = mimeType.split("/");
  if (!answer.ok || !["image", "audio"].includes(type)) return null;
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return { type, mimeType, data: btoa(text) };
}

let nextMessage = 1;

function received({ method, params }, version) {
  return { id: nextMessage++, method, params: params || {}, version, at: new Date() };
}
