// A server on the official TypeScript SDK v2, as its documentation serves it with node:http.
import { createServer } from 'node:http';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node';

export function serve(tools) {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'bench', version: '1.0.0' });
    for (const { name, description, schema, run } of tools) {
      server.registerTool(name, { description, inputSchema: schema }, run);
    }
    return server;
  });
  const answer = toNodeHandler(handler);
  const hostIsValid = localhostHostValidation();
  const originIsValid = localhostOriginValidation();
  createServer((request, response) => {
    if (hostIsValid(request, response) && originIsValid(request, response)) {
      void answer(request, response);
    }
  }).listen(Number(process.env.PORT), '127.0.0.1');
}
