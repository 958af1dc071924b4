// supergateway: a server over HTTP that starts a program on stdio, one for each session.
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { COMMAND } from './driving.mjs';
import { PORT, start } from './gateway.mjs';
import { callAll } from './sdk_1.mjs';

export async function callThrough(...options) {
  await start('supergateway/dist/index.js', '--stdio', COMMAND.join(' '),
    '--outputTransport', 'streamableHttp', '--port', PORT, ...options);
  await callAll(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${PORT}/mcp`)));
}

if (process.argv[1].endsWith('supergateway.mjs')) await callThrough('--stateful');
