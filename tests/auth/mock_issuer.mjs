// oauth2-mock-server, which signs whatever it is told to. It reads lines of JSON with "claims" and
// "header" from stdin, and prints a token for each; its first line is its address.
import { createInterface } from 'node:readline';
import { OAuth2Server } from 'oauth2-mock-server';

const server = new OAuth2Server();
await server.issuer.keys.generate('RS256');
await server.start(0, '127.0.0.1');
server.issuer.url = `http://127.0.0.1:${server.address().port}`;
console.log(server.issuer.url);
for await (const line of createInterface({ input: process.stdin })) {
  const { claims, header } = JSON.parse(line);
  const token = await server.issuer.buildToken({
    scopesOrTransform: (head, payload) => {
      Object.assign(head, header);
      Object.assign(payload, claims);
      for (const [name, value] of Object.entries(payload)) if (value === null) delete payload[name];
    },
  });
  console.log(token);
}
await server.stop();
