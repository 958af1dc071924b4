// A call's arguments: the form, and the same arguments as JSON next to it.

// `replies` and `sent` belong to the last call; `call(value)` sends. The children appear next to
// the button. `warning` is the button's text if the call may destroy something.
function ArgumentsForm({ schema, value, change, sent, replies, running, disabled, warning, call, children }) {
  const [touched, setTouched] = useState(new Set());
  const [showAll, setShowAll] = useState(false);
  const readable = useRef(value);
  if (!(value instanceof Unreadable)) readable.current = value;
  const found = useMemo(() => problemsOf(schema, value), [schema, value]);
  const refused = refusedAt(value, sent, replies);
  const shown = showAll ? found : found.filter((problem) => isNoticed(problem, touched));
  const others = shown.filter(({ path }) => !refused.some((each) => each.path === path));
  const problems = [...refused, ...others];
  const form = useRef(null);
  const send = () => {
    setShowAll(false);
    setTouched(new Set());
    call(value);
  };
  const submit = (event) => {
    event.preventDefault();
    if (running || disabled) return;
    if (!found.length) return send();
    setShowAll(true);
    focusLater(() => firstWrong(form.current));
  };
  // Fields that the example leaves out are marked.
  const fill = () => {
    change(sampleOf(schema, schema));
    setShowAll(true);
    focusLater(() => firstWrong(form.current));
  };
  const touch = (path) => afterPress(() => setTouched((paths) => new Set([...paths, path])));
  const isUnreadable = value instanceof Unreadable;
  return html`<form class="call-form" ref=${form} onSubmit=${submit} onKeyDown=${submitOnCtrlEnter} noValidate>
    ${hasNoArguments(schema)
      ? html`<p class="hint">This tool takes no arguments.</p>`
      : html`<div class="arguments">
          <fieldset class="plain" disabled=${isUnreadable} aria-label="Arguments">
            <${SchemaForm} schema=${schema} value=${readable.current} change=${change} problems=${problems} touch=${touch} />
          </fieldset>
          <${JsonSide} schema=${schema} value=${value} change=${change} fill=${fill} />
        </div>`}
    <${OtherProblems} form=${form} problems=${problems} />
    <div class="call-row">
      <button type="submit" class=${warning ? "main danger" : "main"} disabled=${running || disabled}>${running ? "Calling …" : warning || "Call"}</button>
      ${showAll && found.length && !isUnreadable
        ? html`<button type="button" onClick=${send} disabled=${running || disabled}>Call anyway</button>
            <span class="problem" role="alert">${problemCount(found.length)}</span>`
        : ""}
      ${children}
    </div>
  </form>`;
}

// The first wrong field; a list with too few items has no such field, only a button to add one.
function firstWrong(form) {
  const problem = form.querySelector(".field .problem");
  const field = form.querySelector("[aria-invalid]");
  return field || problem?.closest(".field").querySelector("input, select, textarea, button");
}

function problemCount(count) {
  return count === 1 ? "One argument is wrong." : `${count} arguments are wrong.`;
}

function hasNoArguments(schema) {
  const part = resolved(schema, schema);
  const isClosed = part.additionalProperties === false || schema.type === "object";
  return isClosed && kindOf(part, schema) !== "json" && !Object.keys(part.properties || {}).length;
}

// A field's problems are shown once the user has left it; a list's, once the user has left an item.
// Missing values are shown only when the user calls: until then, there may be more to fill in.
function isNoticed({ path, message }, touched) {
  if (message === REQUIRED) return false;
  return [...touched].some((each) => each === path || each.startsWith(`${path}[`));
}

let isPressed = false;
document.addEventListener("pointerdown", () => (isPressed = true), true);
document.addEventListener("pointerup", () => (isPressed = false), true);
document.addEventListener("pointercancel", () => (isPressed = false), true);

// Acts when no mouse button is pressed. Pressing a button takes the focus from a field; if a problem
// appeared at that moment, the button would move away before it is released.
function afterPress(act) {
  if (!isPressed) return act();
  document.addEventListener("pointerup", () => setTimeout(act), { once: true });
}

// The problems in the server's refusal, as long as the value is still what was sent. Every wire
// reports the same; MCP, which comes last, lists the problems one by one.
function refusedAt(value, sent, replies) {
  if (!sent || !replies || value instanceof Unreadable) return [];
  const found = replies.map(refusedProblems).findLast((problems) => problems.length) || [];
  return found.filter(({ path }) => sameJson(valueAt(value, path), valueAt(sent, path)));
}

// The problems with values that have no field, such as an unknown argument.
function OtherProblems({ form, problems }) {
  const [paths, setPaths] = useState(new Set());
  useEffect(() => {
    const fields = [...form.current.querySelectorAll("[data-problems-of]")];
    const next = new Set(fields.map((each) => each.dataset.problemsOf));
    if ([...next].join("\n") !== [...paths].join("\n")) setPaths(next);
  });
  const others = problems.filter(({ path }) => !paths.has(path));
  if (!others.length) return "";
  return html`<ul class="other-problems" role="alert">
    ${others.map(({ path, message }) => html`<li class="problem">${path ? html`<code>${path}</code> ` : ""}${message}</li>`)}
  </ul>`;
}

function submitOnCtrlEnter(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.currentTarget.requestSubmit();
}

function JsonSide({ schema, value, change, fill }) {
  const [text, keepTyped] = useTyped(value, (each) =>
    each instanceof Unreadable ? each.text : JSON.stringify(each, null, 2),
  );
  const set = (typed, meaning) => {
    keepTyped(typed, meaning);
    change(meaning);
  };
  const read = (event) => {
    const typed = event.currentTarget.value;
    const meaning = typed.trim() === "" ? {} : jsonOrUnreadable(typed);
    const isObject = isJsonObject(meaning);
    set(typed, isObject ? meaning : new Unreadable(typed, "the arguments must be an object: {…}"));
  };
  const problem = value instanceof Unreadable ? `This is not JSON: ${value.reason}` : "";
  return html`<div class="json-side">
    <div class="field-head">
      <label for="arguments-json">JSON</label>
      <div class="field-buttons">
        <${QuietButton} label="Fill in an example" act=${fill}>Example<//>
        <${QuietButton} label="Clear the arguments" act=${() => change(initialArguments(schema))}>Clear<//>
      </div>
    </div>
    <textarea
      id="arguments-json"
      class="code"
      rows="6"
      spellcheck=${false}
      aria-invalid=${problem ? "true" : undefined}
      aria-describedby="arguments-json-problem"
      value=${text}
      onInput=${read}
    ></textarea>
    <p class="problem" id="arguments-json-problem" aria-live="polite">${problem}</p>
  </div>`;
}
