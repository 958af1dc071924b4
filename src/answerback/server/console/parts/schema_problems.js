// What is wrong with a value, before it is sent (by its schema) and after (by the server's reply).
// A problem is { path, message }; paths are written like the server's, such as lines[0].count.

const MAX_UNIONS = 3;
const MAX_CHECKED_TEXT = 1000;
const REQUIRED = "required";

function memberPath(path, name) {
  if (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)) return path ? `${path}.${name}` : name;
  const quote = name.includes("'") && !name.includes('"') ? '"' : "'";
  return `${path}[${quote}${name}${quote}]`;
}

function itemPath(path, index) {
  return `${path}[${index}]`;
}

// The value at a path; undefined if there is none.
function valueAt(value, path) {
  let found = value;
  for (const [step, index, quoted] of path.matchAll(/\[(\d+)\]|\[["'](.*?)["']\]|[^.[\]]+/g)) {
    found = found?.[index ?? quoted ?? step];
  }
  return found;
}

// `unions` counts nested unions at one value: a schema may refer to itself.
function problemsOf(schema, value, root = schema, path = "", unions = 0) {
  const problem = (message) => [{ path, message }];
  if (value instanceof Unreadable) return problem(`This is not JSON: ${value.reason}`);
  if (schema === false) return problem("no value is allowed here");
  const part = resolved(schema, root);
  const options = optionsOf(part);
  if (options) {
    if (options.some((option) => sameJson(option.value, value))) return [];
    const names = options.map((option) => JSON.stringify(option.value));
    return problem(`expected ${oneOfText(names)}, got ${gotText(value)}`);
  }
  const listed = part.anyOf || part.oneOf;
  const among = Array.isArray(listed) && unions < MAX_UNIONS;
  const variants = among ? bestVariant(listed, value, root, path, unions).problems : [];
  if (part.type && !isOfType(value, part.type)) {
    return problem(`expected ${TYPE_NAMES[part.type] || part.type}, got ${gotText(value)}`);
  }
  return [...variants, ...limitProblems(part, value, root, path)];
}

function limitProblems(schema, value, root, path) {
  const at = (messages) => messages.map((message) => ({ path, message }));
  if (isOfType(value, "number")) return at(numberProblems(schema, value));
  if (typeof value === "string") return at(textProblems(schema, value));
  if (Array.isArray(value)) {
    const saysItems = "items" in schema || "prefixItems" in schema;
    const below = value.map((item, index) => {
      const where = itemPath(path, index);
      if (item === undefined) return saysItems ? [{ path: where, message: REQUIRED }] : [];
      return problemsOf(itemSchema(schema, index), item, root, where);
    });
    return [...at(listProblems(schema, value)), ...below.flat()];
  }
  return isJsonObject(value) ? objectProblems(schema, value, root, path) : [];
}

// The variant that the value matches, or matches best; the first if there is no value.
function bestVariant(variants, value, root, path = "", unions = 0) {
  let best = null;
  for (const [index, variant] of variants.entries()) {
    const problems = problemsOf(variant, value, root, path, unions + 1);
    const cost = problems.length + distance(variant, value, root);
    if (best === null || cost < best.cost) best = { index, problems, cost };
  }
  return best || { index: 0, problems: [] };
}

// A wrong type, and a wrong tag such as "type": "Card", are more telling than any other problem.
function distance(variant, value, root) {
  const schema = resolved(variant, root);
  if (schema.type && !isOfType(value, schema.type)) return 1000;
  if (!isJsonObject(value)) return 0;
  const wrong = Object.entries(schema.properties || {}).filter(([name, each]) => {
    const options = optionsOf(resolved(each, root));
    return options?.length === 1 && name in value && !sameJson(options[0].value, value[name]);
  });
  return wrong.length * 100;
}

const TYPE_NAMES = {
  string: "text",
  integer: "an integer",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  null: "null",
};

function isOfType(value, type) {
  const types = Array.isArray(type) ? type : [type];
  return types.some((each) => {
    if (each === "integer") return Number.isInteger(value) || typeof value === "bigint";
    if (each === "number") return typeof value === "number" || typeof value === "bigint";
    if (each === "array") return Array.isArray(value);
    if (each === "object") return isJsonObject(value);
    if (each === "null") return value === null;
    return typeof value === each;
  });
}

function gotText(value) {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function oneOfText(names) {
  if (names.length === 1) return names[0];
  const shown = names.slice(0, 10);
  return `one of ${shown.join(", ")}${names.length > shown.length ? ", …" : ""}`;
}

function sameJson(a, b) {
  return a === b || (typeof a === "object" && JSON.stringify(a) === JSON.stringify(b));
}

function numberProblems(schema, value) {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const found = [];
  if (minimum !== undefined && value < minimum) found.push(`expected at least ${minimum}`);
  if (maximum !== undefined && value > maximum) found.push(`expected at most ${maximum}`);
  if (value <= exclusiveMinimum) found.push(`expected more than ${exclusiveMinimum}`);
  if (value >= exclusiveMaximum) found.push(`expected less than ${exclusiveMaximum}`);
  const steps = Number(value) / Number(multipleOf);
  if (multipleOf && Math.abs(steps - Math.round(steps)) > 1e-9) {
    found.push(`expected a multiple of ${multipleOf}`);
  }
  if (!JSON.rawJSON && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    found.push("this browser cannot send such a large integer exactly; use a newer one, or the command line");
  }
  return found;
}

function textProblems(schema, value) {
  const length = [...value].length;
  const found = [];
  if (length < schema.minLength) found.push(`expected at least ${schema.minLength} characters`);
  if (length > schema.maxLength) found.push(`expected at most ${schema.maxLength} characters`);
  if (schema.pattern && !isLike(schema.pattern, value)) found.push(`expected text like ${schema.pattern}`);
  return found;
}

// A pattern that a browser does not understand is left to the server.
function isLike(pattern, text) {
  if (text.length > MAX_CHECKED_TEXT) return true;
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

function listProblems(schema, value) {
  const { minItems, maxItems, uniqueItems } = schema;
  const found = [];
  if (value.length < minItems) found.push(`expected at least ${countOf(minItems, "item")}`);
  if (value.length > maxItems) found.push(`expected at most ${countOf(maxItems, "item")}`);
  const texts = new Set(value.map((item) => JSON.stringify(item)));
  if (uniqueItems && texts.size < value.length) found.push("expected each item only once");
  return found;
}

function countOf(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function objectProblems(schema, value, root, path) {
  const properties = schema.properties || {};
  const found = [];
  for (const name of schema.required || []) {
    if (memberOf(value, name) === undefined) found.push({ path: memberPath(path, name), message: REQUIRED });
  }
  for (const [name, each] of Object.entries(value)) {
    const where = memberPath(path, name);
    if (each === undefined) {
      // A new dictionary entry has no value yet.
      if (schema.additionalProperties) found.push({ path: where, message: REQUIRED });
    } else if (Object.hasOwn(properties, name)) {
      found.push(...problemsOf(properties[name], each, root, where));
    } else if (schema.additionalProperties === false && !schema.patternProperties) {
      const names = Object.keys(properties).join(", ") || "none";
      found.push({ path: where, message: `unknown; the names are: ${names}` });
    } else if (isJsonObject(schema.additionalProperties)) {
      found.push(...problemsOf(schema.additionalProperties, each, root, where));
    }
  }
  return found;
}

// The problems that a refused call names, from a reply over any wire.
function refusedProblems(reply) {
  if (reply.ok) return [];
  const listed = listedProblems(reply.body);
  if (listed.length) return listed;
  const text = errorText(reply);
  return zodProblems(text) || pydanticProblems(text) || sdkProblems(text) || lineProblems(text);
}

// Answerback's own list: "problems", wherever the dialect has it.
function listedProblems(body, depth = 0) {
  if (!isJsonObject(body) || depth > 5) return [];
  if (Array.isArray(body.problems)) {
    const found = body.problems.filter((each) => typeof each?.path === "string" && each.message);
    return found.map(({ path, message, hint }) => ({
      path,
      message: hint ? `${message}; ${hint}` : message,
    }));
  }
  for (const each of Object.values(body)) {
    const found = listedProblems(each, depth + 1);
    if (found.length) return found;
  }
  return [];
}

function errorText({ body, failure }) {
  const blocks = (body && body.content) || [];
  const texts = Array.isArray(blocks) ? blocks.map((block) => block?.text || "") : [];
  return texts.join("\n") || String(failure || "");
}

// "Invalid arguments: count: expected int >= 1, got int 0", one problem per line.
function lineProblems(text) {
  const start = "Invalid arguments: ";
  if (!text.startsWith(start)) return [];
  const lines = text.slice(start.length).split("\n");
  return lines.map((line) => {
    const [, path, message] = /^([^\s:]+): (.*)$/.exec(line) || [null, "", line];
    return { path, message };
  });
}

// pydantic, in FastMCP and Python SDK servers: a path, and below it an indented message.
function pydanticProblems(text) {
  if (!/\d+ validation errors? for /.test(text)) return null;
  const found = [...text.matchAll(/^(\S+)\n {2}(.+?)(?: \[type=.*)?$/gm)];
  return found.map(([, path, message]) => ({ path: withIndexes(path), message }));
}

// The TypeScript SDK: "… Invalid arguments for tool NAME: MESSAGE at PATH", one per line.
function sdkProblems(text) {
  const [, lines] = /Invalid arguments for tool [^:]+: (.*)$/s.exec(text) || [];
  if (!lines) return null;
  return [...lines.matchAll(/^(.+) at (\S+)$/gm)].map(([, message, path]) => ({
    path: withIndexes(path),
    message,
  }));
}

// Both write lines.0.count for lines[0].count.
function withIndexes(path) {
  return path.replace(/\.(\d+)(?=\.|$)/g, "[$1]");
}

// zod, in older TypeScript SDK servers: a JSON list of issues in the message.
function zodProblems(text) {
  const issues = readJson(text.slice(text.indexOf("["), text.lastIndexOf("]") + 1));
  if (!Array.isArray(issues) || !issues.every((each) => Array.isArray(each?.path))) return null;
  return issues.map(({ path, message }) => ({
    path: path.reduce((at, step) => (typeof step === "number" ? itemPath : memberPath)(at, step), ""),
    message,
  }));
}
