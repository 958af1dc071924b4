// Tasks: calls that outlive their request. They are watched until they end, over each wire.

const FINAL_STATES = new Set(["completed", "failed", "cancelled"]);
const MIN_POLL_MS = 100;
const MAX_POLL_MS = 5000;

// The task that a call became: a flat result in the stateless era, a member in the stateful one.
function taskIn(result) {
  if (result.resultType === "task") return result;
  return result.task && result.task.taskId ? result.task : null;
}

function isFinal(task) {
  return FINAL_STATES.has(task.status);
}

function changeTask(id, change) {
  update({ tasks: state.tasks.map((task) => (task.id === id ? { ...task, ...change } : task)) });
}

function findTask(id) {
  return state.tasks.find((task) => task.id === id);
}

// Adds a task to the ones the page knows about. `tool` is empty if the server does not name it.
function addTask(wire, members, tool = "", place) {
  const id = members.taskId;
  const task = { id, wire, tool, ...taskMembers(members) };
  task.place = place || { id: `task ${id}`, view: "tasks", entry: id };
  if (findTask(id)) changeTask(id, taskMembers(members));
  else update({ tasks: [task, ...state.tasks].slice(0, MAX_KEPT) });
  return findTask(id);
}

function taskMembers(members) {
  const { status, statusMessage = "", createdAt, lastUpdatedAt } = members;
  const poll = Number(members.pollIntervalMs ?? members.pollInterval ?? 500);
  const ttl = members.ttlMs ?? members.ttl ?? null;
  return { status, statusMessage, createdAt, lastUpdatedAt, poll, ttl };
}

// The task methods over a wire. `get` returns a task's members, and `inputRequests`.
function taskMethods(server, task) {
  return task.wire === "rest" ? restTaskMethods(server, task) : mcpTaskMethods(server, task);
}

function mcpTaskMethods(server, task) {
  const client = server.client(task.wire);
  const params = { taskId: task.id };
  const request = async (method, more) => {
    const { result } = await client.request(method, { ...params, ...more });
    return result;
  };
  return {
    get: () => request("tasks/get"),
    cancel: () => request("tasks/cancel"),
    answer: (inputResponses) => request("tasks/update", { inputResponses }),
    // In the stateless era, `tasks/get` has the result and the questions; in the stateful one, this
    // method waits for the result, and asks the questions while it waits.
    wait: client.stateless
      ? null
      : async (signal) => {
          const options = { signal, place: task.place };
          return (await client.request("tasks/result", params, options)).result;
        },
  };
}

function restTaskMethods(server, task) {
  const tool = encodeURIComponent(task.tool);
  const path = `${BASE}${server.about.functions}${tool}/tasks/${encodeURIComponent(task.id)}`;
  const send = async (method, address = path, body) => {
    const headers = { Accept: "*/*", ...ownHeaders() };
    if (body) headers["Content-Type"] = "application/json";
    return readRest(await fetch(address, { method, headers, body: body && JSON.stringify(body) }));
  };
  const members = (reply) => {
    if (!reply.ok) throw new RpcError({ message: reply.failure, data: reply.body }, reply.status);
    return reply.body;
  };
  return {
    get: async () => {
      const found = members(await send("GET"));
      // The reply to the call itself, as REST sends it.
      if (isFinal(found)) found.result = await send("GET", `${path}/result`);
      return found;
    },
    cancel: async () => members(await send("DELETE")),
    answer: async (inputResponses) => members(await send("POST", path, { inputResponses })),
    wait: null,
  };
}

// Watches a task until it ends, and shows its questions; returns { result } or { error }.
// Cancelling a call cancels its task.
async function followTask(server, { id }, { signal } = {}) {
  const task = findTask(id);
  if (task.following) return task.following;
  const following = watchTask(server, task, signal);
  changeTask(id, { following });
  const ended = await following.catch((error) => ({ error }));
  changeTask(id, { ...ended, following: null });
  return ended;
}

async function watchTask(server, task, signal) {
  const methods = taskMethods(server, task);
  const stop = new AbortController();
  const cancel = () => methods.cancel().catch(() => {});
  signal?.addEventListener("abort", cancel, { once: true });
  const waiting = methods.wait?.(stop.signal).then((result) => ({ result }), (error) => ({ error }));
  const asked = new Map();
  try {
    for (;;) {
      const found = await methods.get();
      changeTask(task.id, taskMembers(found));
      recordProgress(task.place, { message: `Task: ${stateText(found)}` });
      askForTask(task, found.inputRequests || {}, asked, methods);
      if (isFinal(found)) return await endOfTask(found, waiting);
      await pause(Math.min(Math.max(findTask(task.id).poll, MIN_POLL_MS), MAX_POLL_MS));
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
    stop.abort();
    for (const question of asked.values()) question.abort();
  }
}

async function endOfTask(found, waiting) {
  if (found.status === "cancelled") {
    return { error: new DOMException("The task was cancelled", "AbortError") };
  }
  if (waiting) return await waiting;
  if (found.result) return { result: found.result };
  return { error: new RpcError(found.error || { message: found.statusMessage }) };
}

// Shows a task's new questions, and withdraws those that are no longer open.
function askForTask(task, questions, asked, methods) {
  for (const [key, { method, params }] of Object.entries(questions)) {
    if (asked.has(key)) continue;
    const abort = new AbortController();
    asked.set(key, abort);
    const options = { place: task.place, signal: abort.signal };
    Promise.resolve()
      .then(() => askUser(method, params, options))
      .then((response) => methods.answer({ [key]: response }))
      .catch(() => {});
  }
  for (const [key, abort] of asked) if (!Object.hasOwn(questions, key)) abort.abort();
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// The user's earlier tasks; a server lists them only for users who have logged in.
async function listTasks(server) {
  for (const version of server.about.versions) {
    const client = server.client(version);
    await client.connect();
    const offered = client.capabilities.tasks;
    if (client.stateless || !offered || !offered.list) continue;
    for (const members of (await client.list("tasks/list", "tasks")).reverse()) {
      if (!findTask(members.taskId)) addTask(version, members);
    }
  }
}

// A tool that can run as a task does so if the user wants; a tool that must run as one always does.
function taskSupport(tool) {
  return (tool.execution || {}).taskSupport;
}

function firstTaskChoice(tool) {
  return { required: true, optional: false }[taskSupport(tool)];
}

function TaskChoice({ tool, chosen, choose }) {
  const support = taskSupport(tool);
  if (support === "required") return html`<p class="hint wire-hint">This tool runs only as a task.</p>`;
  if (support !== "optional") return "";
  return html`<label class="task-choice"><input
    type="checkbox"
    checked=${chosen}
    onChange=${(event) => choose(event.currentTarget.checked)}
  /> Run as a task</label>`;
}
