// A client made by orval.
import { writeFileSync } from 'node:fs';
import { URL_ } from './driving.mjs';
import { callGenerated, run } from './typescript.mjs';

await callGenerated(
  () => {
    const output = { target: './client.ts', client: 'fetch', baseUrl: URL_ };
    const config = { app: { input: './openapi.json', output } };
    writeFileSync('made/orval.config.cjs', `module.exports = ${JSON.stringify(config)}`);
    run('orval/dist/bin/orval.js', '--config', 'made/orval.config.cjs');
  },
  `
import * as api from './client';
const options = { headers: { Accept: 'application/json' } };
export async function typed(): Promise<[string, number]> {
  const product = await api.functionsProduct({ sku: 'A7' }, options);
  const sum = await api.functionsAdd({ x: 1 }, options);
  if (product.status !== 200 || sum.status !== 200) throw new Error('not a success');
  return [product.data.sku, sum.data.result];
}
export async function call(tool: string, body: object) {
  await typed();
  const name = 'functions_' + tool;
  const camel = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  const { data, status, headers } = await (api as any)[camel](body, options);
  return [{ ok: status === 200, headers }, data];
}
`,
);
