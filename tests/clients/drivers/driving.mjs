// Shared by the drivers: the target, the calls, and the report of the answers as JSON.
export const WIRE = process.argv[2];
export const URL_ = process.env.CLIENTS_URL;
export const COMMAND = JSON.parse(process.env.CLIENTS_COMMAND);
const CALLS = JSON.parse(process.env.CLIENTS_CALLS);

export async function answers(call) {
  const found = [];
  for (const [tool, args] of CALLS) {
    try {
      const answer = await call(tool, args);
      found.push(typeof answer === 'string' ? answer : JSON.stringify(answer) ?? '');
    } catch (error) {
      found.push(`${error.name}: ${error.message}`);
    }
  }
  process.stdout.write(`ANSWERS ${JSON.stringify(found)}\n`, () => process.exit(0));
}
