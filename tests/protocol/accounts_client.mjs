// Calls `balances` of examples/accounts.py with @modelcontextprotocol/client, follows the link of each
// refusal, and prints the texts as JSON. Usage: accounts_client.mjs legacy|auto URL TOKEN
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [mode, url, token] = process.argv.slice(2);
const headers = { authorization: `Bearer ${token}` };
const client = new Client({ name: 'reader', version: '1.0.0' }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));

const texts = [];
for (let left = 3; left > 0; left -= 1) {
  const { content, isError, _meta } = await client.callTool({ name: 'balances', arguments: {} });
  texts.push(content[0].text.split(': http')[0]);
  if (!isError) break;
  await fetch(_meta['answerback/refusal'].url, { method: 'POST', headers });
}
console.log(JSON.stringify({ era: client.getProtocolEra(), texts }));
await client.close();
