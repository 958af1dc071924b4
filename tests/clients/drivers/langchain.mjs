// The MCP adapters of LangChain for JavaScript.
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { COMMAND, URL_, WIRE, answers } from './driving.mjs';

const client = new MultiServerMCPClient({
  mcpServers: {
    app: WIRE === 'stdio'
      ? { transport: 'stdio', command: COMMAND[0], args: COMMAND.slice(1) }
      : { transport: 'http', url: `${URL_}/mcp` },
  },
});
const tools = Object.fromEntries((await client.getTools()).map(tool => [tool.name, tool]));
await answers(async (name, args) => {
  const message = await tools[name].invoke({ name, args, id: '1', type: 'tool_call' });
  return { debug: message };
});
