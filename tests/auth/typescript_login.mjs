// Logs in with @modelcontextprotocol/client after the 401, and calls a tool that needs login, then
// one that needs a further scope. Usage: typescript_login.mjs legacy|auto URL
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const [mode, url] = process.argv.slice(2);
const redirectUrl = 'http://127.0.0.1:9/callback';
const asked = [];
const kept = {};

// Follows the redirects as a browser does, up to the client's own address.
async function visit(page) {
  const cookies = new Map();
  let address = new URL(page);
  asked.push(address.searchParams.get('scope'));
  for (let step = 0; step < 10; step += 1) {
    if (address.href.startsWith(redirectUrl)) return address.searchParams;
    const cookie = [...cookies].map(pair => pair.join('=')).join('; ');
    const response = await fetch(address, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split('=');
      cookies.set(name, value);
    }
    if (!response.headers.get('location')) throw new Error(await response.text());
    address = new URL(response.headers.get('location'), address);
  }
  throw new Error('too many redirects');
}

const provider = {
  redirectUrl,
  clientMetadata: {
    client_name: 'test',
    redirect_uris: [redirectUrl],
    application_type: 'native',
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => kept.client,
  saveClientInformation: client => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: tokens => { kept.tokens = tokens; },
  saveCodeVerifier: verifier => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: state => { kept.discovery = state; },
  discoveryState: () => kept.discovery,
  redirectToAuthorization: async page => { kept.answer = await visit(page); },
};

let client;
let transport;
async function loggedIn(work) {
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof UnauthorizedError) && !kept.answer) throw error;
      const answer = kept.answer;
      kept.answer = undefined;
      await transport.finishAuth(answer);
    }
  }
  throw new Error('still not logged in');
}

async function connect() {
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(transport);
}

await loggedIn(connect);
const who = await loggedIn(() => client.callTool({ name: 'who', arguments: {} }));
const sent = await loggedIn(() => client.callTool({ name: 'transfer', arguments: {} }));
console.log(JSON.stringify({
  era: client.getProtocolEra(),
  who: who.content[0].text,
  transfer: sent.content[0].text,
  asked,
}));
await client.close();
