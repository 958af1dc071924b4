// The list of tools, searchable and grouped by tag.

function ToolList({ tools, chosen, choose }) {
  const [words, setWords] = useState("");
  const list = useRef(null);
  const search = useRef(null);
  const shown = tools.filter((tool) => matches(tool, words));
  const groups = toolGroups(shown);
  useEffect(() => focusOnSlash(search), []);
  const keys = (event) => {
    if (event.key === "Escape") setWords("");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) moveFocus(event, list.current, search.current, step);
    if (event.key === "Enter" && event.target === search.current && shown.length) {
      choose(shown[0].name);
      focusLater(() => document.querySelector(".call-form :is(input, select, textarea, button)"));
    }
  };
  return html`<nav class="list" aria-label="Tools" ref=${list} onKeyDown=${keys}>
    <label class="search"><span class="hidden">Search the tools</span>
      <input
        ref=${search}
        type="search"
        placeholder="Search the tools  ( / )"
        autocomplete="off"
        value=${words}
        onInput=${(event) => setWords(event.currentTarget.value)}
      />
    </label>
    <p class="count" role="status">${toolCount(shown.length, tools.length)}</p>
    ${shown.length ? "" : html`<${Suggestions} words=${suggestedWords(tools, words)} choose=${setWords} />`}
    <${OddEntries} method="tools/list" />
    <div class="groups">
      ${groups.map(
        ({ tag, tools: members }) => html`<section key=${tag} aria-label=${tag || "Tools"}>
          ${tag ? html`<h2 class="tag">${tag}</h2>` : ""}
          <ul>
            ${members.map(
              (tool) => html`<li key=${tool.name}>
                <button type="button" aria-current=${tool === chosen ? "true" : undefined} onClick=${() => choose(tool.name)}>
                  <strong>${tool.title || tool.name}</strong>
                  ${listMarks(tool).map(([kind, word]) => html` <small class=${`mark ${kind}`}>${word}</small>`)}
                  <span>${firstLine(tool.description)}</span>
                </button>
              </li>`,
            )}
          </ul>
        </section>`,
      )}
    </div>
  </nav>`;
}

// What a user should know about a tool before opening it.
function listMarks(tool) {
  const marks = [];
  if (isDestructive(tool)) marks.push(["destructiveHint", "destructive"]);
  if (tool.annotations?.readOnlyHint === true) marks.push(["readOnlyHint", "read-only"]);
  if (["optional", "required"].includes(taskSupport(tool))) marks.push(["", "task"]);
  if (gateMarks(tool).length) marks.push(["gate", "login"]);
  return marks;
}

function Suggestions({ words, choose }) {
  if (!words.length) return "";
  return html`<p class="count">Did you mean ${words.map(
    (word) => html`<button type="button" class="example" onClick=${() => choose(word)}>${word}</button> `,
  )}?</p>`;
}

const MAX_SUGGESTED = 3;

// The words in tool names that are closest to the typed text, with at most one mistake per three
// letters.
function suggestedWords(tools, typed) {
  const wanted = typed.trim().toLowerCase();
  const known = new Set(tools.flatMap(({ name }) => [name, ...name.split(/[^\p{L}\p{N}]+/u)]));
  return [...known]
    .map((word) => ({ word, distance: editDistance(wanted, word.toLowerCase()) }))
    .filter(({ distance }) => distance <= wanted.length / 3)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, MAX_SUGGESTED)
    .map(({ word }) => word);
}

// How many letters must be added, removed or changed to turn one word into the other.
function editDistance(from, to) {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let at = 0; at < to.length; at++) {
      next.push(Math.min(row[at + 1] + 1, next[at] + 1, row[at] + (letter === to[at] ? 0 : 1)));
    }
    row = next;
  }
  return row[to.length];
}

const NO_TAG = "without a tag";

// The tags of a tool; FastMCP has them too.
function tagsOf(tool) {
  const meta = tool._meta || {};
  const found = meta["answerback/tags"] || meta.fastmcp?.tags || meta._fastmcp?.tags;
  return Array.isArray(found) ? found.map(String) : [];
}

// A tool is listed under each of its tags; tools without a tag come last.
function toolGroups(tools) {
  const groups = new Map();
  for (const tool of tools) {
    const tags = tagsOf(tool);
    for (const tag of tags.length ? tags : [NO_TAG]) {
      groups.set(tag, [...(groups.get(tag) || []), tool]);
    }
  }
  const tags = [...groups.keys()].filter((tag) => tag !== NO_TAG).sort();
  if (groups.has(NO_TAG)) tags.push(NO_TAG);
  const isPlain = tags.length === 1 && tags[0] === NO_TAG;
  return tags.map((tag) => ({ tag: isPlain ? "" : tag, tools: groups.get(tag) }));
}

// The tool shown before one is chosen: users may press its button without reading.
function firstTool(tools) {
  const listed = toolGroups(tools).flatMap((group) => group.tools);
  const reads = listed.find((tool) => tool.annotations?.readOnlyHint === true);
  return reads || listed.find((tool) => !isDestructive(tool));
}

// Every word must occur in the name, the title, the description, a tag or an argument's name.
function matches(entry, words) {
  const names = Object.keys(entry.inputSchema?.properties || {});
  const parts = [entry.name, entry.title, entry.description, ...tagsOf(entry), ...names];
  const text = parts.join(" ").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function toolCount(shown, all) {
  if (shown === all) return all === 1 ? "1 tool" : `${all} tools`;
  return `${shown} of ${all} tools`;
}

function firstLine(text) {
  return (text || "").split("\n")[0];
}

// The arrow keys move between the search field and the tools.
function moveFocus(event, list, search, step) {
  const stops = [search, ...list.querySelectorAll("li button")];
  const next = stops[stops.indexOf(document.activeElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

// The "/" key moves to the search field, unless text is being typed.
function focusOnSlash(search) {
  const listen = (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    search.current?.focus();
  };
  document.addEventListener("keydown", listen);
  return () => document.removeEventListener("keydown", listen);
}
