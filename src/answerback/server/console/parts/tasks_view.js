// The tasks: a list, and the state, the questions and the result of the chosen one.

function TasksView() {
  const { tasks, chosen, server } = useStore();
  const [error, setError] = useState("");
  useEffect(() => {
    listTasks(server).catch((failure) => setError(failure.message));
  }, [server]);
  const open = tasks.find((task) => task.id === chosen.tasks) || tasks[0];
  const choose = (id) => update({ chosen: { ...state.chosen, tasks: id } });
  const groups = [
    { title: "Running", entries: tasks.filter((task) => !isFinal(task)).map(taskEntry) },
    { title: "Ended", entries: tasks.filter(isFinal).map(taskEntry) },
  ];
  return html`<div class="split">
    <div>
      ${tasks.length ? html`<${EntryList} label="Tasks" groups=${groups} chosen=${open.id} choose=${choose} />` : ""}
      <${FindTask} choose=${choose} />
      ${error ? html`<p class="problem" role="alert">The tasks cannot be listed: ${error}</p>` : ""}
    </div>
    <div class="detail">
      ${open
        ? html`<${TaskView} key=${open.id} task=${open} />`
        : html`<p class="hint">No tasks yet. Call a tool as a task, and it is listed here.</p>`}
    </div>
  </div>`;
}

function taskEntry({ id, tool, status, statusMessage, wire }) {
  const hint = [status.replace("_", " "), statusMessage, wireName(wire)].filter(Boolean).join(" · ");
  return { key: id, name: tool || id, hint };
}

function wireName(wire) {
  return wire === "rest" ? "REST" : `MCP ${wire}`;
}

// A task that another program created: anyone who knows its id may watch it.
function FindTask({ choose }) {
  const { server } = useStore();
  const [id, setId] = useState("");
  const [version, setVersion] = useState(server.about.versions[0]);
  const [error, setError] = useState("");
  const find = async (event) => {
    event.preventDefault();
    setError("");
    try {
      const { result } = await server.client(version).request("tasks/get", { taskId: id.trim() });
      addTask(version, result);
      choose(result.taskId);
      setId("");
    } catch (failure) {
      setError(failure.message);
    }
  };
  return html`<details class="find-task">
    <summary>Find a task by its id</summary>
    <form onSubmit=${find}>
      <label>Id <input required value=${id} autocomplete="off" onInput=${(event) => setId(event.currentTarget.value)} /></label>
      <label>MCP version
        <select value=${version} onChange=${(event) => setVersion(event.currentTarget.value)}>
          ${server.about.versions.map((each) => html`<option key=${each}>${each}</option>`)}
        </select>
      </label>
      <button type="submit" class="small">Find</button>
      ${error ? html`<p class="problem" role="alert">${error}</p>` : ""}
    </form>
  </details>`;
}

function TaskView({ task }) {
  const { server } = useStore();
  const [error, setError] = useState("");
  const questions = useQuestions(task.place);
  useEffect(() => {
    if (!task.result && !task.error) followTask(server, task);
  }, [task.id]);
  const cancel = async () => {
    setError("");
    try {
      await taskMethods(server, task).cancel();
    } catch (failure) {
      setError(failure.message);
    }
  };
  const facts = {
    Wire: wireName(task.wire),
    Created: localTime(task.createdAt),
    Changed: localTime(task.lastUpdatedAt),
    "Kept for": task.ttl === null ? "" : `${Math.round(Number(task.ttl) / 1000).toLocaleString("en")} s`,
  };
  return html`<section aria-label=${`The task ${task.id}`} class="task">
    <h2>${task.tool || "Task"} <code class="tool-name">${task.id}</code></h2>
    <p class=${`verdict ${stateKind(task)}`} role="status">${stateText(task)}</p>
    <dl class="facts">
      ${Object.entries(facts)
        .filter(([, text]) => text)
        .map(([name, text]) => html`<div key=${name}><dt>${name}</dt><dd>${text}</dd></div>`)}
    </dl>
    ${questions.map((question) => html`<${QuestionView} key=${question.id} question=${question} />`)}
    ${isFinal(task) ? "" : html`<button type="button" onClick=${cancel}>Cancel the task</button>`}
    ${error ? html`<p class="problem" role="alert">${error}</p>` : ""}
    <${TaskEnd} task=${task} />
  </section>`;
}

function TaskEnd({ task }) {
  const { result, error } = task;
  if (error && error.name !== "AbortError") return html`<p class="problem">${error.message}</p>`;
  if (!result) return "";
  const isRest = task.wire === "rest";
  return html`<article class=${`wire ${isRest ? (result.ok ? "ok" : "failed") : result.isError ? "failed" : "ok"}`} aria-label="The result">
    <header><h3>Result</h3></header>
    <${WireBody}
      part="data"
      reply=${isRest ? { name: "REST", ...result } : { name: wireName(task.wire), ok: !result.isError, result, body: result }}
    />
  </article>`;
}

const STATE_TEXTS = {
  working: "Working",
  input_required: "Waiting for an answer",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
};

function stateText({ status, statusMessage }) {
  return [STATE_TEXTS[status] || status, statusMessage].filter(Boolean).join(" · ");
}

function stateKind({ status }) {
  return { completed: "ok", failed: "failed", cancelled: "failed", input_required: "note" }[status] || "waiting";
}

function localTime(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString();
}
