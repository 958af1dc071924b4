// Tool calls: the wires they use, what came back, and the history of all calls.

let nextCall = 1;

// A tool that declares itself read-only or idempotent may run once for each wire.
function isRepeatable(tool) {
  const hints = tool.annotations || {};
  return hints.readOnlyHint === true || hints.idempotentHint === true;
}

// The hint is meaningless for a read-only tool.
function isDestructive(tool) {
  const hints = tool.annotations || {};
  return hints.destructiveHint === true && hints.readOnlyHint !== true;
}

// Asks the user before a destructive tool is called; returns whether it may be.
async function isConfirmed(tool, args) {
  if (!isDestructive(tool)) return true;
  state.confirming?.answer(false);
  const isYes = await new Promise((answer) => update({ confirming: { tool, args, answer } }));
  update({ confirming: null });
  return isYes;
}

function ConfirmDialog() {
  const { confirming } = useStore();
  const dialog = useModal(Boolean(confirming));
  const answer = (isYes) => confirming?.answer(isYes);
  const name = confirming && (confirming.tool.title || confirming.tool.name);
  return html`<dialog ref=${dialog} aria-labelledby="confirm-title" onClose=${() => answer(false)}>
    ${confirming
      ? html`<h2 id="confirm-title">Call ${name}?</h2>
          <p>This tool is destructive: it may delete or overwrite something.</p>
          <${Json} value=${confirming.args} label="Arguments" />
          <div class="call-row">
            <button type="button" class="main danger" onClick=${() => answer(true)}>Call ${name}</button>
            <button type="button" autofocus onClick=${() => answer(false)}>Do not call</button>
          </div>`
      : ""}
  </dialog>`;
}

// The wires selected initially: all, or just one if each call may change something.
function firstWires(server, tool) {
  const wires = server.wires();
  if (isRepeatable(tool)) return wires.map((wire) => wire.id);
  return [(wires.find((wire) => wire.id !== "rest") || wires[0]).id];
}

function changeCall(id, change) {
  update({ calls: state.calls.map((call) => (call.id === id ? { ...call, ...change } : call)) });
}

// Calls a tool over each of the wires, one after the other, so that their times are comparable.
// `task` says whether a tool that may run as a task should; it is undefined for other tools.
async function runCall(server, tool, args, wireIds, task) {
  if (!(await isConfirmed(tool, args))) return;
  const abort = new AbortController();
  const wires = server.wires().filter((wire) => wireIds.includes(wire.id));
  const call = {
    id: nextCall++,
    tool,
    args,
    wireIds,
    task,
    at: new Date(),
    abort,
    running: true,
    replies: wires.map((wire) => ({ wire: wire.id, name: wire.name, waiting: true })),
    views: null,
    viewsError: "",
  };
  update({
    calls: [call, ...state.calls].slice(0, MAX_KEPT),
    shown: { ...state.shown, [tool.name]: call.id },
  });
  const place = placeOf(call);
  const progress = (params) => recordProgress(place, params);
  let { replies } = call;
  for (const wire of wires) {
    const options = { signal: abort.signal, progress, place, task };
    const found = abort.signal.aborted
      ? { wire: wire.id, ok: false, cancelled: true, body: null, ms: 0 }
      : await server.call(wire.id, tool.name, args, options);
    const reply = { name: wire.name, ...found };
    replies = replies.map((each) => (each.wire === wire.id ? reply : each));
    changeCall(call.id, { replies });
    clearActivity(place);
  }
  changeCall(call.id, { running: false });
  await loadViews(call.id, tool, replies);
}

// Where a call's questions, messages and progress are shown.
function placeOf(call) {
  return { id: `call ${call.id}`, view: "tools", entry: call.tool.name };
}

// Asks the server how each dialect writes the reply, and what each host shows a model.
async function loadViews(id, tool, replies) {
  const reply = replies.find((each) => each.version);
  if (!reply) return;
  const { name, outputSchema, _meta } = tool;
  const body = { result: reply.result, tool: { name, outputSchema, _meta }, version: reply.version };
  try {
    changeCall(id, { views: await fetchJson("console/views", body) });
  } catch (error) {
    changeCall(id, { viewsError: error.message });
  }
}

// Opens an earlier call in its tool's view, with its arguments in the form.
function openCall(call) {
  const { name } = call.tool;
  update({
    view: "tools",
    chosen: { ...state.chosen, tools: name },
    drafts: { ...state.drafts, [name]: call.args },
    shown: { ...state.shown, [name]: call.id },
  });
}

function WireChoice({ server, tool, chosen, choose }) {
  const wires = server.wires();
  if (wires.length < 2) return "";
  const all = wires.map((wire) => wire.id);
  const repeatable = isRepeatable(tool);
  const toggle = (id) =>
    choose(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  const every = !repeatable && chosen.length === wires.length;
  return html`<fieldset class="wire-choice">
    <legend class="hidden">Wires</legend>
    ${wires.map(
      (wire) => html`<label class="pill"><input
        type=${repeatable ? "checkbox" : "radio"}
        name="wires"
        checked=${chosen.includes(wire.id) && !every}
        onChange=${() => (repeatable ? toggle(wire.id) : choose([wire.id]))}
      /><span>${wire.name}</span></label>`,
    )}
    ${repeatable
      ? ""
      : html`<label class="pill"><input
            type="radio"
            name="wires"
            checked=${every}
            onChange=${() => choose(all)}
          /><span>Every wire</span></label>`}
    </fieldset>
    ${repeatable ? "" : html`<p class="hint wire-hint">${wireHint(every, wires.length)}</p>`}`;
}

function wireHint(every, count) {
  if (every) return `The tool runs ${count} times, once for each wire.`;
  return "This tool may change something, so it runs only once, over one wire.";
}
