// The command line of the MCP Inspector, which is started for each call.
import { spawnSync } from 'node:child_process';
import { COMMAND, URL_, WIRE, answers, ofResult } from './driving.mjs';

const target = WIRE === 'stdio' ? COMMAND : [`${URL_}/mcp`, '--transport', 'http'];
await answers((name, args) => {
  const values = Object.entries(args).map(([key, value]) => (
    `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`
  ));
  const options = values.flatMap(value => ['--tool-arg', value]);
  const command = ['node_modules/.bin/mcp-inspector', '--cli', ...target, '--method', 'tools/call',
    '--tool-name', name, ...options];
  // A failed tool ends it with an exit status, and the result is printed all the same.
  return ofResult(JSON.parse(spawnSync(process.execPath, command).stdout));
});
