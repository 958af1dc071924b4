// The console as the host of a widget: it answers MCP Apps messages from the widget's frame.

const METHOD_NOT_FOUND = -32601;
const HOST_REFUSES = -32000;
// The names that MCP Apps uses for the console's colours.
const HOST_COLOURS = {
  "background-primary": "panel",
  "background-secondary": "tint",
  "background-inverse": "text",
  "text-primary": "text",
  "text-secondary": "soft",
  "text-inverse": "panel",
  "border-primary": "line",
};

// The address of a tool's widget; older hosts use other names for it.
function widgetUri({ _meta }) {
  const meta = _meta || {};
  return meta.ui?.resourceUri || meta["ui/resourceUri"] || meta["openai/outputTemplate"];
}

// Reads a widget's page. Its policy comes with the page, or is in the list of resources.
async function readWidget(client, uri) {
  const { result } = await client.request("resources/read", { uri });
  const [content] = result.contents || [];
  if (typeof content?.text !== "string") throw new Error(`${uri} has no HTML`);
  const listed = state.lists.resources.find((each) => each.uri === uri);
  const { csp } = content._meta?.ui || listed?._meta?.ui || {};
  return { text: content.text, csp: csp || {} };
}

// Answers a message. A host has: post(message) to the frame, note(entry), which shows what the widget
// did, resize(height), begin(), which says whether the frame is new, and the client, call, result, page
// and theme.
async function answerWidget(host, message) {
  if (message?.jsonrpc !== "2.0") return;
  const { id, method } = message;
  const params = message.params || {};
  const act = WIDGET_MESSAGES.get(method);
  if (id === undefined) return act?.(host, params);
  try {
    if (!act) throw new RpcError({ code: METHOD_NOT_FOUND, message: `The console does not support ${method}` });
    // The widget is waiting for an answer, even if there is nothing to say.
    host.post({ id, result: (await act(host, params)) || {} });
  } catch ({ message: text, code = HOST_REFUSES, data }) {
    host.note({ text: `asked for ${method}: ${text}`, failed: true });
    host.post({ id, error: { code, message: text, data } });
  }
}

function hostContext({ theme, call }) {
  const style = getComputedStyle(document.documentElement);
  const variables = {};
  for (const [name, own] of Object.entries(HOST_COLOURS)) {
    variables[`--color-${name}`] = style.getPropertyValue(`--${own}`);
  }
  return { theme, styles: { variables }, toolInfo: { tool: call.tool }, displayMode: "inline" };
}

async function callForWidget({ client, note }, { name, arguments: args = {} }) {
  const tool = state.lists.tools.find((each) => each.name === name);
  if (!tool) throw new Error(`The server has no tool ${name}`);
  if (tool._meta?.ui?.visibility?.includes("app") === false) {
    throw new Error(`The tool ${name} is only for models`);
  }
  if (!(await isConfirmed(tool, args))) throw new Error(`The user did not allow the call to ${name}`);
  const { result, ms } = await client.request("tools/call", { name, arguments: args });
  const text = `called ${name} (${milliseconds(ms)})`;
  note({ text, value: { arguments: args, result }, failed: result.isError });
  return result;
}

// A Map, because the widget chooses the names.
const WIDGET_MESSAGES = new Map(Object.entries({
  "ui/notifications/sandbox-proxy-ready": ({ post, page, begin }) =>
    begin() && post({ method: "ui/notifications/sandbox-resource-ready", params: { html: page.text } }),
  "ui/initialize": (host) => ({
    protocolVersion: "2026-01-26",
    hostInfo: CLIENT_INFO,
    hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} },
    hostContext: hostContext(host),
  }),
  "ui/notifications/initialized": ({ post, call, result }) => {
    post({ method: "ui/notifications/tool-input", params: { arguments: call.args } });
    post({ method: "ui/notifications/tool-result", params: result });
  },
  "ui/notifications/size-changed": ({ resize }, { height }) => resize(height),
  ping: () => ({}),
  "tools/call": callForWidget,
  "resources/read": async ({ client }, { uri }) =>
    (await client.request("resources/read", { uri })).result,
  "ui/open-link": ({ note }, { url }) => {
    if (!/^https?:\/\//i.test(url)) throw new Error(`${url} is not an http or https address`);
    note({ text: "wants to open", url });
  },
  "ui/message": ({ note }, { content }) => note({ text: "wrote a message", value: content }),
  "ui/update-model-context": ({ note }, params) => note({ text: "told the model", value: params }),
  "ui/request-display-mode": () => ({ mode: "inline" }),
  "notifications/message": ({ note }, { data }) => note({ text: "logged", value: data }),
}));
