// The official TypeScript SDK, version 1.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { COMMAND, URL_, WIRE, answers, ofResult } from './driving.mjs';

export async function callAll(transport) {
  const client = new Client({ name: 'driver', version: '1.0.0' });
  await client.connect(transport);
  await client.listTools();
  await answers(async (name, args) => ofResult(await client.callTool({ name, arguments: args })));
}

if (process.argv[1].endsWith('sdk_1.mjs')) {
  await callAll(WIRE === 'stdio'
    ? new StdioClientTransport({ command: COMMAND[0], args: COMMAND.slice(1) })
    : new StreamableHTTPClientTransport(new URL(`${URL_}/mcp`)));
}
