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
const NAMED = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri" };
const MAX_ROUNDS = 10;

class RpcError extends Error {
  constructor(error, status) {
    super(error.message || "The server sent an error without a message");
    this.code = error.code;
    this.data = error.data;
    this.status = status;
  }
}

class McpClient {
  // `ask(method, params)` answers the server's questions; `notify(message)` sees its notifications.
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
  }

  // Sends a request; returns { result, response, status, ms }. Raises RpcError.
  // A server that was started again does not know the session; then a new one is opened.
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

  // In the stateless era it answers the server's questions and asks again.
  async requestWithAnswers(method, params, options) {
    const began = performance.now();
    let sent = params;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const reply = await this.exchange(method, sent, options);
      reply.ms = performance.now() - began;
      const { result } = reply;
      if (result.resultType !== "input_required") return reply;
      const responses = {};
      for (const [key, question] of Object.entries(result.inputRequests || {})) {
        responses[key] = await this.ask(question.method, question.params);
      }
      sent = { ...params, inputResponses: responses };
      if (result.requestState !== undefined) sent.requestState = result.requestState;
    }
    throw new Error("The server asked more than ten times");
  }

  // Returns all entries of a list, page by page.
  async list(method, member) {
    const found = [];
    let cursor;
    do {
      const { result } = await this.request(method, cursor === undefined ? {} : { cursor });
      found.push(...(result[member] || []));
      cursor = result.nextCursor;
    } while (cursor !== undefined && found.length < 10_000);
    return found;
  }

  async exchange(method, params, { signal, progress } = {}) {
    const id = this.nextId++;
    const meta = { ...params._meta };
    if (progress) meta.progressToken = id;
    if (this.stateless) {
      meta[META + "protocolVersion"] = this.version;
      meta[META + "clientCapabilities"] = CLIENT_CAPABILITIES;
      meta[META + "clientInfo"] = CLIENT_INFO;
      meta[META + "logLevel"] = "debug";
    }
    const sent = Object.keys(meta).length ? { ...params, _meta: meta } : params;
    const message = { jsonrpc: "2.0", id, method, params: sent };
    if (signal && !this.stateless) {
      const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } };
      signal.addEventListener("abort", () => this.post(cancel).catch(() => {}), { once: true });
    }
    const { response, status } = await this.post(message, signal, progress);
    if (!response) throw new Error(`The server sent no response to ${method}`);
    if (response.error) throw new RpcError(response.error, status);
    return { result: response.result, response, request: message, status };
  }

  // Posts a message; returns the response to it, from JSON or from a stream of events.
  async post(message, signal, progress) {
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
      signal,
    });
    this.session = answer.headers.get("Mcp-Session-Id") || this.session;
    const { status } = answer;
    const media = answer.headers.get("Content-Type") || "";
    if (media.startsWith("text/event-stream")) {
      for await (const received of events(answer.body)) {
        if (received.id === message.id && !received.method) return { response: received, status };
        this.receive(received, progress);
      }
      return { status };
    }
    const text = await answer.text();
    if (!text) return { status };
    const body = readJson(text);
    if (body && body.jsonrpc) return { response: body, status };
    const reason = (body && body.error) || text.slice(0, 200);
    throw new RpcError({ message: `HTTP ${status}: ${reason}`, data: body }, status);
  }

  receive(message, progress) {
    if (message.method && message.id !== undefined) {
      this.answer(message);
    } else if (message.method === "notifications/progress" && progress) {
      progress(message.params);
    } else if (message.method) {
      this.notify(message);
    }
  }

  async answer(message) {
    const reply = { jsonrpc: "2.0", id: message.id };
    try {
      reply.result = message.method === "ping" ? {} : await this.ask(message.method, message.params);
    } catch (error) {
      reply.error = { code: -32601, message: String(error.message || error) };
    }
    await this.post(reply).catch(() => {});
  }

  // Receives what the server sends outside a call, until it closes the stream.
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

// A header can have only ASCII; other text is sent in base64, as MCP says.
function headerValue(text) {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?")) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// Yields the messages in a stream of server-sent events.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value.replaceAll("\r\n", "\n");
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const lines = text.slice(0, end).split("\n");
        const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5));
        const message = data.length ? readJson(data.join("\n")) : null;
        for (const one of Array.isArray(message) ? message : [message]) if (one) yield one;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
