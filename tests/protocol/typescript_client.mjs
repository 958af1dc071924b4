// Prints what @modelcontextprotocol/client receives as JSON.
// Usage: typescript_client.mjs legacy|auto|VERSION URL|COMMAND...
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, target, ...args] = process.argv.slice(2);
const client = new Client({ name: 'report', version: '1.0.0' }, {
  capabilities: { elicitation: {} },
  versionNegotiation: { mode: ['legacy', 'auto'].includes(mode) ? mode : { pin: mode } },
});
client.setRequestHandler('elicitation/create', async () => (
  { action: 'accept', content: { name: 'Ada' } }
));
await client.connect(target.startsWith('http:')
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, stderr: 'ignore' }));

const call = (tool, given = {}, options) => client.callTool({ name: tool, arguments: given }, options);
const server = client.getServerVersion();
const steps = [];
const name = String(process.pid);
const onprogress = ({ progress, total, message }) => {
  steps.push([progress, total, message]);
  if (progress === total) call('confirm', { name });
};

const { tools } = await client.listTools();
const text = await call('hello');
const structured = await call('add', { x: 2, y: 3 });
const counted = await call('count', { x: 2, y: 3 });
const squares = await call('squares', { n: 3 });
const image = (await call('picture')).content[0];
const error = await call('fail', { city: 'Atlantis' });
const slow = await call('slow', { name }, { onprogress });
const greeted = await call('greet');
const welcomed = await call('welcome');
const resource = await client.readResource({ uri: 'test://note' });
const prompt = await client.getPrompt({ name: 'review', arguments: { what: 'this' } });

console.log(JSON.stringify({
  version: client.getNegotiatedProtocolVersion(),
  era: { legacy: 'stateful', modern: 'stateless' }[client.getProtocolEra()],
  server: `${server?.name} ${server?.version}`,
  tools: tools.map(tool => tool.name),
  text: text.content[0].text,
  structured: structured.structuredContent,
  with_message: [counted.structuredContent, squares.structuredContent],
  image: [image.mimeType, image.data],
  error: [error.isError, error.content[0].text],
  progress: steps,
  slow_result: slow.content[0].text,
  asked_while_running: greeted.content[0].text,
  asked_before_running: welcomed.content[0].text,
  resource: resource.contents[0].text,
  prompt: prompt.messages[0].content.text,
}));
await client.close();
