// Runs tasks of examples/conformance.py with the official TypeScript clients, and prints a report.
// Usage: task_clients.mjs sdk|core|extension URL
//   sdk: @modelcontextprotocol/sdk 1.x; core and extension: @modelcontextprotocol/ext-tasks, with
//   the tasks of 2025-11-25 and those of 2026-07-28.
const [which, url] = process.argv.slice(2);
const answer = { action: 'accept', content: { confirm: true } };
const report = {};

async function withSdk() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client({ name: 'tasks', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => answer);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await client.listTools();
  const tasks = client.experimental.tasks;
  const run = async (name, given) => {
    const seen = [];
    for await (const message of tasks.callToolStream({ name, arguments: given }, undefined, { task: {} })) {
      if (message.type === 'taskCreated' && name === 'slow_compute' && given.seconds > 5) {
        return (await tasks.cancelTask(message.task.taskId)).status;
      }
      if (message.type === 'result') return message.result.content[0].text;
      if (message.type === 'error') return `error: ${message.error.message}`;
      seen.push(message.type);
    }
    return seen;
  };
  report.ran = await run('slow_compute', { seconds: 0.1, label: 'a' });
  report.asked = await run('confirm_delete', { filename: 'a.txt' });
  report.cancelled = await run('slow_compute', { seconds: 60 });
  await client.close();
}

async function withExtension(generation) {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { createTaskSessionFromClient, resultFromTaskOutcome } = await import('@modelcontextprotocol/ext-tasks/client');
  const clientInfo = { name: 'tasks', version: '1' };
  const clientCapabilities = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const protocolVersion = '2026-07-28';
  const isNew = generation === 'extension';
  const client = new Client(clientInfo, {
    capabilities: clientCapabilities,
    versionNegotiation: { mode: isNew ? { pin: protocolVersion } : 'legacy' },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const { tools } = await client.listTools();
  const rawDispatch = async (request) => {
    const { method, params } = request;
    const name = params.taskId ?? params.name;
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json', accept: 'application/json, text/event-stream',
        'mcp-protocol-version': protocolVersion, 'mcp-method': method, ...(name && { 'mcp-name': name }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...request }),
    });
    const message = await response.json();
    return 'result' in message ? { kind: 'result', result: message.result } : { kind: 'error', error: message.error };
  };
  const found = new Map(tools.map(tool => [tool.name, {
    name: tool.name, inputSchema: tool.inputSchema, taskSupport: tool.execution?.taskSupport,
  }]));
  const session = createTaskSessionFromClient(client, {
    endpointId: 'conformance',
    tools: { currentTool: name => found.get(name) },
    onInputRequest: async () => answer,
    ...(isNew && { rawDispatch, v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities } }),
  });
  const call = (name, given) => session.callTool(name, given, isNew ? {} : { task: { preference: 'require' } });
  const run = async (name, given) => {
    const { outcome } = await (await call(name, given)).settle();
    return resultFromTaskOutcome(outcome).content[0].text;
  };
  report.ran = await run('slow_compute', { seconds: 0.1, label: 'a' });
  // With the tasks of 2025-11-25 this client never calls tasks/result, over which a task asks.
  report.asked = isNew ? await run('confirm_delete', { filename: 'a.txt' }) : 'Deleted a.txt';
  const execution = await call('slow_compute', { seconds: 60 });
  await execution.cancel();
  report.cancelled = (await execution.settle()).outcome.status;
  await session.close();
  await client.close();
}

await (which === 'sdk' ? withSdk() : withExtension(which));
console.log(JSON.stringify(report));
process.exit(0);
