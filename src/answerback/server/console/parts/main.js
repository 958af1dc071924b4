// The page as a whole: the header, the tabs and the view that is open.

const VIEWS = [
  { id: "tools", name: "Tools", component: ToolsView },
  { id: "history", name: "History", component: HistoryView },
];

function Console() {
  const { about, view, error } = useStore();
  if (error) return html`<main class="fatal"><h1>Answerback</h1><p role="alert">${error}</p></main>`;
  if (!about) return html`<main class="fatal"><p>Connecting …</p></main>`;
  const open = VIEWS.find((each) => each.id === view) || VIEWS[0];
  return html`<header>
      <h1>${about.title || about.name}<span class="version">${about.version}</span></h1>
      <${Tabs} label="Views" tabs=${VIEWS} chosen=${open.id} choose=${(id) => update({ view: id })} />
    </header>
    <main><${open.component} /></main>`;
}

async function start() {
  render(html`<${Console} />`, document.getElementById("app"));
  try {
    const about = await fetchJson("console/about.json");
    const servers = about.servers.map((each) => new Server(each));
    update({ about, servers, server: servers[0] });
    document.title = `${about.title || about.name} · Answerback`;
    update({ lists: await servers[0].load() });
  } catch (error) {
    update({ error: `The console cannot reach the server: ${error.message}` });
  }
}

start();
