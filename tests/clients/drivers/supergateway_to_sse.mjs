// supergateway with a server of the older HTTP transport with SSE in front of a program on stdio.
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { COMMAND } from './driving.mjs';
import { PORT, start } from './gateway.mjs';
import { callAll } from './sdk_1.mjs';

await start('supergateway/dist/index.js', '--stdio', COMMAND.join(' '), '--outputTransport', 'sse',
  '--port', PORT);
await callAll(new SSEClientTransport(new URL(`http://127.0.0.1:${PORT}/sse`)));
