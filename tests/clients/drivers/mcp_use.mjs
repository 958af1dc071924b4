// The MCP client of mcp-use for TypeScript.
import { MCPClient } from 'mcp-use';
import { COMMAND, URL_, WIRE, answers, ofResult } from './driving.mjs';

const app = WIRE === 'stdio'
  ? { command: COMMAND[0], args: COMMAND.slice(1) }
  : { url: `${URL_}/mcp` };
const client = new MCPClient({ mcpServers: { app } });
const session = await client.createSession('app');
await answers(async (name, args) => ofResult(await session.callTool(name, args)));
