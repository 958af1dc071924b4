// Prism between a client and the server: it refuses what the OpenAPI document does not allow.
import { URL_, answers, ofResponse } from './driving.mjs';
import { PORT, start } from './gateway.mjs';

await start('@stoplight/prism-cli/dist/index.js', 'proxy', `${URL_}/openapi.json`, URL_,
  '--errors', '--port', PORT);
await answers(async (name, args) => {
  const response = await fetch(`http://127.0.0.1:${PORT}/functions/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify(args),
  });
  return ofResponse(response, await response.json());
});
