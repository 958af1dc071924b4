// A running request: its progress, log messages, questions, and how to cancel it.

// A place is where a request was made: { id, view, entry }. Messages that the server sends while it
// is running are shown there.
function recordProgress(place, { progress, total, message }) {
  const before = state.activity[place.id] || {};
  const number = (value) => (value === undefined ? undefined : Number(value));
  const activity = { ...before, progress: { progress: number(progress), total: number(total), message } };
  update({ activity: { ...state.activity, [place.id]: activity } });
}

function recordMessage(message, version, place) {
  const entry = { ...received(message, version), place: place && place.id };
  update({ messages: keep(state.messages, entry) });
}

function clearActivity(place) {
  const { [place.id]: _, ...others } = state.activity;
  update({ activity: others });
}

// Sends a view's request that is not a tool call, and keeps the response in the store.
async function startRun(place, send) {
  const abort = new AbortController();
  const set = (run) => update({ runs: { ...state.runs, [place.id]: run } });
  clearActivity(place);
  set({ running: true, abort, at: new Date() });
  const progress = (params) => recordProgress(place, params);
  try {
    const { result, ms } = await send({ signal: abort.signal, progress, place });
    set({ result, ms });
  } catch (error) {
    set(error.name === "AbortError" ? { cancelled: true } : { error });
  }
}

// The progress, messages and questions in one place. `abort` ends the request.
function Activity({ place, running, abort }) {
  const { activity, messages } = useStore();
  const { progress } = activity[place.id] || {};
  const logs = messages.filter((each) => each.place === place.id);
  const questions = useQuestions(place);
  if (!running && !logs.length && !questions.length) return "";
  return html`<div class="activity">
    ${running
      ? html`<div class="activity-row">
          <${Progress} progress=${progress} />
          <button type="button" class="small" onClick=${() => abort.abort()}>Cancel</button>
        </div>`
      : ""}
    ${questions.map((question) => html`<${QuestionView} key=${question.id} question=${question} />`)}
    ${logs.length ? html`<${LogLines} label="Log messages from this call" messages=${logs} />` : ""}
  </div>`;
}

function Progress({ progress }) {
  const { progress: done, total, message } = progress || {};
  const share = total > 0 ? Math.min(done / total, 1) : undefined;
  const count = total > 0 ? `${done} of ${total}` : done === undefined ? "" : String(done);
  return html`<div class="progress">
    <progress aria-label="Progress" value=${share} max="1"></progress>
    <span role="status">${[message || (done === undefined ? "Running …" : ""), count].filter(Boolean).join(" · ")}</span>
  </div>`;
}

// How a request that is not a tool call ended; null while it is running.
function RunFailure({ run }) {
  if (run.cancelled) return html`<p class="hint" role="status">Cancelled.</p>`;
  if (!run.error) return "";
  const { message, code, data, challenge } = run.error;
  const refusal = refusalOfError(run.error);
  return html`<div role="alert">
    <p class="problem">${message}${code === undefined ? "" : html` <code>${code}</code>`}</p>
    ${data === undefined ? "" : html`<${Json} value=${data} label="The error's data" />`}
    ${refusal ? html`<${RefusalView} refusal=${refusal} challenge=${challenge} />` : ""}
  </div>`;
}

// Chooses the MCP version that a view uses.
function VersionChoice({ server, chosen, choose }) {
  const wires = server.wires().filter((wire) => wire.id !== "rest");
  if (wires.length < 2) return "";
  return html`<fieldset class="wire-choice">
    <legend class="hidden">MCP version</legend>
    ${wires.map(
      (wire) => html`<label class="pill" key=${wire.id}><input
        type="radio"
        name="version"
        checked=${chosen === wire.id}
        onChange=${() => choose(wire.id)}
      /><span>${wire.name}</span></label>`,
    )}
  </fieldset>`;
}

// The version that a view uses: the chosen one, or else the first.
function useVersion() {
  const { server, version } = useStore();
  const known = server.about.versions;
  return [known.includes(version) ? version : known[0], (id) => update({ version: id })];
}
