// Prints how @modelcontextprotocol/ext-apps reads the widgets of a server, as JSON. It checks
// each `_meta.ui` with the schemas of the package. Usage: widget_client.mjs legacy|VERSION URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  McpUiResourceMetaSchema, McpUiToolMetaSchema, RESOURCE_MIME_TYPE, buildAllowAttribute,
  getToolUiResourceUri, isToolVisibilityAppOnly,
} from '@modelcontextprotocol/ext-apps/app-bridge';
import { EXTENSION_ID } from '@modelcontextprotocol/ext-apps/server';

const [mode, url] = process.argv.slice(2);
const client = new Client({ name: 'host', version: '1.0.0' }, {
  capabilities: { extensions: { [EXTENSION_ID]: { mimeTypes: [RESOURCE_MIME_TYPE] } } },
  versionNegotiation: { mode: mode === 'legacy' ? mode : { pin: mode } },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

// A schema drops members that it does not know: they are a fault here.
const check = (schema, found) => {
  const read = JSON.stringify(schema.parse(found));
  if (read.length !== JSON.stringify(found).length) throw new Error(`${read} was sent with more`);
};

const tools = {};
for (const tool of (await client.listTools()).tools) {
  const uri = getToolUiResourceUri(tool);
  if (uri === undefined) continue;
  check(McpUiToolMetaSchema, tool._meta.ui);
  const page = (await client.readResource({ uri })).contents[0];
  check(McpUiResourceMetaSchema, page._meta.ui);
  tools[tool.name] = {
    uri,
    appOnly: isToolVisibilityAppOnly(tool),
    mime: page.mimeType === RESOURCE_MIME_TYPE,
    allow: buildAllowAttribute(page._meta.ui.permissions),
    hints: Object.keys(tool.annotations).sort(),
  };
}
const { resources } = await client.listResources();
for (const resource of resources) check(McpUiResourceMetaSchema, resource._meta.ui);
const called = await client.callTool({ name: 'accounts', arguments: {} });

console.log(JSON.stringify({
  tools,
  resources: resources.map(each => each.uri),
  extension: client.getServerCapabilities()?.extensions?.[EXTENSION_ID],
  forModel: [called.content.map(each => each.text), called.structuredContent],
  forWidget: called._meta.token,
}));
await client.close();
