// The whole page: the header, the tabs and the open view.

const VIEWS = [
  { id: "start", name: "Start", component: StartView },
  { id: "tools", name: "Tools", component: ToolsView },
  { id: "resources", name: "Resources", component: ResourcesView },
  { id: "prompts", name: "Prompts", component: PromptsView },
  { id: "tasks", name: "Tasks", component: TasksView },
  { id: "log", name: "Log", component: LogView },
  { id: "history", name: "History", component: HistoryView },
];

function Console() {
  const { about, view, error, server, problem } = useStore();
  if (error) return html`<main class="fatal"><h1>Answerback</h1><p role="alert">${error}</p></main>`;
  if (!server) return html`<main class="fatal"><p>Connecting …</p></main>`;
  const open = VIEWS.find((each) => each.id === view) || VIEWS[0];
  const heading = headingOf(about, server);
  return html`<header>
      <h1>${heading.name}<span class="version">${heading.version}</span></h1>
      <${ServerPicker} />
      <${Tabs} label="Views" tabs=${VIEWS} chosen=${open.id} choose=${(id) => update({ view: id })} />
      <${LoginButton} />
    </header>
    <${LoginDialog} />
    <${ConfirmDialog} />
    <main><${OtherQuestions} />${problem ? html`<${ServerProblem} />` : html`<${open.component} />`}</main>`;
}

async function start() {
  render(html`<${Console} />`, document.getElementById("app"));
  try {
    const about = await fetchJson("console/about.json");
    const servers = about.servers.map((each) => new Server(each));
    const token = (about.tokens && sessionStorage.getItem(TEST_TOKEN)) || "";
    update({ about, servers, token });
    document.title = `${about.title || about.name} · Answerback`;
    await openServer(servers[0]);
    // A restarted server has different keys.
    if (token && state.needsLogin) await useToken("");
  } catch (error) {
    update({ error: `The console cannot reach the server: ${error.message}` });
  }
}

start();
