// A form for a JSON Schema. It shows a value and reports changes to it; it keeps no copy.

const FormContext = createContext(null);

// `problems` is a list of { path, message }; `name` makes the ids of the fields unique on the page.
function SchemaForm({ schema, value, change, problems = [], name = "field", touch = () => {} }) {
  const messages = new Map();
  for (const { path, message } of problems) {
    messages.set(path, [...(messages.get(path) || []), message]);
  }
  const form = { root: schema, messages, touch, idOf: (path) => fieldId(name, path) };
  const part = resolved(schema, schema);
  return html`<${FormContext.Provider} value=${form}>
    <div class="fields"><${Control} part=${part} value=${value} change=${change} path="" required=${true} /></div>
  <//>`;
}

function fieldId(name, path) {
  return `${name}-${encodeURIComponent(path)}`;
}

// One member of an object or item of a list: its name, what it is for, its control, its problems.
// `of` is the list's name, for users who cannot see which list the item is in.
function Field({ name, of, schema, value, change, path, required, remove }) {
  const form = useContext(FormContext);
  const { part, nullable } = withoutNull(resolved(schema, form.root), form.root);
  const kind = kindOf(part, form.root);
  const id = form.idOf(path);
  const messages = form.messages.get(path) || [];
  const grouped = isGroup(part, kind, value, required, form.root);
  const described = [part.description && `${id}-hint`, messages.length && `${id}-problem`];
  const aria = {
    "aria-describedby": described.filter(Boolean).join(" ") || undefined,
    "aria-invalid": messages.length ? "true" : undefined,
  };
  const leave = !required && value !== undefined && (grouped || kind === "json" || kind === "file");
  // An argument that is null when left out needs no box for null.
  const mayBeNull = nullable && (required || part.default !== null || value === null);
  const label = of ? `${of} ${name}` : name;
  const head = html`<span class="field-name">${of ? html`<span class="hidden">${of} </span>` : ""}${name}</span>
    ${required && !remove ? html`<span class="required">required</span>` : ""}
    <span class="field-type">${shortDescription(part, form.root)}</span>`;
  const body = html`
    ${part.description ? html`<p class="hint" id=${`${id}-hint`}>${part.description}</p>` : ""}
    <div class="field-value">
      <${Control} ...${{ part, value, change, path, required, aria, nullable, label }} />
    </div>
    <${Examples} part=${part} value=${value} change=${change} />
    <div id=${`${id}-problem`} data-problems-of=${path}>${messages.map((text) => html`<p class="problem">${text}</p>`)}</div>`;
  const buttons = html`
    ${mayBeNull ? html`<${NullBox} ...${{ label, value, change, part }} />` : ""}
    ${leave ? html`<${QuietButton} label=${`Leave out ${label}`} act=${() => change(undefined)}>Leave out<//>` : ""}
    ${remove ? html`<${QuietButton} label=${`Remove ${label}`} act=${remove}>Remove<//>` : ""}`;
  if (grouped) {
    return html`<fieldset class="field group" aria-describedby=${aria["aria-describedby"]}>
      <legend>${head}</legend><div class="field-buttons">${buttons}</div>${body}
    </fieldset>`;
  }
  return html`<div class=${remove ? "field item" : "field"}>
    <div class="field-head"><label for=${id}>${head}</label><div class="field-buttons">${buttons}</div></div>
    ${body}
  </div>`;
}

// Kinds whose controls consist of several fields.
const GROUPS = new Set(["object", "dictionary", "list", "choices", "union"]);

// Whether the field shows several controls: not before it is added, and never for "text or number".
function isGroup(part, kind, value, required, root) {
  if (!GROUPS.has(kind) || !fitsControl(kind, value) || value === null) return false;
  if (!required && value === undefined) return false;
  return kind !== "union" || variantsOf(part, root).some((each) => GROUPS.has(kindOf(each, root)));
}

// Whether the control can show the value: the JSON next to the form may have a different type.
function fitsControl(kind, value) {
  if (value === undefined || value === null) return true;
  if (kind === "object" || kind === "dictionary") return isJsonObject(value) && !(value instanceof Unreadable);
  if (kind === "list" || kind === "choices") return Array.isArray(value);
  return true;
}

function Control({ part, ...props }) {
  const { root, idOf } = useContext(FormContext);
  const kind = kindOf(part, root);
  const { value, change, path, required, label } = props;
  if (value === null && props.nullable) return html`<${NullControl} ...${props} />`;
  if (!fitsControl(kind, value)) return html`<${JsonControl} part=${part} ...${props} />`;
  const first = value === undefined && !required && GROUPS.has(kind) && initialValue(part, root);
  if (first) {
    const add = () => {
      change(first);
      focusFirst(path);
    };
    const shown = part.default === undefined || part.default === null ? "" : `default: ${gotText(part.default)}`;
    return html`<p class="absent">
      <button type="button" class="small" id=${idOf(path)} aria-label=${`Add ${label}`} onClick=${add}>Add</button> <span>${shown}</span>
    </p>`;
  }
  return html`<${CONTROLS[kind]} part=${part} ...${props} />`;
}

function QuietButton({ label, act, children }) {
  return html`<button type="button" class="quiet" aria-label=${label} onClick=${act}>${children}</button>`;
}

function NullBox({ label, value, change, part }) {
  const { root } = useContext(FormContext);
  const choose = (event) => change(event.currentTarget.checked ? null : initialValue(part, root));
  return html`<label class="null-box">
    <input type="checkbox" aria-label=${`${label} is null`} checked=${value === null} onChange=${choose} /> null
  </label>`;
}

function Examples({ part, value, change }) {
  const examples = (Array.isArray(part.examples) ? part.examples : []).slice(0, 5);
  if (!examples.length) return "";
  return html`<p class="examples">
    ${examples.map(
      (example) => html`<button
        type="button"
        class="example"
        aria-label=${`Use the example ${gotText(example)}`}
        disabled=${sameJson(example, value)}
        onClick=${() => change(example)}
      >${typeof example === "string" ? example : gotText(example)}</button>`,
    )}
  </p>`;
}

// The attributes of every control's element.
function useControl({ path, aria, label, inner }) {
  const { idOf, touch } = useContext(FormContext);
  const id = idOf(path);
  const own = inner ? { id: `${id}-value`, "aria-label": label } : { id };
  return { ...own, ...aria, "data-path": path, onBlur: () => touch(path) };
}

// Keeps the text as typed while it still stands for the value: "1." and "1" are the same number.
function useTyped(value, textOf) {
  const typed = useRef(null);
  const isCurrent = typed.current && typed.current.value === value;
  const text = isCurrent ? typed.current.text : textOf(value);
  return [text, (next, meaning) => (typed.current = { text: next, value: meaning })];
}

function textOfValue(value) {
  if (value === undefined) return "";
  if (value instanceof Unreadable) return value.text;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function placeholderOf(part) {
  if (part.default !== undefined && part.default !== null && part.default !== "") {
    return `default: ${textOfValue(part.default)}`;
  }
  return SAMPLE_TEXTS[part.format] && !PICKERS[part.format] ? SAMPLE_TEXTS[part.format]() : undefined;
}

function NullControl(props) {
  const attributes = useControl(props);
  return html`<input ...${attributes} value="null" disabled class="code" />`;
}

const PICKERS = { date: "date", "date-time": "datetime-local", time: "time" };
const INPUT_TYPES = { email: "email", uri: "url", password: "password" };

function TextControl(props) {
  const { part, value, change, required } = props;
  const attributes = useControl(props);
  const picker = PICKERS[part.format];
  const picked = picker && pickedFrom(picker, value);
  // Clearing an optional text field leaves it out; an empty string can be written as JSON.
  const set = (text) => change(text === "" && (!required || picker) ? undefined : text);
  if (picked !== undefined && picked !== null) {
    const pick = (event) => set(fromPicker(picker, event.currentTarget.value));
    return html`<input ...${attributes} type=${picker} step=${picker === "date" ? undefined : 1} value=${picked} onInput=${pick} />`;
  }
  const shared = {
    ...attributes,
    placeholder: value === "" ? "empty text" : placeholderOf(part),
    value: textOfValue(value),
    onInput: (event) => set(event.currentTarget.value),
  };
  if (part.format || part.pattern) {
    return html`<input ...${shared} type=${INPUT_TYPES[part.format] || "text"} autocomplete="off" spellcheck=${false} />`;
  }
  return html`<textarea ...${shared} rows="1" class="line" onKeyDown=${submitOnEnter}></textarea>`;
}

// Shift+Enter adds a line; Enter calls, as in a single-line field.
function submitOnEnter(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

// What the browser's picker shows for a value; undefined if it cannot show it.
function pickedFrom(picker, value) {
  if (value === undefined) return "";
  if (typeof value !== "string") return undefined;
  if (picker === "date") return /^\d{4}-\d\d-\d\d$/.test(value) ? value : undefined;
  if (picker === "time") return /^\d\d:\d\d(:\d\d)?$/.test(value) ? value : undefined;
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return undefined;
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

// The date-time format has an offset, but a browser's picker has none: use the user's own.
function fromPicker(picker, text) {
  if (picker !== "datetime-local" || text === "") return text;
  const offset = -new Date(text).getTimezoneOffset();
  const two = (number) => String(Math.trunc(Math.abs(number))).padStart(2, "0");
  const zone = offset === 0 ? "Z" : `${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`;
  return (text.length === 16 ? `${text}:00` : text) + zone;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

function NumberControl(props) {
  const { part, value, change } = props;
  const attributes = useControl(props);
  const [text, keepTyped] = useTyped(value, textOfValue);
  const read = (event) => {
    const typed = event.currentTarget.value;
    const trimmed = typed.trim();
    const meaning = trimmed === "" ? undefined : NUMBER.test(trimmed) ? exactNumber(trimmed) : typed;
    keepTyped(typed, meaning);
    change(meaning);
  };
  const mode = part.type === "integer" && part.minimum >= 0 ? "numeric" : "decimal";
  return html`<input ...${attributes} class="number" inputmode=${mode} autocomplete="off" placeholder=${placeholderOf(part)} value=${text} onInput=${read} />`;
}

const BOOLEANS = [
  { value: true, name: "true" },
  { value: false, name: "false" },
];

function BooleanControl(props) {
  return html`<${SelectControl} ...${props} options=${BOOLEANS} />`;
}

function OptionsControl(props) {
  return html`<${SelectControl} ...${props} options=${optionsOf(props.part)} />`;
}

function SelectControl(props) {
  const { part, value, change, options, required } = props;
  const attributes = useControl(props);
  const at = options.findIndex((option) => sameJson(option.value, value));
  const choose = (event) => change(options[event.currentTarget.value]?.value);
  const fallback = options.find((option) => sameJson(option.value, part.default));
  const none = required ? "choose …" : fallback ? `default: ${fallback.name}` : "left out";
  const isOther = at < 0 && value !== undefined;
  return html`<select ...${attributes} onChange=${choose} value=${isOther ? "other" : at < 0 ? "" : String(at)}>
    <option value="">${none}</option>
    ${options.map((option, index) => html`<option value=${String(index)}>${option.name}</option>`)}
    ${isOther ? html`<option value="other">${gotText(value)}</option>` : ""}
  </select>`;
}

// Several of the listed values.
function ChoicesControl({ part, value = [], change, path }) {
  const { root, touch } = useContext(FormContext);
  const options = optionsOf(resolved(part.items, root));
  const has = (option) => value.some((each) => sameJson(each, option.value));
  const toggle = (option) => {
    const next = options.filter((each) => (each === option ? !has(each) : has(each)));
    change(next.map((each) => each.value));
  };
  return html`<div class="choices">
    ${options.map(
      (option) => html`<label><input type="checkbox" checked=${has(option)} onChange=${() => toggle(option)} onBlur=${() => touch(path)} /> ${option.name}</label>`,
    )}
  </div>`;
}

// Bytes: written as base64, or read from a file.
function FileControl(props) {
  const { value, change, label } = props;
  const attributes = useControl(props);
  const read = async (event) => {
    const [file] = event.currentTarget.files;
    if (file) change(await base64Of(file));
  };
  return html`<div class="file">
    <input ...${attributes} class="code" placeholder="base64" spellcheck=${false} value=${textOfValue(value)} onInput=${(event) => change(event.currentTarget.value || undefined)} />
    <input type="file" aria-label=${`A file for ${label}`} onChange=${read} />
  </div>`;
}

function base64Of(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function JsonControl(props) {
  const { part, value, change } = props;
  const attributes = useControl(props);
  const [text, keepTyped] = useTyped(value, (each) =>
    each === undefined || each instanceof Unreadable ? textOfValue(each) : JSON.stringify(each, null, 2),
  );
  const read = (event) => {
    const typed = event.currentTarget.value;
    const meaning = typed.trim() === "" ? undefined : jsonOrUnreadable(typed);
    keepTyped(typed, meaning);
    change(meaning);
  };
  const example = part.type === "array" ? "[]" : part.type === "object" ? "{}" : '"text", 7, {…}';
  return html`<textarea ...${attributes} class="code line" rows="2" spellcheck=${false} placeholder=${placeholderOf(part) || `JSON: ${example}`} value=${text} onInput=${read}></textarea>`;
}

// An object's members. A member with only one possible value, such as a tag, is not asked for, unless
// it is an argument itself.
function ObjectControl({ part, value, change, path, inner }) {
  const { root } = useContext(FormContext);
  const given = isJsonObject(value) ? value : {};
  const required = new Set(part.required || []);
  const fields = Object.entries(part.properties).filter(
    ([name, schema]) => (path === "" && !inner) || !required.has(name) || !hasOneValue(schema, root),
  );
  return html`${fields.map(
    ([name, schema]) => html`<${Field}
      key=${name}
      name=${name}
      schema=${schema}
      value=${memberOf(given, name)}
      change=${(next) => change(withMember(given, name, next))}
      path=${memberPath(path, name)}
      required=${required.has(name)}
    />`,
  )}`;
}

function withMember(object, name, value) {
  const next = { ...object, [name]: value };
  if (value === undefined) delete next[name];
  return next;
}

function ListControl({ part, value, change, path, label }) {
  const form = useContext(FormContext);
  const items = Array.isArray(value) ? value : [];
  const isFixed = Array.isArray(part.prefixItems) && !saysMore(part.items);
  const shown = isFixed ? part.prefixItems.map((_, at) => items[at]) : items;
  const set = (at, item) => change(shown.map((each, index) => (index === at ? item : each)));
  const add = () => {
    change([...items, initialValue(itemSchema(part, items.length), form.root)]);
    focusFirst(itemPath(path, items.length));
  };
  const addId = `${form.idOf(path)}-add`;
  const remove = (at) => {
    change(items.filter((_, index) => index !== at));
    focusLater(() => document.getElementById(addId));
  };
  return html`<div class="items">
    ${shown.map(
      (item, at) => html`<${Field}
        key=${at}
        name=${`${at + 1}`}
        of=${label}
        schema=${itemSchema(part, at)}
        value=${item}
        change=${(next) => set(at, next)}
        path=${itemPath(path, at)}
        required=${true}
        remove=${isFixed ? undefined : () => remove(at)}
      />`,
    )}
    ${isFixed
      ? ""
      : html`<button type="button" class="small" id=${addId} disabled=${items.length >= part.maxItems} onClick=${add}>Add an item<span class="hidden"> to ${label}</span></button>`}
  </div>`;
}

// An object with arbitrary names, whose values have one schema.
function DictionaryControl({ part, value, change, path, label }) {
  const form = useContext(FormContext);
  const entries = Object.entries(isJsonObject(value) ? value : {});
  const changeEntry = (at, entry) =>
    change(Object.fromEntries(entries.map((each, index) => (index === at ? entry : each))));
  const add = () => {
    const name = unusedName(entries.map(([each]) => each));
    change({ ...value, [name]: initialValue(part.additionalProperties, form.root) });
    focusLater(() => document.getElementById(`${form.idOf(memberPath(path, name))}-key`));
  };
  const addId = `${form.idOf(path)}-add`;
  const remove = (at) => {
    change(Object.fromEntries(entries.filter((_, index) => index !== at)));
    focusLater(() => document.getElementById(addId));
  };
  return html`<div class="items">
    ${entries.map(
      ([name, each], at) => html`<div class="entry" key=${at}>
        <${KeyField} name=${name} id=${`${form.idOf(memberPath(path, name))}-key`} taken=${entries.map(([key]) => key)} rename=${(next) => changeEntry(at, [next, each])} />
        <${Field}
          name="value"
          of=${name}
          schema=${part.additionalProperties}
          value=${each}
          change=${(next) => changeEntry(at, [name, next])}
          path=${memberPath(path, name)}
          required=${true}
          remove=${() => remove(at)}
        />
      </div>`,
    )}
    <button type="button" class="small" id=${addId} onClick=${add}>Add an entry<span class="hidden"> to ${label}</span></button>
  </div>`;
}

function unusedName(names) {
  let count = names.length + 1;
  while (names.includes(`key${count}`)) count++;
  return `key${count}`;
}

// The name changes only once it is complete: while being typed, it may equal another entry's.
function KeyField({ name, id, taken, rename }) {
  const [problem, setProblem] = useState("");
  const finish = (event) => {
    const next = event.currentTarget.value;
    const isTaken = next !== name && taken.includes(next);
    setProblem(isTaken ? `another entry is named ${next}` : "");
    if (next !== name && !isTaken) rename(next);
  };
  return html`<div class="field key">
    <label for=${id} class="hidden">name</label>
    <input id=${id} value=${name} onChange=${finish} aria-invalid=${problem ? "true" : undefined} aria-describedby=${`${id}-problem`} autocomplete="off" />
    <p class="problem" id=${`${id}-problem`}>${problem}</p>
  </div>`;
}

// One of several schemas: the user's choice is kept while the value comes from this control.
function UnionControl(props) {
  const { part, value, change, label } = props;
  const { root } = useContext(FormContext);
  const attributes = useControl(props);
  const own = useRef(null);
  const variants = variantsOf(part, root);
  const isOwn = own.current && own.current.value === value;
  const at = isOwn ? own.current.at : bestVariant(variants, value ?? part.default, root).index;
  const set = (index, next) => {
    own.current = { at: index, value: next };
    change(next);
  };
  const choose = (event) => {
    const index = Number(event.currentTarget.value);
    set(index, variants[index].type === "null" ? null : initialValue(variants[index], root));
  };
  const chosen = { default: part.default, ...variants[at] };
  const isLine = !GROUPS.has(kindOf(chosen, root));
  return html`<div class=${isLine ? "union line" : "union"}>
    <select ...${attributes} aria-label=${`The kind of ${label || "value"}`} value=${String(at)} onChange=${choose}>
      ${variants.map((each, index) => html`<option value=${String(index)}>${variantName(each, root, index)}</option>`)}
    </select>
    ${chosen.type === "null"
      ? ""
      : html`<${Control} key=${at} ...${props} part=${chosen} nullable=${false} inner=${true} change=${(next) => set(at, next)} />`}
  </div>`;
}

function variantName(schema, root, index) {
  if (schema.title) return schema.title;
  const options = optionsOf(schema);
  if (options) return options.map((option) => option.name).slice(0, 3).join(", ");
  return typeWord(schema, root) || `kind ${index + 1}`;
}

const CONTROLS = {
  options: OptionsControl,
  union: UnionControl,
  boolean: BooleanControl,
  number: NumberControl,
  text: TextControl,
  file: FileControl,
  null: NullControl,
  choices: ChoicesControl,
  list: ListControl,
  dictionary: DictionaryControl,
  object: ObjectControl,
  json: JsonControl,
};

// Moves the focus after the page has been redrawn.
function focusLater(find) {
  setTimeout(() => find()?.focus());
}

function focusFirst(path) {
  focusLater(() => {
    const inside = (element) => {
      const at = element.dataset.path;
      return at === path || at.startsWith(`${path}.`) || at.startsWith(`${path}[`);
    };
    return [...document.querySelectorAll("[data-path]")].find(inside);
  });
}
