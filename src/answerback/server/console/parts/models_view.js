// How each host and framework shows a reply to a model: which part, how much, what is lost.

const PART_NAMES = { structuredContent: "data", content: "content", both: "data and content" };

function ModelsView({ views }) {
  const [open, setOpen] = useState(views.models[0].id);
  const most = Math.max(1, ...views.models.map((each) => each.tokens));
  const shown = views.models.find((each) => each.id === open) || views.models[0];
  const seen = useRef(null);
  const show = (id) => {
    setOpen(id);
    // On a small screen the text is below the table.
    seen.current.base.scrollIntoView({ block: "nearest" });
  };
  const groups = [
    ["Hosts", views.models.filter((each) => each.is_host)],
    ["Frameworks", views.models.filter((each) => !each.is_host)],
  ];
  const rows = (models) =>
    models.map(
      (each) => html`<${ModelRow} key=${each.id} model=${each} most=${most} isOpen=${each === shown} open=${show} />`,
    );
  return html`<div class="models">
    <p>${modelsText(views.models)}</p>
    <table>
      <caption class="hidden">What each host and framework shows a model</caption>
      <thead><tr><th scope="col">Shown by</th><th scope="col">Part</th><th scope="col">Tokens</th><th scope="col">Not shown</th></tr></thead>
      ${groups.map(
        ([name, models]) => html`<tbody>
          <tr class="model-group"><th scope="rowgroup" colspan="4">${name}</th></tr>
          ${rows(models)}
        </tbody>`,
      )}
    </table>
    <${SeenText} model=${shown} ref=${seen} />
  </div>`;
}

// One sentence about the table: how much the models see, and whether anything is missing.
function modelsText(models) {
  const tokens = models.map((each) => each.tokens);
  const count = (number) => number.toLocaleString("en");
  const [least, most] = [Math.min(...tokens), Math.max(...tokens)];
  const size = least === most ? `about ${count(most)}` : `about ${count(least)} to ${count(most)}`;
  const lossy = models.filter((each) => each.cut || each.lost.length).length;
  const loss = lossy
    ? `${lossy} of ${models.length} hosts and frameworks leave something out.`
    : `None of the ${models.length} hosts and frameworks leaves anything out.`;
  return `The reply costs a model ${size} tokens. ${loss}`;
}

function ModelRow({ model, most, isOpen, open }) {
  return html`<tr class=${isOpen ? "open" : ""}>
    <th scope="row"><button type="button" aria-pressed=${isOpen} onClick=${() => open(model.id)}>${model.title}</button></th>
    <td><span class=${`part ${model.part}`}>${PART_NAMES[model.part]}</span></td>
    <td class="tokens"><${TokenBar} share=${model.tokens / most} /><span>≈ ${model.tokens.toLocaleString("en")}</span></td>
    <td>${lossText(model)}</td>
  </tr>`;
}

// An SVG, because the page's policy does not allow style attributes.
function TokenBar({ share }) {
  return html`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    <rect class="track" width="100" height="8" rx="4" /><rect class="fill" width=${Math.max(2, share * 100)} height="8" rx="4" />
  </svg>`;
}

function lossText(model) {
  const lost = [...new Set(model.lost)].map((part) => (part === "flag" ? "that it failed" : part));
  if (model.cut) lost.push("a part");
  if (!lost.length) return html`<span class="all">nothing</span>`;
  return lost.map((part) => html`<span class="loss">${part}</span> `);
}

function SeenText({ model }) {
  const media = model.media.length ? `, and ${model.media.join(", ")}` : "";
  const rest = model.size - model.text.length;
  return html`<section class="seen" aria-label=${`What ${model.title} shows`} aria-live="polite">
    <h3>${model.title}</h3>
    <p class="hint">The model gets ${model.size.toLocaleString("en")} characters${media}${model.failed ? ", marked as an error" : ""}.</p>
    ${model.cut ? html`<p class="problem">The reply is too large: the model gets ${model.cut}.</p>` : ""}
    <pre class="json" role="group" tabindex="0" aria-label="The text that the model gets">${model.text || "(no text)"}</pre>
    ${rest > 0 ? html`<p class="hint">${rest.toLocaleString("en")} more characters are not shown here.</p>` : ""}
    <p class="hint source">As of ${model.date}. Large replies: ${model.large}. Source: ${model.source}.</p>
  </section>`;
}
