// Small parts that every view uses.

const MAX_SHOWN = 100_000; // Browsers get slow with more characters in one element,
const MAX_COLOURED = 20_000; // and with more elements.

function Json({ value, label }) {
  const whole = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const text = whole.slice(0, MAX_SHOWN);
  const rest = whole.length - text.length;
  return html`<pre class="json" role="group" tabindex="0" aria-label=${label || "JSON"}>
${typeof value === "string" ? text : colouredJson(text)}${rest ? `\n… ${rest.toLocaleString("en")} more characters` : ""}</pre>`;
}

const JSON_TOKENS = /("(?:\\.|[^"\\])*")(:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g;

function colouredJson(text) {
  if (text.length > MAX_COLOURED) return text;
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(JSON_TOKENS)) {
    const [token, string, colon] = match;
    const kind = colon ? "name" : string ? "string" : "other";
    parts.push(text.slice(end, match.index), html`<span class=${`json-${kind}`}>${string || token}</span>`);
    end = match.index + (string || token).length;
  }
  return [...parts, text.slice(end)];
}

function CopyButton({ text, label = "Copy" }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
      setTimeout(() => setSaid(""), 1500);
    } catch {
      setSaid("The browser blocked copying: select the text");
    }
  };
  return html`<button type="button" class="small" onClick=${copy}>${said || label}</button>`;
}

function Tabs({ label, tabs, chosen, choose }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex((tab) => tab.id === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    choose(next.id);
    event.currentTarget.querySelector(`[data-tab="${next.id}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${tabs.map(
      (tab) => html`<button
        type="button"
        role="tab"
        data-tab=${tab.id}
        aria-selected=${tab.id === chosen}
        tabindex=${tab.id === chosen ? 0 : -1}
        onClick=${() => choose(tab.id)}
      >${tab.name}</button>`,
    )}
  </div>`;
}

// Opens and closes a dialog; returns its element's ref.
function useModal(isOpen) {
  const dialog = useRef(null);
  useLayoutEffect(() => {
    if (isOpen && !dialog.current.open) dialog.current.showModal();
    if (!isOpen && dialog.current.open) dialog.current.close();
  }, [isOpen]);
  return dialog;
}

function milliseconds(ms) {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

function shellQuoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
