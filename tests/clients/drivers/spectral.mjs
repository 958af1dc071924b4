// The linter Spectral, with the rules for OpenAPI.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { URL_ } from './driving.mjs';

writeFileSync('openapi.json', await (await fetch(`${URL_}/openapi.json`)).text());
writeFileSync('.spectral.json', '{"extends": "spectral:oas"}');
const done = spawnSync(process.execPath, [
  'node_modules/@stoplight/spectral-cli/dist/index.js', 'lint', 'openapi.json', '--ruleset', '.spectral.json',
], { stdio: ['ignore', 1, 1] });
process.exit(done.status);
