// A tool's widget, in its own frame.

const MAX_HEIGHT = 1200;

function WidgetView({ call }) {
  const { server } = useStore();
  const uri = widgetUri(call.tool);
  if (!uri || call.running) return "";
  const reply = call.replies.find((each) => each.result);
  let missing = "";
  if (call.wireIds.every((id) => id === "rest")) missing = "Call the tool over MCP to see its widget.";
  if (!server.about.frame) missing = "This tool has a widget. The console only shows widgets from an app that it serves.";
  if (missing) return html`<p class="hint wires-note">${missing}</p>`;
  if (!reply) return "";
  return html`<${WidgetPanel} key=${call.id} uri=${uri} call=${call} reply=${reply} server=${server} />`;
}

function WidgetPanel({ uri, call, reply, server }) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const [theme, setTheme] = useState(dark ? "dark" : "light");
  const [page, setPage] = useState(null);
  const [notes, setNotes] = useState([]);
  const client = server.client(reply.wire);
  const load = () => {
    setNotes([]);
    readWidget(client, uri).then(setPage, (error) => setPage({ failure: error.message }));
  };
  useEffect(load, []);
  const note = (entry) => setNotes((known) => keep(known, entry));
  const host = { call, client, note, page, result: reply.result, theme };
  return html`<section class="wire widget" aria-label="Widget">
    <header>
      <h3>Widget</h3>
      <code>${uri}</code>
      <fieldset class="wire-choice">
        <legend class="hidden">Widget theme</legend>
        ${["light", "dark"].map(
          (each) => html`<label class="pill"><input
            type="radio"
            name="widget-theme"
            checked=${theme === each}
            onChange=${() => setTheme(each)}
          /><span>${capitalized(each)}</span></label>`,
        )}
      </fieldset>
      <button type="button" class="small" onClick=${load}>Reload</button>
    </header>
    <div class=${`widget-stage ${theme}`}>
      ${page?.failure ? html`<p class="problem" role="alert">The widget cannot be read: ${page.failure}</p>` : ""}
      ${page?.text ? html`<${WidgetFrame} key=${page} host=${host} path=${server.about.frame} />` : ""}
    </div>
    <ul aria-live="polite" aria-label="What the widget did">
      ${notes.map((each, at) => html`<${WidgetNote} key=${at} note=${each} />`)}
    </ul>
  </section>`;
}

function WidgetFrame({ host, path }) {
  const frame = useRef(null);
  const [height, setHeight] = useState(150);
  const [hasLeft, setHasLeft] = useState(false);
  const counts = useRef({ begun: 0, loads: 0 });
  const { call, page, theme } = host;
  const resize = (asked) => asked > 0 && setHeight(Math.min(asked, MAX_HEIGHT));
  // The frame has no origin to name; the console's policy keeps other pages out of it.
  const post = (message) => {
    // A widget receives plain JSON, as in other hosts: no BigInt.
    const plain = JSON.parse(JSON.stringify({ jsonrpc: "2.0", ...message }));
    frame.current?.contentWindow.postMessage(plain, "*");
  };
  // A widget that reloads the frame's page could give it another policy.
  const begin = () => {
    if (counts.current.begun++) setHasLeft(true);
    return counts.current.begun === 1;
  };
  // The frame's page is loaded first, and then the widget is written into it.
  const countLoad = () => {
    if (++counts.current.loads > 2) setHasLeft(true);
  };
  // Before the frame can send anything, and again after each change of theme or login.
  useLayoutEffect(() => {
    const receive = ({ source, data }) => {
      if (source === frame.current?.contentWindow) answerWidget({ ...host, post, resize, begin }, data);
    };
    window.addEventListener("message", receive);
    return () => window.removeEventListener("message", receive);
  });
  useEffect(() => post({ method: "ui/notifications/host-context-changed", params: { theme } }), [theme]);
  const src = `${BASE}${path}?csp=${encodeURIComponent(JSON.stringify(page.csp))}`;
  if (hasLeft) {
    return html`<p class="problem" role="alert">The widget left its page, so it was closed. Reload to show it again.</p>`;
  }
  return html`<iframe
    ref=${frame}
    name="widget"
    title=${`The widget for ${call.tool.name}`}
    sandbox="allow-scripts"
    height=${height}
    src=${src}
    onLoad=${countLoad}
  ></iframe>`;
}

function WidgetNote({ note }) {
  const { text, url, value, failed } = note;
  const kind = failed ? "problem" : "";
  const link = url && html`<a href=${url} target="_blank" rel="noopener noreferrer">${url}</a>`;
  if (value === undefined) return html`<li class=${kind}>The widget ${text} ${link}</li>`;
  return html`<li><details>
    <summary class=${kind}>The widget ${text}</summary>
    <${Json} value=${value} label="Content" />
  </details></li>`;
}
