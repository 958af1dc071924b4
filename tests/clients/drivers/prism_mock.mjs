// Prism in place of the server: it makes each answer from the OpenAPI document alone.
import { URL_ } from './driving.mjs';
import { PORT, start } from './gateway.mjs';

const calls = JSON.parse(process.env.CLIENTS_CALLS);
await start('@stoplight/prism-cli/dist/index.js', 'mock', `${URL_}/openapi.json`, '--port', PORT);
for (const [name, args] of calls) {
  const response = await fetch(`http://127.0.0.1:${PORT}/functions/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify(args),
  });
  const text = await response.text();
  if (response.status !== 200) {
    process.stdout.write(`${name} ${JSON.stringify(args)}: ${response.status} ${text}\n`);
    process.exitCode = 1;
  }
}
process.exit();
