// A client made by @hey-api/openapi-ts.
import { URL_ } from './driving.mjs';
import { callGenerated, run } from './typescript.mjs';

await callGenerated(
  () => run('@hey-api/openapi-ts/bin/run.js', '-i', './made/openapi.json', '-o', './made/client',
    '-c', '@hey-api/client-fetch'),
  `
import * as api from './client';
import { client } from './client/client.gen';
client.setConfig({ baseUrl: '${URL_}', headers: { Accept: 'application/json' } });
export async function typed(): Promise<[string, number]> {
  const product = await api.functionsProduct({ body: { sku: 'A7' } });
  const sum = await api.functionsAdd({ body: { x: 1 } });
  return [product.data!.sku, sum.data!.result];
}
export async function call(tool: string, body: object) {
  await typed();
  const name = 'functions_' + tool;
  const camel = name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  const { data, error, response } = await (api as any)[camel]({ body });
  return [response, data ?? error];
}
`,
);
