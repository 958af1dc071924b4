// The official TypeScript client, version 2.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { COMMAND, URL_, WIRE, answers, ofResult } from './driving.mjs';

const client = new Client(
  { name: 'driver', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } },
);
await client.connect(WIRE === 'stdio'
  ? new StdioClientTransport({ command: COMMAND[0], args: COMMAND.slice(1) })
  : new StreamableHTTPClientTransport(new URL(`${URL_}/mcp`)));
await client.listTools();
await answers(async (name, args) => ofResult(await client.callTool({ name, arguments: args })));
