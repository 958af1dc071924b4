// The tools: a list to search, a form, and the replies.

function ToolsView() {
  const { lists, chosen } = useStore();
  const [words, setWords] = useState("");
  const shown = lists.tools.filter((tool) => matches(tool, words));
  const tool = lists.tools.find((each) => each.name === chosen.tools) || shown[0];
  return html`<div class="split">
    <nav class="list" aria-label="Tools">
      <label class="search">Search <input type="search" value=${words} onInput=${(event) => setWords(event.currentTarget.value)} /></label>
      <ul>
        ${shown.map(
          (each) => html`<li><button
            type="button"
            aria-current=${tool === each ? "true" : undefined}
            onClick=${() => update({ chosen: { ...state.chosen, tools: each.name } })}
          ><strong>${each.title || each.name}</strong><span>${(each.description || "").split("\n")[0]}</span></button></li>`,
        )}
      </ul>
    </nav>
    <div class="detail">${tool ? html`<${ToolView} key=${tool.name} tool=${tool} />` : html`<p>No tool.</p>`}</div>
  </div>`;
}

function matches(entry, words) {
  const text = `${entry.name} ${entry.title || ""} ${entry.description || ""}`.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function ToolView({ tool }) {
  const { server, calls, drafts, shown } = useStore();
  const args = drafts[tool.name] || {};
  const setArgs = (changed) => update({ drafts: { ...state.drafts, [tool.name]: changed } });
  const [wireIds, setWireIds] = useState(() => firstWires(server, tool));
  const call = calls.find((each) => each.id === shown[tool.name]);
  const running = Boolean(call && call.running);
  const submit = (event) => {
    event.preventDefault();
    runCall(server, tool, args, wireIds);
  };
  return html`<section aria-label=${`The tool ${tool.name}`}>
    <h2>${tool.title || tool.name}</h2>
    <p class="description">${tool.description}</p>
    <form onSubmit=${submit}>
      <${SchemaForm} schema=${tool.inputSchema} value=${args} change=${setArgs} />
      <div class="send">
        <${WireChoice} server=${server} tool=${tool} chosen=${wireIds} choose=${setWireIds} />
        <button type="submit" class="main" disabled=${running || !wireIds.length}>Call</button>
        <${WireHint} server=${server} tool=${tool} chosen=${wireIds} />
      </div>
    </form>
    ${call ? html`<${ReplyView} call=${call} />` : ""}
  </section>`;
}
