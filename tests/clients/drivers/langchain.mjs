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
await answers((name, args) => tools[name].invoke(args));
