// A form for a JSON Schema.

function SchemaForm({ schema, value, change, problems }) {
  const properties = Object.entries(schema.properties || {});
  const required = new Set(schema.required || []);
  return html`<div class="fields">
    ${properties.map(([name, part]) => {
      const id = `field-${name}`;
      const set = (given) => {
        const next = { ...value };
        if (given === undefined) delete next[name];
        else next[name] = given;
        change(next);
      };
      return html`<div class="field">
        <label for=${id}>${name}${required.has(name) ? html`<span class="required"> required</span>` : ""}</label>
        ${part.description ? html`<p class="hint" id=${id + "-hint"}>${part.description}</p>` : ""}
        <${ScalarField} id=${id} schema=${part} value=${value[name]} change=${set} />
        ${problems && problems[name] ? html`<p class="problem" role="alert">${problems[name]}</p>` : ""}
      </div>`;
    })}
  </div>`;
}

function ScalarField({ id, schema, value, change }) {
  const read = (event) => {
    const text = event.currentTarget.value;
    if (text === "") return change(undefined);
    if (schema.type === "integer" || schema.type === "number") return change(Number(text));
    if (schema.type === "string") return change(text);
    return change(readJson(text) ?? text);
  };
  const text = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const type = schema.type === "integer" || schema.type === "number" ? "number" : "text";
  return html`<input id=${id} type=${type} value=${text} onInput=${read} />`;
}
