// A tool's widget, in a frame of its own.

const MAX_NOTES = 20;
const FRAME_HEIGHTS = { least: 60, most: 1200 };
const THEMES = ["light", "dark"];

function WidgetView({ call }) {
  const { server } = useStore();
  const uri = widgetUri(call.tool);
  const reply = call.replies.find((each) => each.result);
  if (!uri || call.running) return "";
  if (!server.about.frame) {
    return html`<p class="hint widget-hint">This tool has a widget. The console shows the widgets of your own app: open it with <code>answerback serve</code>.</p>`;
  }
  if (!reply) {
    return html`<p class="hint widget-hint">This tool has a widget, which shows the reply over MCP. Call the tool over MCP.</p>`;
  }
  return html`<${WidgetPanel} key=${call.id} server=${server} call=${call} reply=${reply} uri=${uri} />`;
}

function WidgetPanel({ server, call, reply, uri }) {
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
  const note = (entry) => setNotes((known) => [...known, entry].slice(-MAX_NOTES));
  return html`<section class="widget" aria-label="Widget">
    <div class="widget-head">
      <h3>Widget</h3>
      <code>${uri}</code>
      <fieldset class="wire-choice">
        <legend class="hidden">Theme of the widget</legend>
        ${THEMES.map(
          (each) => html`<label class="pill"><input type="radio" name="widget-theme" checked=${theme === each} onChange=${() => setTheme(each)} /><span>${capitalized(each)}</span></label>`,
        )}
      </fieldset>
      <button type="button" class="small" onClick=${load}>Reload</button>
    </div>
    <div class=${`widget-stage ${theme}`}>
      ${!page
        ? html`<p class="hint">Loading …</p>`
        : page.failure
          ? html`<p class="problem" role="alert">The widget cannot be read: ${page.failure}</p>`
          : html`<${WidgetFrame} key=${page} ...${{ server, client, call, reply, page, theme, note }} />`}
    </div>
    <ul class="widget-notes" aria-live="polite" aria-label="What the widget did">
      ${notes.map((each, at) => html`<${WidgetNote} key=${at} note=${each} />`)}
    </ul>
  </section>`;
}

function WidgetFrame({ server, client, call, reply, page, theme, note }) {
  const frame = useRef(null);
  const host = useRef(null);
  const [height, setHeight] = useState(150);
  const { least, most } = FRAME_HEIGHTS;
  const resize = (asked) => asked > 0 && setHeight(Math.min(Math.max(asked, least), most));
  // Before the frame can send something.
  useLayoutEffect(() => {
    // The frame has no origin that could be named; the console's policy keeps others out of it.
    const post = (message) =>
      frame.current?.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
    const { result } = reply;
    host.current = new WidgetHost({ post, note, resize, client, call, result, page, theme });
    const receive = ({ source, data }) => {
      if (frame.current && source === frame.current.contentWindow) host.current.receive(data);
    };
    window.addEventListener("message", receive);
    return () => window.removeEventListener("message", receive);
  }, []);
  useEffect(() => host.current.setTheme(theme), [theme]);
  const src = `${BASE}${server.about.frame}?csp=${encodeURIComponent(JSON.stringify(page.csp))}`;
  return html`<iframe ref=${frame} name="widget" title=${`The widget of ${call.tool.name}`} sandbox="allow-scripts" height=${height} src=${src}></iframe>`;
}

function WidgetNote({ note }) {
  const text = html`The widget ${note.text}`;
  if (note.url) {
    return html`<li>${text} <a href=${note.url} target="_blank" rel="noopener noreferrer">${note.url}</a></li>`;
  }
  if (note.value === undefined) return html`<li class=${note.failed ? "problem" : ""}>${text}</li>`;
  return html`<li><details>
    <summary class=${note.failed ? "problem" : ""}>${text}</summary>
    <${Json} value=${note.value} label="What the widget sent and received" />
  </details></li>`;
}
