// A server that the console talks to: its lists, and a tool's call over each of its wires.

// The server says whether this is its page /docs: a prefix may end in "docs" too.
const IS_DOCS = document.getElementById("app").dataset.page === "docs";
const BASE = location.pathname.replace(IS_DOCS ? /docs\/?$/ : /\/?$/, IS_DOCS ? "" : "/");
const START_TOKEN = takeStartToken();

// `answerback console TARGET` puts a token into the fragment; it is removed at once.
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
  // `about` has: name, mcp (path), functions (path, or nothing for a foreign server), versions.
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
      notify: (message) => update({ messages: keep(state.messages, received(message, version)) }),
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
    // A server may have chosen an older version than it was asked for.
    const mcp = this.about.versions.map((id) => ({ id, name: `MCP ${this.client(id).version}` }));
    return this.about.functions !== undefined ? [{ id: "rest", name: "REST" }, ...mcp] : mcp;
  }

  // Calls a tool over one wire; returns what was sent and what came back. Never raises.
  async call(wire, tool, args, { signal, progress } = {}) {
    const began = performance.now();
    const done = (found) => ({ wire, ms: performance.now() - began, ...found });
    try {
      if (wire === "rest") return done(await this.callRest(tool, args, signal));
      const params = { name: tool, arguments: args };
      const client = this.client(wire);
      // The time of the call itself, without that of opening the connection.
      const { result, status, request, ms } = await client.request("tools/call", params, {
        signal,
        progress,
      });
      const { version } = client;
      return done({ ok: !result.isError, status, sent: request, body: result, result, ms, version });
    } catch (error) {
      if (error.name === "AbortError") return done({ ok: false, cancelled: true, body: null });
      const body = { code: error.code, message: error.message, data: error.data };
      return done({ ok: false, status: error.status, body, failure: error.message });
    }
  }

  // The names of some conventions have a prefix only in MCP.
  restPath(tool) {
    const { functions, prefix = "" } = this.about;
    const name = prefix && tool.startsWith(prefix) ? tool.slice(prefix.length) : tool;
    return functions + encodeURIComponent(name);
  }

  async callRest(tool, args, signal) {
    const path = BASE + this.restPath(tool);
    const answer = await fetch(path, {
      method: "POST",
      // Any type, so that an image comes as it comes to curl.
      headers: { "Content-Type": "application/json", Accept: "*/*", ...ownHeaders() },
      body: JSON.stringify(args),
      signal,
    });
    const headers = Object.fromEntries(answer.headers);
    const media = await mediaOf(answer);
    if (media) return { ok: true, status: answer.status, headers, body: null, media, sent: args };
    const text = await answer.text();
    const body = readJson(text) ?? text;
    const said = readDialect(this.about.dialect, body, answer.ok);
    return { status: answer.status, headers, body, sent: args, ...said };
  }
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

// An image or audio that REST sends as bytes, as MCP's block; null for texts and JSON.
async function mediaOf(answer) {
  const [mimeType] = (answer.headers.get("Content-Type") || "").split(";");
  const [type] = mimeType.split("/");
  if (!answer.ok || !["image", "audio"].includes(type)) return null;
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return { type, mimeType, data: btoa(text) };
}

function received(message, version) {
  return { method: message.method, params: message.params || {}, version, at: new Date() };
}

// Shows a question of the server, and returns the user's answer in MCP's form.
function askUser(method, params) {
  if (method !== "elicitation/create") {
    throw new Error(`The console does not answer ${method}`);
  }
  return new Promise((resolve) => {
    const question = { method, params, resolve: null };
    question.resolve = (result) => {
      update({ questions: state.questions.filter((each) => each !== question) });
      resolve(result);
    };
    update({ questions: [...state.questions, question] });
  });
}
