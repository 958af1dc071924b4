// Shared by the drivers of generated TypeScript: the document, the type check, and the calls.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { URL_, answers, ofResponse } from './driving.mjs';

export const run = (program, ...args) => execFileSync(
  process.execPath, [`node_modules/${program}`, ...args], { stdio: ['ignore', 2, 2] },
);

// Generates a client with *generate*, compiles *source*, which exports `call`, and makes the calls.
// `call` returns the response and its body.
export async function callGenerated(generate, source) {
  rmSync('made', { recursive: true, force: true });
  mkdirSync('made/out', { recursive: true });
  const document = await (await fetch(`${URL_}/openapi.json`)).text();
  writeFileSync('made/openapi.json', document);
  generate();
  writeFileSync('made/use.ts', source);
  writeFileSync('made/out/package.json', '{"type": "commonjs"}');
  run('typescript/bin/tsc', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'commonjs',
    '--moduleResolution', 'node10', '--outDir', 'made/out', '--rootDir', 'made', 'made/use.ts');
  const { call } = createRequire(import.meta.url)('./made/out/use.js');
  await answers(async (tool, body) => ofResponse(...await call(tool, body)));
}
