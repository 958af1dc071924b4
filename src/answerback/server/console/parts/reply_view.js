// One call over every wire, side by side; below it, what models see, the dialects, rules and code.

const CUT_META = "answerback/cut";
const ADDED_META = "answerback/added";
const ERROR_META = "answerback/error";
const SHOWN_OF_REPLY = [
  { id: "data", name: "Data" },
  { id: "whole", name: "Whole reply" },
  { id: "sent", name: "Request" },
];

function ReplyView({ call }) {
  const [part, setPart] = useState("data");
  const verdict = verdictOf(call);
  return html`<section class="reply" aria-label="The reply">
    <div class="reply-head">
      <p class=${`verdict ${verdict.kind}`} role="status">${verdict.text}</p>
      <${Tabs} label="Part of the reply" tabs=${SHOWN_OF_REPLY} chosen=${part} choose=${setPart} />
    </div>
    <${Activity} place=${placeOf(call)} running=${call.running} abort=${call.abort} />
    <${CallRefusal} call=${call} />
    <div class="wires">
      ${call.replies.map((reply) => html`<${WireCard} key=${reply.wire} reply=${reply} part=${part} />`)}
    </div>
    ${isRounding ? html`<p class="hint wires-note">This browser rounds integers above ${Number.MAX_SAFE_INTEGER.toLocaleString("en")}; a newer one shows them exactly.</p>` : ""}
    ${call.replies.some(addedMember) ? html`<p class="hint wires-note">MCP's data also includes the text, as <code>message</code>, because some hosts show a model only the data.</p>` : ""}
    <${PagesView} call=${call} key=${call.id} />
    <${WidgetView} call=${call} />
    <${MoreViews} call=${call} />
  </section>`;
}

// Shown before the first call, where the replies will be.
function NoReply({ server, wireIds }) {
  const wires = server.wires().filter((wire) => wireIds.includes(wire.id));
  return html`<section class="reply no-reply" aria-label="The reply">
    <p class="hint">The reply appears here: over each wire, in each dialect, and as each host shows it to a model.</p>
    <div class="wires" aria-hidden="true">
      ${wires.map((wire) => html`<div class="wire" key=${wire.id}><header><span>${wire.name}</span></header></div>`)}
    </div>
  </section>`;
}

function WireCard({ reply, part }) {
  const kind = reply.waiting ? "waiting" : reply.ok ? "ok" : "failed";
  return html`<article class=${`wire ${kind}`} aria-label=${`Reply over ${reply.name}`} aria-busy=${Boolean(reply.waiting)}>
    <header>
      <h3>${reply.name}</h3>
      ${reply.status ? html`<span class="status">${reply.status}</span>` : ""}
      ${reply.waiting ? "" : html`<span class="time">${milliseconds(reply.ms)}</span>`}
    </header>
    ${reply.waiting ? html`<p class="hint">Calling …</p>` : html`<${WireBody} reply=${reply} part=${part} />`}
  </article>`;
}

function WireBody({ reply, part }) {
  if (reply.cancelled) return html`<p class="hint">Cancelled.</p>`;
  const label = `The ${part === "sent" ? "request" : "reply"} over ${reply.name}`;
  if (part === "sent") return html`<${Json} value=${reply.sent ?? null} label=${label} />`;
  if (part === "whole") return html`<${Json} value=${wholeOf(reply)} label=${label} />`;
  if (reply.media) return html`<${Block} block=${reply.media} />`;
  const message = messageOf(reply);
  const data = dataOf(reply);
  return html`${message ? html`<p class="problem">${message}</p>` : ""}
    ${data === undefined ? "" : html`<${Json} value=${data} label=${label} />`}
    ${reply.result ? html`<${Blocks} reply=${reply} withTexts=${data === undefined && !message} />` : ""}`;
}

// REST sends part of its reply in headers.
function wholeOf({ headers, status, body, media }) {
  return headers ? { status, headers, body: media || body } : body;
}

// The data as the wire sends it: REST's body, or MCP's structured content.
function dataOf(reply) {
  const { result, body } = reply;
  if (reply.media) return undefined;
  if ("data" in reply) return reply.data;
  if (!result) return reply.ok ? body : failureData(body);
  if (result.isError) return (result._meta || {})[ERROR_META];
  return result.structuredContent;
}

// The message is shown above, so show only the rest.
function failureData(body) {
  return body && typeof body === "object" ? body : undefined;
}

function messageOf(reply) {
  const { result } = reply;
  if (reply.ok) return "";
  if (result && result.isError) return textsOf(result).join("\n") || "The call failed";
  return String(reply.failure || "The call failed");
}

function textsOf(result) {
  return (result.content || []).filter((block) => block.type === "text").map((block) => block.text);
}

// The blocks that are not data: text, images, audio, links and embedded files.
function Blocks({ reply, withTexts }) {
  const blocks = (reply.result.content || []).filter(
    (block) => block && (withTexts || block.type !== "text") && !isWholeLink(block),
  );
  return blocks.map((block, at) => html`<${Block} key=${at} block=${block} />`);
}

// The pages of a truncated reply are shown below it.
function isWholeLink(block) {
  return block.type === "resource_link" && String(block.uri).startsWith(WHOLE_PREFIX);
}

const SAFE_MEDIA = /^(image\/(png|jpeg|gif|webp|avif)|audio\/[\w.+-]+)$/;

function Block({ block }) {
  const media = String(block.mimeType || "");
  const source = `data:${media};base64,${block.data}`;
  const isSafe = SAFE_MEDIA.test(media);
  if (block.type === "text") return html`<pre class="text" tabindex="0">${block.text}</pre>`;
  if (block.type === "image" && isSafe) return html`<img src=${source} alt=${`Image, ${media}`} />`;
  if (block.type === "audio" && isSafe) return html`<audio controls src=${source}></audio>`;
  if (block.type === "resource_link") {
    return html`<p class="link-block"><strong>${block.title || block.name}</strong> <code>${block.uri}</code></p>`;
  }
  return html`<${Json} value=${block} label=${`A block of type ${block.type}`} />`;
}

// One sentence about all replies; a screen reader reads it out when the call has ended.
function verdictOf(call) {
  const { replies } = call;
  if (call.running) return { kind: "waiting", text: "Calling …" };
  if (replies.some((reply) => reply.cancelled)) return { kind: "failed", text: "The call was cancelled." };
  const failed = replies.filter((reply) => !reply.ok);
  if (failed.length === replies.length) {
    const where = replies.length > 1 ? ` over all ${replies.length} wires` : ` over ${replies[0].name}`;
    return { kind: "failed", text: `The call failed${where}.` };
  }
  if (failed.length) {
    const names = failed.map((reply) => reply.name).join(" and ");
    return { kind: "failed", text: `The call failed over ${names}, but not over the other wires.` };
  }
  if (replies.length === 1) return { kind: "ok", text: `The call succeeded over ${replies[0].name}.` };
  if (replies.some(isCut)) {
    const rest = replies.some((reply) => reply.wire === "rest") ? "REST sends everything; " : "";
    return { kind: "note", text: `${rest}MCP's reply was cut to fit its budget.` };
  }
  const data = replies.map(comparableData).filter((value) => value !== undefined);
  const values = data.map(canonical);
  if (values.length < replies.length) return { kind: "ok", text: `The call succeeded over all ${replies.length} wires.` };
  return values.every((value) => value === values[0])
    ? { kind: "ok", text: `All ${replies.length} wires send the same data.` }
    : { kind: "note", text: "The wires send different data, because each of them ran the tool." };
}

