// openapi-typescript makes the types, openapi-fetch calls.
import { URL_ } from './driving.mjs';
import { callGenerated, run } from './typescript.mjs';

await callGenerated(
  () => run('openapi-typescript/bin/cli.js', 'made/openapi.json', '-o', 'made/schema.ts'),
  `
import createClient from 'openapi-fetch';
import type { paths } from './schema';
const client = createClient<paths>({ baseUrl: '${URL_}', headers: { Accept: 'application/json' } });
export async function typed(): Promise<[string, number]> {
  const product = await client.POST('/functions/product', { body: { sku: 'A7' } });
  const sum = await client.POST('/functions/add', { body: { x: 1 } });
  return [product.data!.sku, sum.data!.result];
}
export async function call(tool: string, body: object) {
  await typed();
  const { data, error, response } = await (client as any).POST('/functions/' + tool, { body });
  return [response, data ?? error];
}
`,
);
