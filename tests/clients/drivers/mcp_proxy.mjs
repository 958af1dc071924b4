// mcp-proxy of npm: a server over HTTP that starts a program on stdio.
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { COMMAND } from './driving.mjs';
import { PORT, start } from './gateway.mjs';
import { callAll } from './sdk_1.mjs';

await start('mcp-proxy/dist/bin/mcp-proxy.mjs', '--port', PORT, '--host', '127.0.0.1', '--', ...COMMAND);
await callAll(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${PORT}/mcp`)));
