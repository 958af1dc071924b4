// The calls made on this page, newest first; each can be opened and repeated.

function HistoryView() {
  const { calls, server } = useStore();
  if (!calls.length) return html`<p class="hint">No calls yet. Calls made on this page are listed here until it is closed.</p>`;
  const repeat = (call) => {
    openCall(call);
    runCall(server, call.tool, call.args, call.wireIds, call.task);
  };
  return html`<section aria-label="History" class="history">
    <table>
      <caption class="hidden">Calls, newest first</caption>
      <thead><tr><th scope="col">Time</th><th scope="col">Tool</th><th scope="col">Arguments</th><th scope="col">Result</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
      <tbody>
        ${calls.map(
          (call) => html`<tr key=${call.id}>
            <td><time datetime=${call.at.toISOString()}>${call.at.toLocaleTimeString()}</time></td>
            <th scope="row">${call.tool.title || call.tool.name}</th>
            <td class="arguments"><code>${JSON.stringify(call.args)}</code></td>
            <td>${call.replies.map((reply) => html`<${WireChip} key=${reply.wire} reply=${reply} />`)}</td>
            <td class="buttons">
              <button type="button" class="small" onClick=${() => openCall(call)}>Open</button>
              <button type="button" class="small" onClick=${() => repeat(call)}>Repeat</button>
            </td>
          </tr>`,
        )}
      </tbody>
    </table>
  </section>`;
}

function WireChip({ reply }) {
  const kind = reply.waiting ? "waiting" : reply.ok ? "ok" : "failed";
  const result = reply.waiting ? "running" : reply.ok ? milliseconds(reply.ms) : "failed";
  return html`<span class=${`chip ${kind}`}>${reply.name}: ${result}</span>`;
}
