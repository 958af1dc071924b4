// A real identity provider on loopback: oidc-provider with resource indicators, dynamic client
// registration and JWT access tokens. Every visitor is logged in as alice and consents, except those
// who send the header x-refuse. The tokens of clients named "short" end after a second.
// Usage: identity_provider.mjs; it prints its address, and ends with its stdin.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const server = createServer();
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', 'accounts:read', 'accounts:write'],
  cookies: { keys: ['only for tests'] },
  clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    introspection: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: 'accounts:read accounts:write',
        audience: resource,
        accessTokenTTL: ctx.oidc.client?.clientName === 'short' ? 1 : 600,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});

async function consent({ params, session, grantId, prompt }) {
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  return { consent: { grantId: await grant.save() } };
}

// A client registers with the scopes that it needs first, and may ask for others later.
async function registration(request) {
  const chunks = await Array.fromAsync(request);
  const { scope, ...metadata } = JSON.parse(Buffer.concat(chunks));
  request.body = metadata;
}

const answer = provider.callback();
server.on('request', async (request, response) => {
  if (request.method === 'POST' && request.url === '/reg') await registration(request);
  if (!request.url.startsWith('/interaction/')) return answer(request, response);
  const details = await provider.interactionDetails(request, response);
  const result = request.headers['x-refuse']
    ? { error: 'access_denied' }
    : details.prompt.name === 'login'
      ? { login: { accountId: 'alice' } }
      : await consent(details);
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
});

console.log(issuer);
process.stdin.on('end', () => process.exit()).resume();
