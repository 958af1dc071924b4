// Log messages and other notifications from the server, newest first.

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

function LogView() {
  const { messages } = useStore();
  const [least, setLeast] = useState("debug");
  const reaches = ({ params }) =>
    params.level === undefined || LEVELS.indexOf(params.level) >= LEVELS.indexOf(least);
  const shown = messages.filter(reaches).reverse();
  return html`<section aria-label="Log">
    <div class="bar-row">
      <label>Minimum level
        <select value=${least} onChange=${(event) => setLeast(event.currentTarget.value)}>
          ${LEVELS.map((level) => html`<option key=${level} value=${level}>${level}</option>`)}
        </select>
      </label>
      <button type="button" class="small" disabled=${!messages.length} onClick=${() => update({ messages: [] })}>Clear</button>
    </div>
    ${shown.length
      ? html`<${LogLines} label="Messages, newest first" messages=${shown} withVersion=${true} />`
      : html`<p class="hint">No messages yet. Log messages and notifications from the server are listed here.</p>`}
  </section>`;
}

function LogLines({ messages, label, withVersion }) {
  return html`<div class="log" role="log" aria-label=${label} tabindex="0"><ol>
    ${messages.map(
      (message) => html`<li key=${message.id}>
        <time datetime=${message.at.toISOString()}>${message.at.toLocaleTimeString()}</time>
        ${withVersion ? html`<span class="log-version">${message.version}</span>` : ""}
        <span class=${`chip level-${levelOf(message)}`}>${levelOf(message)}</span>
        <span class="log-text">${messageText(message)}</span>
      </li>`,
    )}
  </ol></div>`;
}

function levelOf({ method, params }) {
  return method === "notifications/message" ? String(params.level) : "notice";
}

function messageText({ method, params }) {
  if (method !== "notifications/message") {
    const name = method.replace("notifications/", "");
    return Object.keys(params).length ? `${name} ${JSON.stringify(params)}` : name;
  }
  const text = typeof params.data === "string" ? params.data : JSON.stringify(params.data);
  return params.logger ? `${params.logger}: ${text}` : text;
}
