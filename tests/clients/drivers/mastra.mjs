// The MCP client of Mastra.
import { MCPClient } from '@mastra/mcp';
import { COMMAND, URL_, WIRE, answers, ofResult } from './driving.mjs';

const client = new MCPClient({
  servers: {
    app: WIRE === 'stdio'
      ? { command: COMMAND[0], args: COMMAND.slice(1) }
      : { url: new URL(`${URL_}/mcp`) },
  },
});
const tools = await client.listTools();
await answers(async (name, args) => {
  const answer = await tools[`app_${name}`].execute(args, {});
  return answer.content === undefined ? { data: answer } : ofResult(answer);
});
