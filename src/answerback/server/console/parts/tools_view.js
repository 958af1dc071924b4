// The tools: a searchable list, a form, and the replies.

function ToolsView() {
  const { lists, chosen, connecting, server } = useStore();
  const tool = lists.tools.find((each) => each.name === chosen.tools) || firstTool(lists.tools);
  const choose = (name) => update({ chosen: { ...state.chosen, tools: name } });
  let none = lists.tools.length ? "Choose a tool." : "The server has no tools.";
  if (connecting) none = "Connecting to the server …";
  return html`<div class="split">
    <${ToolList} tools=${lists.tools} chosen=${tool} choose=${choose} />
    <div class="detail">${tool ? html`<${ToolView} key=${`${server.about.mcp} ${tool.name}`} tool=${tool} />` : html`<p class="hint">${none}</p>`}</div>
  </div>`;
}

function ToolView({ tool }) {
  const { server, calls, drafts, shown } = useStore();
  const args = useMemo(
    () => drafts[tool.name] ?? initialArguments(tool.inputSchema),
    [tool, drafts[tool.name]],
  );
  const setArgs = (changed) => update({ drafts: { ...state.drafts, [tool.name]: changed } });
  const call = calls.find((each) => each.id === shown[tool.name]);
  // The same as in the call shown, when the user returns to the tool. Recomputed until the user
  // chooses: another server's wires are found one by one.
  const [chosenWires, setWireIds] = useState(call ? call.wireIds : null);
  const wireIds = chosenWires || firstWires(server, tool);
  const [task, setTask] = useState(() => (call ? call.task : firstTaskChoice(tool)));
  return html`<section aria-label=${`The tool ${tool.name}`}>
    <${ToolHead} tool=${tool} />
    <${ArgumentsForm}
      schema=${tool.inputSchema}
      value=${args}
      change=${setArgs}
      sent=${call && call.args}
      replies=${call && call.replies}
      running=${Boolean(call && call.running)}
      disabled=${!wireIds.length}
      warning=${isDestructive(tool) ? `Call ${tool.title || tool.name} …` : ""}
      call=${(given) => runCall(server, tool, given, wireIds, task)}
    >
      <${WireChoice} server=${server} tool=${tool} chosen=${wireIds} choose=${setWireIds} />
      <${TaskChoice} tool=${tool} chosen=${task} choose=${setTask} />
    <//>
    ${call ? html`<${ReplyView} call=${call} />` : html`<${NoReply} server=${server} wireIds=${wireIds} />`}
  </section>`;
}

const HINTS = {
  readOnlyHint: "read-only",
  destructiveHint: "destructive",
  idempotentHint: "idempotent",
};

// The tool's name, and what its author says about it.
function ToolHead({ tool }) {
  const hints = tool.annotations || {};
  const words = Object.keys(HINTS).filter((name) => hints[name] === true);
  const title = tool.title || tool.name;
  return html`<h2>${title} ${title === tool.name ? "" : html`<code class="tool-name">${tool.name}</code>`}</h2>
    ${words.length || tagsOf(tool).length || gateMarks(tool).length
      ? html`<p class="marks">
          ${words.map((name) => html`<span class=${`mark ${name}`}>${HINTS[name]}</span>`)}
          ${gateMarks(tool).map((text) => html`<span class="mark gate">${text}</span>`)}
          ${tagsOf(tool).map((tag) => html`<span class="mark">${tag}</span>`)}
        </p>`
      : ""}
    ${tool.description ? html`<p class="description">${tool.description}</p>` : ""}`;
}
