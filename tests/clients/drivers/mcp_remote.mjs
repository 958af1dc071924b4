// mcp-remote: a program on stdio that passes everything on to a server over HTTP.
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { URL_ } from './driving.mjs';
import { callAll } from './sdk_1.mjs';

const args = ['node_modules/mcp-remote/dist/proxy.js', `${URL_}/mcp`, '--allow-http'];
await callAll(new StdioClientTransport({ command: process.execPath, args }));
