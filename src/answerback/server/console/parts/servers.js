// The servers to choose from: one, unless `answerback console` opened an mcp.json.

const PROBE_MS = 10_000;
const EMPTY = {
  lists: { tools: [], resources: [], templates: [], prompts: [] },
  chosen: {},
  calls: [],
  drafts: {},
  shown: {},
  messages: [],
  activity: {},
  runs: {},
  tasks: [],
};

// Opens a server, and restores what the page showed for it earlier.
async function openServer(server) {
  const before = state.server;
  if (before) {
    before.kept = Object.fromEntries(Object.keys(EMPTY).map((name) => [name, state[name]]));
  }
  update({ ...EMPTY, ...server.kept, server, connecting: true, problem: "", needsLogin: false });
  const found = { connecting: false };
  try {
    if (server.about.error) throw new Error(server.about.error);
    if (server.about.foreign) await findVersion(server);
    found.lists = await server.load();
    server.listen();
  } catch (error) {
    found.problem = describeProblem(error);
    found.needsLogin = error.status === 401;
  }
  if (state.server === server) update(found);
  // Not earlier: another child process of the server would slow the first one down.
  if (found.lists) findOtherVersions(server);
}

// A child process often prints the reason before it exits.
function describeProblem(error) {
  const said = error.data && error.data.stderr;
  return said ? `${error.message}\n\n${said}` : error.message;
}

// Connects with the first MCP version that the server supports. The others are tried later, in
// the background: older servers may never answer a request with an unknown version.
async function findVersion(server) {
  if (server.candidates) return;
  const [first, ...others] = server.about.versions;
  server.candidates = others;
  server.about.versions = [first];
  try {
    await server.client(first).connect();
  } catch (error) {
    server.about.versions = [];
    await findOtherVersions(server);
    if (server.about.versions.length) return;
    server.about.versions = [first, ...others];
    server.candidates = null;
    throw error;
  }
}

async function findOtherVersions(server) {
  const versions = server.candidates || [];
  server.candidates = [];
  for (const version of versions) {
    try {
      await server.client(version).connect(AbortSignal.timeout(PROBE_MS));
      server.about.versions = [...server.about.versions, version];
      update({});
    } catch {
      server.client(version).close();
      delete server.clients[version];
    }
  }
}

// The name that a foreign server gives itself is better than the command that starts it.
function headingOf(about, server) {
  const foreign = server && server.about.foreign;
  const info = foreign ? server.client().info : about;
  const { title, name, version } = info || {};
  return { name: title || name || (foreign ? server.about.name : ""), version };
}

function ServerPicker() {
  const { servers, server } = useStore();
  if (servers.length < 2) return null;
  return html`<label class="server-picker">
    <span>Server</span>
    <select
      value=${servers.indexOf(server)}
      onChange=${(event) => openServer(servers[event.target.value])}
    >
      ${servers.map((each, index) => html`<option value=${index}>${each.about.name}</option>`)}
    </select>
  </label>`;
}

function ServerProblem() {
  const { server, problem, needsLogin } = useStore();
  if (needsLogin) return html`<${LoginPage} reason=${problem} />`;
  return html`<section class="server-problem" role="alert">
    <h2>${server.about.name} cannot be used</h2>
    <pre>${problem}</pre>
    <button type="button" onClick=${() => openServer(server)}>Try again</button>
  </section>`;
}
