// The tool of mcp-use's benchmark on mcp-lite: a function from a Request to a Response.
import { McpServer, StreamableHttpTransport } from 'mcp-lite';
import { z } from 'zod';
import { tools } from './echo_tool.mjs';

const server = new McpServer({
  name: 'bench',
  version: '1.0.0',
  schemaAdapter: (schema) => z.toJSONSchema(schema),
});
for (const { name, description, schema, run } of tools) {
  server.tool(name, { description, inputSchema: schema, handler: run });
}
export const answer = new StreamableHttpTransport().bind(server);
