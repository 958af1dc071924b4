// A searchable list of entries, such as the resources or the prompts.

const MAX_ODD = 5;

// Shows what is wrong with a list that the server sent.
function OddEntries({ method }) {
  const { server } = useStore();
  const odd = server.client().odd[method] || [];
  if (!odd.length) return "";
  const more = odd.length - MAX_ODD;
  return html`<ul class="odd" aria-label=${`Problems with ${method}`}>
    ${odd.slice(0, MAX_ODD).map((text) => html`<li class="problem">${text}</li>`)}
    ${more > 0 ? html`<li class="problem">… and ${more} more.</li>` : ""}
  </ul>`;
}

// `groups` is a list of { title, entries }; each entry has: key, name, hint.
function EntryList({ label, methods = [], groups, chosen, choose }) {
  const [words, setWords] = useState("");
  const list = useRef(null);
  const search = useRef(null);
  useEffect(() => focusOnSlash(search), []);
  const isShown = ({ name, hint, key }) => {
    const text = `${name} ${hint} ${key}`.toLowerCase();
    return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };
  const keys = (event) => {
    if (event.key === "Escape") setWords("");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) moveFocus(event, list.current, search.current, step);
  };
  return html`<nav class="list" aria-label=${label} ref=${list} onKeyDown=${keys}>
    <label class="search"><span class="hidden">Search</span>
      <input ref=${search} type="search" placeholder="Search  ( / )" autocomplete="off" value=${words} onInput=${(event) => setWords(event.currentTarget.value)} />
    </label>
    ${methods.map((method) => html`<${OddEntries} key=${method} method=${method} />`)}
    <div class="groups">
      ${groups
        .map(({ title, entries }) => ({ title, entries: entries.filter(isShown) }))
        .filter(({ entries }) => entries.length)
        .map(
          ({ title, entries }) => html`<section key=${title} aria-label=${title}>
            <h2 class="tag">${title}</h2>
            <ul>
              ${entries.map(
                (entry) => html`<li key=${entry.key}>
                  <button type="button" aria-current=${entry.key === chosen ? "true" : undefined} onClick=${() => choose(entry.key)}>
                    <strong>${entry.name}</strong>
                    <span>${entry.hint}</span>
                  </button>
                </li>`,
              )}
            </ul>
          </section>`,
        )}
    </div>
  </nav>`;
}
