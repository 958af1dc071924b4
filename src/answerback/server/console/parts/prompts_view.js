// Prompts: a list, the arguments with suggestions, and the messages.

function PromptsView() {
  const { lists, chosen } = useStore();
  if (!lists.prompts.length) return html`<p class="hint">This server has no prompts.</p>`;
  const entries = lists.prompts.map(({ name, title, description }) => ({
    key: name,
    name: title || name,
    hint: firstLine(description),
  }));
  const open = lists.prompts.find(({ name }) => name === chosen.prompts) || lists.prompts[0];
  const choose = (name) => update({ chosen: { ...state.chosen, prompts: name } });
  return html`<div class="split">
    <${EntryList} label="Prompts" methods=${["prompts/list"]} groups=${[{ title: "Prompts", entries }]} chosen=${open.name} choose=${choose} />
    <div class="detail"><${PromptView} key=${open.name} prompt=${open} /></div>
  </div>`;
}

function PromptView({ prompt }) {
  const { server, runs } = useStore();
  const [version, setVersion] = useVersion();
  const [values, setValues] = useState({});
  const [showAll, setShowAll] = useState(false);
  const form = useRef(null);
  const place = { id: `prompt ${prompt.name}`, view: "prompts", entry: prompt.name };
  const run = runs[place.id];
  const client = server.client(version);
  const fields = prompt.arguments || [];
  const isMissing = ({ name, required }) => required && !values[name];
  const get = (event) => {
    event.preventDefault();
    if (fields.some(isMissing)) {
      setShowAll(true);
      focusLater(() => form.current.querySelector("[aria-invalid]"));
      return;
    }
    const params = { name: prompt.name, arguments: withoutEmpty(values) };
    startRun(place, (options) => client.request("prompts/get", params, options));
  };
  const ref = { type: "ref/prompt", name: prompt.name };
  const title = prompt.title || prompt.name;
  return html`<section aria-label=${`The prompt ${prompt.name}`}>
    <h2>${title} ${title === prompt.name ? "" : html`<code class="tool-name">${prompt.name}</code>`}</h2>
    ${prompt.description ? html`<p class="description">${prompt.description}</p>` : ""}
    <form class="call-form" ref=${form} onSubmit=${get} noValidate>
      ${fields.length ? "" : html`<p class="hint">This prompt takes no arguments.</p>`}
      ${fields.map(
        (field, at) => html`<${CompletedField}
          key=${field.name}
          id=${`argument-${at}`}
          name=${field.title || field.name}
          description=${field.description}
          required=${field.required}
          value=${values[field.name] || ""}
          change=${(text) => setValues({ ...values, [field.name]: text })}
          complete=${(text) => completions(client, ref, field.name, text, withoutEmpty({ ...values, [field.name]: "" }))}
          problem=${showAll && isMissing(field) ? "required" : ""}
        />`,
      )}
      <div class="call-row">
        <button type="submit" class="main" disabled=${Boolean(run && run.running)}>Get</button>
        <${VersionChoice} server=${server} chosen=${version} choose=${setVersion} />
      </div>
    </form>
    <${RunView} place=${place} run=${run}>
      ${run && run.result ? html`<${PromptMessages} result=${run.result} />` : ""}
    <//>
  </section>`;
}

function PromptMessages({ result }) {
  return html`${result.description ? html`<p class="hint">${result.description}</p>` : ""}
    <ol class="prompt-messages">
      ${(result.messages || []).map(
        (message, at) => html`<li key=${at} class=${`prompt-message ${message.role === "assistant" ? "assistant" : "user"}`}>
          <p class="role">${message.role}</p>
          <${Block} block=${message.content || {}} />
        </li>`,
      )}
    </ol>`;
}
