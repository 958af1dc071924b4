// Prints the results of tools, and everything that their notes lead to, as JSON.
// Usage: complete_replies.mjs URL TOOL...
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const NOTE = /Showing ([\d,]+) of ([\d,]+) (items|lines|characters)(?: of "(.+)")?\. The rest: (\S+)/g;
const [url, ...tools] = process.argv.slice(2);
const client = new Client({ name: 'reader', version: '1.0.0' }, {
  versionNegotiation: { mode: 'auto' },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await client.listTools();

// Everything that follows a cut, read in as many ranges as it takes.
async function restOf(returned, total, uri) {
  const count = Number(returned.replaceAll(',', ''));
  const texts = [];
  for (let offset = count; offset < Number(total.replaceAll(',', '')); offset += count) {
    const range = uri.replace(`offset=${count}`, `offset=${offset}`);
    const { contents } = await client.readResource({ uri: range });
    texts.push(contents[0].text);
  }
  return texts;
}

const found = {};
for (const name of tools) {
  const result = await client.callTool({ name, arguments: {} });
  const said = result.content.filter((block) => block.type === 'text').map((block) => block.text);
  const rests = [];
  for (const [, returned, total, unit, path = '', uri] of said.join('\n').matchAll(NOTE)) {
    rests.push({ path, unit, texts: await restOf(returned, total, uri) });
  }
  found[name] = { result, rests };
}
console.log(JSON.stringify(found));
await client.close();
