// One call, every wire, side by side.

function ReplyView({ call }) {
  return html`<section class="wires" aria-label="The replies of each wire">
    ${call.replies.map(
      (reply) => html`<article class=${`wire ${reply.ok ? "ok" : "failed"}`}>
        <h3>${reply.name} <span class="status">${reply.status ?? ""}</span></h3>
        <p class="time">${milliseconds(reply.ms)}</p>
        <${Json} value=${reply.body} label=${`The reply over ${reply.name}`} />
      </article>`,
    )}
  </section>`;
}
