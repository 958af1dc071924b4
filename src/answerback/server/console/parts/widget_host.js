// The host of a widget: it answers the messages of MCP Apps that the widget's frame sends.

const APPS_VERSION = "2026-01-26";
const METHOD_NOT_FOUND = -32601;
const FORBIDDEN = -32000;
// The names by which MCP Apps knows the console's colours.
const HOST_COLOURS = {
  "--color-background-primary": "--panel",
  "--color-background-secondary": "--tint",
  "--color-background-inverse": "--text",
  "--color-text-primary": "--text",
  "--color-text-secondary": "--soft",
  "--color-text-inverse": "--panel",
  "--color-border-primary": "--line",
  "--font-mono": "--mono",
};

// The address of a tool's widget; older hosts have other names for it.
function widgetUri(tool) {
  const meta = tool._meta || {};
  return (meta.ui || {}).resourceUri || meta["ui/resourceUri"] || meta["openai/outputTemplate"];
}

function isForWidgets(tool) {
  const { visibility } = (tool._meta || {}).ui || {};
  return !Array.isArray(visibility) || visibility.includes("app");
}

// Reads a widget's page; the policy is in the content, or in the list of the resources.
async function readWidget(client, uri) {
  const { result } = await client.request("resources/read", { uri });
  const [content] = result.contents || [];
  if (!content || typeof content.text !== "string") throw new Error(`${uri} has no HTML`);
  const listed = state.lists.resources.find((each) => each.uri === uri) || {};
  const { csp } = (content._meta || {}).ui || (listed._meta || {}).ui || {};
  return { text: content.text, csp: csp || {} };
}

class WidgetHost {
  // `post(message)` sends to the frame, `note(entry)` shows what the widget did.
  constructor({ post, note, resize, client, call, result, page, theme }) {
    Object.assign(this, { post, note, resize, client, call, result, page, theme });
  }

  setTheme(theme) {
    if (theme === this.theme) return;
    this.theme = theme;
    this.post({ method: "ui/notifications/host-context-changed", params: { theme } });
  }

  async receive(message) {
    if (!message || message.jsonrpc !== "2.0" || typeof message.method !== "string") return;
    const { id, method } = message;
    const params = message.params || {};
    if (id === undefined) {
      if (Object.hasOwn(WIDGET_NOTIFICATIONS, method)) WIDGET_NOTIFICATIONS[method](this, params);
      return;
    }
    try {
      const answer = Object.hasOwn(WIDGET_REQUESTS, method) && WIDGET_REQUESTS[method];
      if (!answer) throw new RpcError({ code: METHOD_NOT_FOUND, message: `The console has no ${method}` });
      this.post({ id, result: await answer(this, params) });
    } catch (error) {
      const { message: text, code = FORBIDDEN, data } = error;
      this.note({ text: `was refused ${method}: ${text}`, failed: true });
      this.post({ id, error: { code, message: text, data } });
    }
  }

  context() {
    const style = getComputedStyle(document.documentElement);
    const variables = {};
    for (const [name, own] of Object.entries(HOST_COLOURS)) variables[name] = style.getPropertyValue(own);
    return {
      theme: this.theme,
      styles: { variables },
      toolInfo: { tool: this.call.tool },
      displayMode: "inline",
      availableDisplayModes: ["inline"],
      locale: navigator.language,
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      platform: "web",
    };
  }

  async callTool({ name, arguments: args = {} }) {
    const tool = state.lists.tools.find((each) => each.name === name);
    if (!tool) throw new Error(`The server has no tool ${name}`);
    if (!isForWidgets(tool)) throw new Error(`The tool ${name} is only for models`);
    const { result, ms } = await this.client.request("tools/call", { name, arguments: args });
    const text = `called ${name} (${milliseconds(ms)})`;
    this.note({ text, value: { arguments: args, result }, failed: Boolean(result.isError) });
    return result;
  }
}

const WIDGET_NOTIFICATIONS = {
  "ui/notifications/sandbox-proxy-ready": ({ post, page }) =>
    post({ method: "ui/notifications/sandbox-resource-ready", params: { html: page.text } }),
  "ui/notifications/initialized": ({ post, call, result }) => {
    post({ method: "ui/notifications/tool-input", params: { arguments: call.args } });
    post({ method: "ui/notifications/tool-result", params: result });
  },
  "ui/notifications/size-changed": ({ resize }, { height }) => resize(height),
  "notifications/message": ({ note }, { data }) => note({ text: "logged a message", value: data }),
};

const WIDGET_REQUESTS = {
  "ui/initialize": (host) => ({
    protocolVersion: APPS_VERSION,
    hostInfo: CLIENT_INFO,
    hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} }, updateModelContext: { text: {} } },
    hostContext: host.context(),
  }),
  ping: () => ({}),
  "tools/call": (host, params) => host.callTool(params),
  "resources/read": async ({ client }, { uri }) =>
    (await client.request("resources/read", { uri })).result,
  "ui/open-link": ({ note }, { url }) => {
    if (!/^https?:\/\//i.test(url)) throw new Error(`${url} is not an http or https address`);
    note({ text: "wants to open", url });
    return {};
  },
  "ui/message": ({ note }, { content }) => {
    note({ text: "wrote into the conversation", value: content });
    return {};
  },
  "ui/update-model-context": ({ note }, { content, structuredContent }) => {
    note({ text: "told the model", value: structuredContent || content });
    return {};
  },
  "ui/request-display-mode": () => ({ mode: "inline" }),
};
