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
  const answer = { error: message.status === 'error' };
  const data = message.artifact.find(each => each.type === 'mcp_structured_content');
  if (data !== undefined) answer.data = data.data;
  // The content of one text and structured content is a JSON text that has both.
  const { content } = message;
  const blocks = typeof content === 'string' ? [JSON.parse(content)] : content;
  answer.text = blocks.filter(each => each.type === 'text').map(each => each.text).join('\n');
  for (const block of blocks) {
    if (block.type === 'image_url') answer.image = block.image_url.url.split(',')[1];
    if (block.type === 'file') answer.link = block.url;
  }
  return answer;
});