function isCut(reply) {
  return Boolean(reply.result && (reply.result._meta || {})[CUT_META]);
}

function addedMember(reply) {
  return reply.result && (reply.result._meta || {})[ADDED_META];
}

// The data without the member in which MCP's data repeats its text.
function comparableData(reply) {
  const data = dataOf(reply);
  const added = addedMember(reply);
  if (!added || !data) return data;
  const { [added]: _, ...own } = data;
  return own;
}

// JSON that does not depend on the order of members.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

function MoreViews({ call }) {
  const { server } = useStore();
  const [open, setOpen] = useState("models");
  const { views, viewsError } = call;
  const found = views ? views.findings.length : 0;
  const tabs = [
    { id: "models", name: "What a model sees" },
    { id: "dialects", name: "Dialects" },
    { id: "rules", name: found ? `Rules (${found})` : "Rules" },
    { id: "code", name: "Code" },
  ];
  const names = Object.fromEntries(tabs.map((tab) => [tab.id, tab.name]));
  let body = html`<${NoViews} call=${call} error=${viewsError} />`;
  if (open === "code") {
    body = html`<${CodeView} samples=${codeSamples(server, call.tool, call.args)} />`;
  } else if (views) {
    const shown = { models: ModelsView, dialects: DialectsView, rules: RulesView }[open];
    body = html`<${shown} views=${views} />`;
  }
  return html`<div class="more">
    <${Tabs} label="Views of the reply" tabs=${tabs} chosen=${open} choose=${setOpen} />
    <div role="tabpanel" aria-label=${names[open]}>${body}</div>
  </div>`;
}

