// The MCP client of the AI SDK.
import { experimental_createMCPClient as createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import { COMMAND, URL_, WIRE, answers, ofResult } from './driving.mjs';

const client = await createMCPClient({
  transport: WIRE === 'stdio'
    ? new StdioTransport({ command: COMMAND[0], args: COMMAND.slice(1) })
    : { type: 'http', url: `${URL_}/mcp` },
});
const tools = await client.tools();
await answers(async (name, args) => ofResult(
  await tools[name].execute(args, { messages: [], toolCallId: '1' }),
));
