// A server on mcp-lite, as its documentation serves it with Hono.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
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
const answer = new StreamableHttpTransport().bind(server);
const app = new Hono();
app.all('/mcp', (context) => answer(context.req.raw));
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT) });
