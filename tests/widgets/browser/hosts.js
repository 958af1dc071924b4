// Two hosts in one page: MCP Apps, with the app bridge of ext-apps, and one like ChatGPT.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const log = [];
let frame, client, bridge;

async function connect() {
  client = new Client({ name: "host", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.href)));
}

// Calls the tool and opens a frame with the declared policy for its widget.
async function prepare({ sandbox, tool, args }) {
  if (!client) await connect();
  frame?.remove();
  await bridge?.close();
  window.onmessage = null;
  log.length = 0;
  const { tools } = await client.listTools();
  const { _meta } = tools.find(({ name }) => name === tool);
  const { contents } = await client.readResource({ uri: _meta.ui.resourceUri });
  const result = await client.callTool({ name: tool, arguments: args });
  frame = document.createElement("iframe");
  const csp = encodeURIComponent(JSON.stringify(contents[0]._meta?.ui?.csp ?? {}));
  frame.src = `${sandbox}/sandbox.html?csp=${csp}`;
  return { html: contents[0].text, result };
}

// *when*: the result is sent "early" (before the answer to ui/initialize), "normal" (after
// initialized), or "late" (when the test calls `release`). *drop*: only its text is sent.
async function openInAppsHost({ when = "normal", drop = false, context = {}, ...config }) {
  const { html, result } = await prepare(config);
  if (drop) delete result.structuredContent;
  const capabilities = { openLinks: {}, serverTools: {}, message: { text: {} } };
  const options = { hostContext: { theme: "light", ...context } };
  bridge = new AppBridge(client, { name: "host", version: "1" }, capabilities, options);
  const send = async () => {
    await bridge.sendToolInput({ arguments: config.args });
    await bridge.sendToolResult(result);
  };
  bridge.onsandboxready = () => bridge.sendSandboxResourceReady({ html });
  bridge.onsizechange = ({ height }) => {
    log.push({ size: height });
    frame.style.height = `${height}px`;
  };
  bridge.onopenlink = async ({ url }) => {
    log.push({ link: url });
    return {};
  };
  bridge.oninitialized = () => {
    log.push({ initialized: true });
    if (when === "normal") send();
  };
  window.release = send;
  document.body.append(frame);
  const transport = new PostMessageTransport(frame.contentWindow, frame.contentWindow);
  await bridge.connect(transport);
  if (when !== "early") return;
  const receive = transport.onmessage;
  transport.onmessage = async (message, extra) => {
    if (message.method === "ui/initialize") await send();
    receive(message, extra);
  };
}

async function openInChatGpt({ when = "early", context = {}, ...config }) {
  const { html, result } = await prepare(config);
  const done = {
    toolOutput: result.structuredContent ?? null,
    toolResponseMetadata: { ...result._meta, mcp_tool_result: result },
  };
  const openai = { toolInput: config.args, toolOutput: null, theme: "light", ...context };
  if (when === "early") Object.assign(openai, done);
  const post = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  window.onmessage = async ({ data, source }) => {
    if (source !== frame.contentWindow) return;
    log.push({ [data.method]: data.params });
    if (data.method === "ui/notifications/sandbox-proxy-ready") {
      post({ method: "sandbox/show", params: { html, openai } });
    } else if (data.method === "openai/callTool") {
      const [name, args] = data.params;
      post({ id: data.id, result: await client.callTool({ name, arguments: args }) });
    } else if (data.id !== undefined) {
      post({ id: data.id, result: {} });
    }
  };
  window.release = () => post({ method: "openai/set_globals", params: done });
  document.body.append(frame);
}

Object.assign(window, { openInAppsHost, openInChatGpt, log });
