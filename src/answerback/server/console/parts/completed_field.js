// A text field for a prompt's or template's argument, with the server's suggestions below it.

const TYPING_MS = 120;

// `complete(text)` returns the values that the server suggests, or null if it suggests none.
function CompletedField({ id, name, description, required, value, change, complete, problem }) {
  const [values, setValues] = useState([]);
  const latest = useRef(0);
  const timer = useRef(0);
  const ask = (text, wait) => {
    const number = ++latest.current;
    clearTimeout(timer.current);
    timer.current = setTimeout(async () => {
      const found = await complete(text).catch(() => []);
      if (number === latest.current) setValues(found || []);
    }, wait);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const described = [description && `${id}-hint`, problem && `${id}-problem`].filter(Boolean);
  const others = values.filter((each) => each !== value);
  return html`<div class="field">
    <div class="field-head"><label for=${id}>
      <span class="field-name">${name}</span>
      ${required ? html`<span class="required">required</span>` : ""}
    </label></div>
    ${description ? html`<p class="hint" id=${`${id}-hint`}>${description}</p>` : ""}
    <input
      id=${id}
      autocomplete="off"
      value=${value}
      aria-invalid=${problem ? "true" : undefined}
      aria-describedby=${described.join(" ") || undefined}
      onFocus=${() => ask(value, 0)}
      onInput=${(event) => {
        change(event.currentTarget.value);
        ask(event.currentTarget.value, TYPING_MS);
      }}
    />
    ${others.length
      ? html`<div class="examples" role="group" aria-label=${`Suggestions for ${name}`}>
          ${others.slice(0, 20).map(
            (each) => html`<button type="button" class="example" key=${each} onClick=${() => {
              change(each);
              ask(each, 0);
            }}>${each}</button>`,
          )}
        </div>`
      : ""}
    ${problem ? html`<p class="problem" id=${`${id}-problem`}>${problem}</p>` : ""}
  </div>`;
}

// Asks the server for an argument's possible values; they may depend on the other arguments.
async function completions(client, ref, name, text, others) {
  await client.connect();
  if (!client.capabilities.completions) return [];
  const params = { ref, argument: { name, value: text }, context: { arguments: others } };
  const { result } = await client.request("completion/complete", params);
  return (result.completion && result.completion.values) || [];
}

function withoutEmpty(values) {
  return Object.fromEntries(Object.entries(values).filter(([, text]) => text !== ""));
}
