// Shared by the drivers: the target, the calls, and the report of the answers as JSON.
// An answer has the parts that driving.py describes.
export const WIRE = process.argv[2];
export const URL_ = process.env.CLIENTS_URL;
export const COMMAND = JSON.parse(process.env.CLIENTS_COMMAND);
const CALLS = JSON.parse(process.env.CLIENTS_CALLS);

export function ofBlocks(blocks) {
  const answer = { text: blocks.filter(each => each.type === 'text').map(each => each.text).join('\n') };
  for (const block of blocks) {
    if (block.type === 'image') answer.image = block.data;
    if (block.type === 'resource_link') answer.link = block.uri;
  }
  return answer;
}

export function ofResult(result) {
  const answer = { ...ofBlocks(result.content), error: Boolean(result.isError) };
  if (result.structuredContent !== undefined) answer.data = result.structuredContent;
  const failure = result._meta?.['answerback/error'];
  if (failure !== undefined) answer.code = failure.code;
  return answer;
}

// The parts of a REST response: its status, its JSON body, and the code in its header.
export function ofResponse(response, body) {
  if (!response.ok) {
    return { error: true, text: body.error, code: response.headers.get('x-error-code') };
  }
  return body.content === undefined ? { error: false, data: body } : { error: false, ...ofBlocks(body.content) };
}

export async function answers(call) {
  const found = [];
  for (const [tool, args] of CALLS) {
    try {
      found.push(await call(tool, args));
    } catch (error) {
      found.push({ error: true, text: `${error.name}: ${error.message}`, code: error.code });
    }
  }
  process.stdout.write(`\nANSWERS ${JSON.stringify(found)}\n`, () => process.exit(0));
}
