// supergateway: a server over HTTP that starts a program on stdio.
import { spawn } from 'node:child_process';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { COMMAND } from './driving.mjs';
import { callAll } from './sdk_1.mjs';

const port = String(20000 + (process.pid % 20000));
const gateway = spawn(process.execPath, ['node_modules/supergateway/dist/index.js',
  '--stdio', COMMAND.join(' '), '--outputTransport', 'streamableHttp', '--stateful', '--port', port]);
process.on('exit', () => gateway.kill());
await new Promise(resolve => gateway.stdout.on('data', text => {
  if (String(text).includes('Listening')) resolve();
}));
await callAll(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));
