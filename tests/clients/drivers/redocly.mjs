// The linter of Redocly, with the rules that it recommends.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { URL_ } from './driving.mjs';

writeFileSync('openapi.json', await (await fetch(`${URL_}/openapi.json`)).text());
const done = spawnSync(process.execPath, ['node_modules/@redocly/cli/bin/cli.js', 'lint', 'openapi.json'], {
  stdio: ['ignore', 1, 1],
});
process.exit(done.status);
