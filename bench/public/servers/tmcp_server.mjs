// A server on tmcp, with its HTTP transport and srvx.
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod';
import { HttpTransport } from '@tmcp/transport-http';
import { serve as listen } from 'srvx';
import { McpServer } from 'tmcp';

export function serve(tools) {
  const server = new McpServer(
    { name: 'bench', version: '1.0.0', description: 'A benchmark' },
    { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {} } },
  );
  for (const { name, description, schema, run } of tools) {
    server.tool({ name, description, schema }, run);
  }
  const transport = new HttpTransport(server, { path: '/mcp' });
  listen({
    hostname: '127.0.0.1',
    port: Number(process.env.PORT),
    silent: true,
    fetch: async (request) =>
      (await transport.respond(request)) ?? new Response(null, { status: 404 }),
  });
}
