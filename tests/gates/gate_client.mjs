// Prints how the official client reads the refusals of gates, as JSON.
// Usage: gate_client.mjs legacy|VERSION URL KEY
import {
  Client, InsufficientScopeError, StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';

const [mode, url, key] = process.argv.slice(2);
const open = async (token, capabilities) => {
  const client = new Client({ name: 'test', version: '1.0.0' }, {
    capabilities,
    versionNegotiation: { mode: mode === 'legacy' ? mode : { pin: mode } },
  });
  const opened = [];
  if (capabilities.elicitation) {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      opened.push([params.mode, params.url.split('?')[0]]);
      return { action: 'accept' };
    });
  }
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return [client, opened];
};
const attempt = async (client, name, args) => {
  try {
    const result = await client.callTool({ name, arguments: args });
    return { isError: result.isError ?? false, code: result._meta?.['answerback/error']?.code };
  } catch (error) {
    const elicitations = error.data?.elicitations ?? error.elicitations;
    return {
      failed: true, status: error.status ?? error.data?.status, code: error.code,
      needsScope: error instanceof InsufficientScopeError,
      url: elicitations?.[0]?.url?.split('?')[0],
    };
  }
};

const [anonymous] = await open('', {});
const [anna] = await open(key, {});
const [asked, opened] = await open(key, { elicitation: { url: {} } });
console.log(JSON.stringify({
  tools: (await anonymous.listTools()).tools.map(each => each.name),
  anonymous: await attempt(anonymous, 'balance', { account: 'a' }),
  anna: await attempt(anna, 'balance', { account: 'a' }),
  stepUp: await attempt(anna, 'pay', { amount: 1 }),
  unlinked: await attempt(anna, 'accounts', {}),
  asked: await attempt(asked, 'accounts', {}),
  opened,
}));
for (const client of [anonymous, anna, asked]) await client.close();
