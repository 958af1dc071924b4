// Resources and their templates: a list, a template's fields, and the content that was read.

function ResourcesView() {
  const { lists, chosen } = useStore();
  const entry = ({ uri, uriTemplate, name, title, description }) => ({
    key: uri || uriTemplate,
    name: title || name || uri || uriTemplate,
    hint: firstLine(description) || uri || uriTemplate,
  });
  const groups = [
    { title: "Resources", entries: lists.resources.map(entry) },
    { title: "Templates", entries: lists.templates.map(entry) },
  ];
  const all = [...lists.resources, ...lists.templates];
  if (!all.length) return html`<p class="hint">This server has no resources.</p>`;
  const key = ({ uri, uriTemplate }) => uri || uriTemplate;
  const open = all.find((each) => key(each) === chosen.resources) || all[0];
  const choose = (uri) => update({ chosen: { ...state.chosen, resources: uri } });
  return html`<div class="split">
    <${EntryList} label="Resources" methods=${["resources/list", "resources/templates/list"]} groups=${groups} chosen=${key(open)} choose=${choose} />
    <div class="detail"><${ResourceView} key=${key(open)} resource=${open} /></div>
  </div>`;
}

function ResourceView({ resource }) {
  const { server, runs } = useStore();
  const [version, setVersion] = useVersion();
  const template = resource.uriTemplate;
  const [values, setValues] = useState({});
  const names = template ? templateNames(template) : [];
  const uri = template ? expandTemplate(template, values) : resource.uri;
  const place = { id: `resource ${template || resource.uri}`, view: "resources", entry: template || resource.uri };
  const run = runs[place.id];
  const client = server.client(version);
  const read = (event) => {
    event.preventDefault();
    startRun(place, (options) => client.request("resources/read", { uri }, options));
  };
  const ref = { type: "ref/resource", uri: template };
  return html`<section aria-label=${`The resource ${resource.name}`}>
    <h2>${resource.title || resource.name || resource.uri || template}</h2>
    <p class="marks">
      ${resource.mimeType ? html`<span class="mark">${resource.mimeType}</span>` : ""}
      ${resource.size === undefined ? "" : html`<span class="mark">${bytesText(resource.size)}</span>`}
    </p>
    ${resource.description ? html`<p class="description">${resource.description}</p>` : ""}
    <form class="call-form" onSubmit=${read}>
      ${names.map(
        (name, at) => html`<${CompletedField}
          key=${name}
          id=${`template-${at}`}
          name=${name}
          value=${values[name] || ""}
          change=${(text) => setValues({ ...values, [name]: text })}
          complete=${(text) => completions(client, ref, name, text, withoutEmpty({ ...values, [name]: "" }))}
        />`,
      )}
      <p class="uri"><span class="hidden">Address: </span><code>${uri}</code></p>
      <div class="call-row">
        <button type="submit" class="main" disabled=${Boolean(run && run.running)}>Read</button>
        <${VersionChoice} server=${server} chosen=${version} choose=${setVersion} />
      </div>
    </form>
    <${RunView} place=${place} run=${run}>
      ${run && run.result ? (run.result.contents || []).map((content, at) => html`<${ContentView} key=${at} content=${content} />`) : ""}
    <//>
  </section>`;
}

// A request's activity and how it ended; the children show its result.
function RunView({ place, run, children }) {
  if (!run) return "";
  return html`<section class="reply" aria-label="The reply">
    <${Activity} place=${place} running=${run.running} abort=${run.abort} />
    ${run.running ? "" : html`<${RunFailure} run=${run} />`}
    ${run.result ? html`<p class="verdict ok" role="status">Received in ${milliseconds(run.ms)}</p>${children}` : ""}
  </section>`;
}

function ContentView({ content }) {
  const media = content.mimeType || "";
  const isMedia = content.blob !== undefined && SAFE_MEDIA.test(media);
  const type = media.split("/")[0];
  const json = content.text !== undefined && /json/.test(media) ? readJson(content.text) : null;
  return html`<figure class="content">
    <figcaption><code>${content.uri}</code> <span class="mark">${media || "no type"}</span></figcaption>
    ${isMedia
      ? html`<${Block} block=${{ type, mimeType: media, data: content.blob }} />`
      : html`<${Json} value=${json ?? content.text ?? content.blob ?? ""} label=${`The content of ${content.uri}`} />`}
  </figure>`;
}

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

// The names in a URI template (RFC 6570), in order.
function templateNames(template) {
  const found = [...template.matchAll(EXPRESSION)].flatMap(([, , names]) => names.split(","));
  return [...new Set(found.map((name) => name.replace(/(\*|:\d+)$/, "")))];
}

// Fills in a URI template. A variable without a value is left out of a query, and stays visible
// elsewhere.
function expandTemplate(template, values) {
  return template.replace(EXPRESSION, (whole, operator, list) => {
    const names = list.split(",").map((name) => name.replace(/(\*|:\d+)$/, ""));
    const given = names.filter((name) => values[name]);
    if (!given.length) return "?&#;".includes(operator || " ") ? "" : whole;
    const keepsReserved = operator === "+" || operator === "#" || list.endsWith("*");
    const encoded = (name) =>
      keepsReserved ? encodeURI(values[name]) : encodeURIComponent(values[name]);
    if ("?&;".includes(operator || " ")) {
      const pairs = given.map((name) => `${name}=${encodeURIComponent(values[name])}`);
      return operator + pairs.join(operator === ";" ? ";" : "&");
    }
    const start = { "/": "/", ".": ".", "#": "#" }[operator] || "";
    const between = operator === "/" || operator === "." ? operator : ",";
    return start + given.map(encoded).join(between);
  });
}