function NoViews({ call, error }) {
  if (error) return html`<p class="problem" role="alert">The views cannot be shown: ${error}</p>`;
  const hasResult = call.replies.some((reply) => reply.version);
  if (call.running || hasResult) return html`<p class="hint">Waiting for the reply …</p>`;
  return html`<p class="hint">There is no MCP result to show. Call the tool over MCP.</p>`;
}

function DialectsView({ views }) {
  const [open, setOpen] = useState("mcp");
  const tabs = views.dialects.map((each) => ({ id: each.dialect, name: each.dialect }));
  const shown = views.dialects.find((each) => each.dialect === open);
  const value = readJson(shown.body) ?? shown.body;
  return html`<div class="dialects">
    <${Tabs} label="Dialects" tabs=${tabs} chosen=${open} choose=${setOpen} />
    <dl class="facts">
      <div><dt>Status</dt><dd>${shown.status}</dd></div>
      <div><dt>Content-Type</dt><dd><code>${shown.media_type}</code></dd></div>
      ${Object.entries(shown.headers).map(
        ([name, text]) => html`<div><dt>${name}</dt><dd><code>${text}</code></dd></div>`,
      )}
      <div><dt>Size</dt><dd>${bytesText(shown.size)}</dd></div>
      ${shown.accept
        ? html`<div><dt>Ask for it with</dt><dd><code>Accept: ${shown.accept}</code></dd></div>`
        : ""}
    </dl>
    ${shown.body
      ? html`<${Json} value=${value} label=${`The reply in the ${open} dialect`} />`
      : html`<p class="hint">The body is not text.</p>`}
  </div>`;
}

function bytesText(count) {
  return count < 10_000 ? `${count} bytes` : `${Math.round(count / 1024)} KB`;
}

function RulesView({ views }) {
  const { findings, rules, unchecked } = views;
  return html`<div class="rules">
    ${findings.length
      ? html`<ul>${findings.map((each, at) => html`<${FindingView} key=${at} finding=${each} />`)}</ul>`
      : html`<p class="verdict ok">The reply breaks none of the ${rules} rules.</p>`}
    ${unchecked ? html`<p class="hint">The output schema was not checked: ${unchecked}</p>` : ""}
  </div>`;
}

function FindingView({ finding }) {
  return html`<li class=${`finding ${finding.severity}`}>
    <p><span class="chip">${finding.severity}</span> <strong>${finding.rule} ${finding.name}</strong></p>
    <p>${capitalized(finding.message)}${finding.pointer ? html` <code>${finding.pointer}</code>` : ""}</p>
    ${finding.hint ? html`<p class="hint">To fix it, ${finding.hint}.</p>` : ""}
    <details><summary>The rule</summary><pre class="text" tabindex="0">${finding.page}</pre></details>
  </li>`;
}

function CodeView({ samples }) {
  return html`<div class="samples">
    ${samples.map(
      (sample) => html`<figure>
        <figcaption><strong>${sample.name}</strong><${CopyButton} text=${sample.text} label=${`Copy ${sample.name}`} /></figcaption>
        <pre class="json" role="group" tabindex="0" aria-label=${sample.name}>${sample.text}</pre>
      </figure>`,
    )}
  </div>`;
}
