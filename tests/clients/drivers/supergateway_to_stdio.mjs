// supergateway the other way round: a program on stdio that calls a server over HTTP.
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { URL_ } from './driving.mjs';
import { callAll } from './sdk_1.mjs';

const args = ['node_modules/supergateway/dist/index.js', '--streamableHttp', `${URL_}/mcp`];
await callAll(new StdioClientTransport({ command: process.execPath, args }));
