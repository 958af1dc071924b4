// mcporter, which is started for each call.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { COMMAND, URL_, WIRE, answers, ofResult } from './driving.mjs';

const app = WIRE === 'stdio'
  ? { command: COMMAND[0], args: COMMAND.slice(1) }
  : { baseUrl: `${URL_}/mcp`, allowHttp: true };
writeFileSync('mcporter.json', JSON.stringify({ mcpServers: { app }, imports: [] }));
await answers((name, args) => {
  const command = ['node_modules/mcporter/dist/cli.js', '--config', 'mcporter.json', 'call',
    `app.${name}`, '--args', JSON.stringify(args), '--output', 'json'];
  const text = execFileSync(process.execPath, command, { stdio: ['ignore', 'pipe', 2] });
  const answer = JSON.parse(String(text));
  return answer.content === undefined ? { data: answer } : ofResult(answer);
});
