// The pages of a truncated reply: the next items, the next lines, or the whole reply.

const WHOLE_PREFIX = "answerback://replies/";

function PagesView({ call }) {
  const { server } = useStore();
  const [pages, setPages] = useState([]);
  const [busy, setBusy] = useState(false);
  const first = call.replies.find((reply) => reply.version && reply.ok);
  if (!first) return "";
  const latest = {
    result: pages.findLast((page) => page.result)?.result || first.result,
    end: pages.findLast((page) => page.end)?.end,
  };
  const ways = waysOn(call, first, latest);
  if (!ways.cuts.length && !ways.next && !pages.length) return "";
  const add = async (load) => {
    setBusy(true);
    const page = await load().catch((error) => ({ name: "Failed", failure: error.message }));
    setPages([...pages, page]);
    setBusy(false);
  };
  const client = server.client(first.wire);
  return html`<section class="pages" aria-label="Pages">
    <div class="pages-head">
      <p>${ways.cuts.length ? ways.cuts.map(cutText).join(" ") : "There are more pages."}</p>
      <div class="buttons">
        ${ways.next
          ? html`<button type="button" class="small" disabled=${busy} onClick=${() => add(() => nextPage(server, call, first.wire, ways.next, pages.length + 2))}>Next page</button>`
          : ""}
        ${ways.range
          ? html`<button type="button" class="small" disabled=${busy} onClick=${() => add(() => readPart(client, ways.range))}>${ways.range.name}</button>`
          : ""}
        ${ways.whole
          ? html`<button type="button" class="small" disabled=${busy} onClick=${() => add(() => readPart(client, { name: "The whole reply", uri: ways.whole }))}>The whole reply</button>`
          : ""}
      </div>
    </div>
    <div aria-live="polite">
      ${pages.map(
        (page, at) => html`<details key=${at} open=${at === pages.length - 1}>
          <summary>${page.name}</summary>
          ${page.failure
            ? html`<p class="problem">${page.failure}</p>`
            : html`<${Json} value=${page.value} label=${page.name} />`}
        </details>`,
      )}
    </div>
  </section>`;
}

// How to get the rest: a page's cursor, or a range of the stored reply.
function waysOn(call, first, latest) {
  const { result } = first;
  const cuts = (result._meta || {})[CUT_META] || [];
  const link = (result.content || []).find(
    (block) => block.type === "resource_link" && String(block.uri).startsWith(WHOLE_PREFIX),
  );
  const whole = link ? link.uri : "";
  const takesCursor = Boolean((call.tool.inputSchema.properties || {}).cursor);
  const data = latest.result && latest.result.structuredContent;
  const next = takesCursor && data && typeof data.next === "string" ? data.next : "";
  const range = whole && cuts.length && !takesCursor ? nextRange(whole, cuts[0], latest.end) : null;
  return { cuts, whole, next, range };
}

function nextRange(whole, cut, end = cut.returned) {
  if (end >= cut.total) return null;
  const last = Math.min(end + cut.returned, cut.total);
  const query = new URLSearchParams();
  if (cut.path) query.set("path", cut.path);
  query.set("offset", end);
  query.set("limit", cut.returned);
  if (cut.unit !== "items") query.set("unit", cut.unit);
  const name = `${capitalized(cut.unit)} ${end + 1} to ${last}`;
  return { name, uri: `${whole}?${query}`, end: last };
}

function cutText(cut) {
  const where = cut.path && cut.path !== cut.unit ? ` of “${cut.path}”` : "";
  const count = (number) => number.toLocaleString("en");
  return `Showing ${count(cut.returned)} of ${count(cut.total)} ${cut.unit}${where}.`;
}

function capitalized(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

async function nextPage(server, call, wire, cursor, number) {
  const reply = await server.call(wire, call.tool.name, { ...call.args, cursor });
  const name = `Page ${number}`;
  if (!reply.ok) return { name, failure: messageOf(reply) };
  return { name, value: reply.result.structuredContent, result: reply.result };
}

async function readPart(client, { name, uri, end }) {
  const { result } = await client.request("resources/read", { uri });
  const [content] = result.contents;
  return { name, value: readJson(content.text) ?? content.text, end };
}
