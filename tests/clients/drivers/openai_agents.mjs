// The MCP servers of the OpenAI Agents SDK for TypeScript.
import { MCPServerStdio, MCPServerStreamableHttp } from '@openai/agents';
import { COMMAND, URL_, WIRE, answers, ofBlocks } from './driving.mjs';

const server = WIRE === 'stdio'
  ? new MCPServerStdio({ command: COMMAND[0], args: COMMAND.slice(1) })
  : new MCPServerStreamableHttp({ url: `${URL_}/mcp` });
await server.connect();
await server.listTools();
await answers(async (name, args) => ofBlocks(await server.callTool(name, args)));
