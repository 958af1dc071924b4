// Reads a JSON Schema for the fields of a form.

const MAX_REFERENCES = 20;
const MAX_FORM_DEPTH = 4;

// Text that was typed where JSON is expected, but is not JSON.
class Unreadable {
  constructor(text, reason) {
    this.text = text;
    this.reason = reason;
  }

  toJSON() {
    return this.text;
  }
}

function jsonOrUnreadable(text) {
  try {
    return parsedJson(text);
  } catch (error) {
    return new Unreadable(text, error.message);
  }
}

// Returns a schema with its references and its allOf filled in, and without a list of types.
function resolved(schema, root) {
  if (!isJsonObject(schema)) return {};
  let found = schema;
  for (let count = 0; typeof found.$ref === "string" && count < MAX_REFERENCES; count++) {
    const { $ref, ...beside } = found;
    found = { ...pointedTo(root, $ref), ...beside };
  }
  if (Array.isArray(found.allOf)) found = mergedAllOf(found, root);
  return Array.isArray(found.type) && !found.enum ? withoutTypeList(found) : found;
}

function pointedTo(root, reference) {
  if (!reference.startsWith("#")) return {};
  const names = decodeURIComponent(reference.slice(1)).split("/").slice(1);
  let found = root;
  for (const name of names) found = found?.[name.replaceAll("~1", "/").replaceAll("~0", "~")];
  return isJsonObject(found) ? found : {};
}

function mergedAllOf({ allOf, ...schema }, root) {
  const all = { ...schema };
  for (const each of allOf) {
    // A schema in its own allOf would recurse forever.
    const { allOf: _, ...part } = resolvedOnce(each, root);
    const properties = { ...part.properties, ...all.properties };
    const required = [...(part.required || []), ...(all.required || [])];
    Object.assign(all, { ...part, ...all, properties, required });
  }
  if (Object.keys(all.properties || {}).length === 0) delete all.properties;
  return all;
}

function resolvedOnce(schema, root) {
  if (!isJsonObject(schema)) return {};
  const { $ref, ...beside } = schema;
  return typeof $ref === "string" ? { ...pointedTo(root, $ref), ...beside } : schema;
}

function withoutTypeList({ type, ...schema }) {
  if (type.length === 1) return { ...schema, type: type[0] };
  const { title, description, default: fallback, examples, ...limits } = schema;
  const outside = { title, description, default: fallback, examples };
  return { ...outside, anyOf: type.map((each) => ({ ...limits, type: each })) };
}

// The values to choose from, each with its name; null if the schema does not list them.
function optionsOf(schema) {
  if ("const" in schema) return [{ value: schema.const, name: schema.title || wordFor(schema.const) }];
  if (Array.isArray(schema.enum)) {
    const names = schema.enumNames || schema["x-enumNames"] || schema["x-enum-varnames"] || [];
    return schema.enum.map((value, at) => ({ value, name: names[at] || wordFor(value) }));
  }
  const listed = schema.oneOf || schema.anyOf;
  if (!Array.isArray(listed) || !listed.length) return null;
  if (!listed.every((each) => isJsonObject(each) && "const" in each)) return null;
  return listed.map((each) => ({ value: each.const, name: each.title || wordFor(each.const) }));
}

function wordFor(value) {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

// The schemas of a union; null if the schema is not a union. Nested unions are merged into one, and
// a union that contains itself adds nothing.
function variantsOf(schema, root, outer = []) {
  const listed = schema.anyOf || schema.oneOf;
  if (!Array.isArray(listed) || schema.properties) return null;
  const within = [...outer, listed];
  const variants = listed.flatMap((each) => {
    const found = resolved(each, root);
    if (within.includes(found.anyOf || found.oneOf)) return [];
    return (optionsOf(found) ? null : variantsOf(found, root, within)) || [found];
  });
  return variants.length ? variants : null;
}

// Splits "X or null" into X and whether null is allowed.
function withoutNull(schema, root) {
  const variants = variantsOf(schema, root);
  const others = variants && variants.filter((each) => each.type !== "null");
  if (!variants || others.length !== 1 || others.length === variants.length) {
    return { part: schema, nullable: false };
  }
  const { anyOf: _, oneOf: __, ...outside } = schema;
  const given = Object.entries(outside).filter(([, value]) => value !== undefined);
  return { part: { ...others[0], ...Object.fromEntries(given) }, nullable: true };
}

// Which control edits a value with this schema: a key of CONTROLS.
function kindOf(schema, root) {
  if (optionsOf(schema)) return "options";
  if (variantsOf(schema, root)) return "union";
  switch (schema.type || impliedType(schema)) {
    case "boolean":
      return "boolean";
    case "integer":
    case "number":
      return "number";
    case "string":
      return schema.contentEncoding === "base64" ? "file" : "text";
    case "null":
      return "null";
    case "array":
      return listKind(schema, root);
    case "object":
      if (schema.properties) return "object";
      return saysMore(schema.additionalProperties) ? "dictionary" : "json";
    default:
      return "json";
  }
}

function listKind(schema, root) {
  if (Array.isArray(schema.prefixItems)) return "list";
  if (!saysMore(schema.items)) return "json";
  return optionsOf(resolved(schema.items, root)) && schema.uniqueItems !== false ? "choices" : "list";
}

function saysMore(schema) {
  return isJsonObject(schema) && Object.keys(schema).length > 0;
}

function impliedType(schema) {
  const has = (...names) => names.some((name) => name in schema);
  if (has("properties", "additionalProperties", "required")) return "object";
  if (has("items", "prefixItems", "minItems", "maxItems")) return "array";
  if (has("pattern", "minLength", "maxLength", "format", "contentEncoding")) return "string";
  if (has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")) return "number";
  return undefined;
}

function itemSchema(schema, index) {
  return (schema.prefixItems || [])[index] ?? schema.items ?? {};
}

// The initial value of a new field: the part that all allowed values have in common.
function initialValue(schema, root, depth = 0) {
  const { part, nullable } = withoutNull(resolved(schema, root), root);
  if (nullable || depth > MAX_FORM_DEPTH) return undefined;
  const options = optionsOf(part);
  if (options) return options.length === 1 ? options[0].value : undefined;
  switch (kindOf(part, root)) {
    case "union":
      return initialValue(variantsOf(part, root)[0], root, depth + 1);
    case "null":
      return null;
    case "dictionary":
      return {};
    case "choices":
      return [];
    case "list": {
      const length = Math.min(Number(part.minItems) || 0, 5);
      const items = Array.from({ length }, (_, at) => itemSchema(part, at));
      return items.map((each) => initialValue(each, root, depth + 1));
    }
    case "object":
      return objectFrom(part, (name, each) =>
        (part.required || []).includes(name) ? initialValue(each, root, depth + 1) : undefined,
      );
    default:
      return undefined;
  }
}

// A form's initial arguments. An argument with one possible value is left to the user:
// it may be a confirmation.
function initialArguments(schema) {
  const part = resolved(schema, schema);
  const value = initialValue(schema, schema) ?? {};
  if (kindOf(part, schema) !== "object") return value;
  return objectFrom(part, (name, each) => (hasOneValue(each, schema) ? undefined : memberOf(value, name)));
}

function hasOneValue(schema, root) {
  return optionsOf(resolved(schema, root))?.length === 1;
}

function objectFrom(schema, valueOf) {
  const names = Object.entries(schema.properties || {});
  const made = names.map(([name, each]) => [name, valueOf(name, each)]);
  return Object.fromEntries(made.filter(([, value]) => value !== undefined));
}

// An object's own member, not one that every object inherits, such as "constructor".
function memberOf(object, name) {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

// A value to try: the examples, the defaults, or else the simplest valid value.
function sampleOf(schema, root, depth = 0) {
  const { part } = withoutNull(resolved(schema, root), root);
  if (Array.isArray(part.examples) && part.examples.length) return part.examples[0];
  if (part.default !== undefined && part.default !== null) return part.default;
  if (depth > MAX_FORM_DEPTH) return undefined;
  const below = (each) => sampleOf(each, root, depth + 1);
  switch (kindOf(part, root)) {
    case "options":
      return optionsOf(part)[0].value;
    case "union":
      return below(variantsOf(part, root)[0]);
    case "boolean":
      return true;
    case "number":
      return sampleNumber(part);
    case "text":
      return sampleText(part);
    case "file":
      return "";
    case "null":
      return null;
    case "choices":
      return [below(part.items)];
    case "list": {
      const length = Math.max(Number(part.minItems) || 0, depth > 1 ? 0 : 1);
      const items = Array.from({ length: Math.min(length, 5) }, (_, at) => itemSchema(part, at));
      return items.map(below);
    }
    case "dictionary":
      return { key: below(part.additionalProperties) };
    case "object":
      return objectFrom(part, (name, each) =>
        (part.required || []).includes(name) || resolved(each, root).examples
          ? below(each)
          : undefined,
      );
    default:
      return part.type === "array" ? [] : {};
  }
}

function sampleNumber(schema) {
  const step = Number(schema.multipleOf || 1);
  const above = schema.minimum ?? Number(schema.exclusiveMinimum ?? 0) + step;
  const highest = schema.maximum ?? Number(schema.exclusiveMaximum ?? Infinity) - step;
  return above > highest ? highest : above;
}

function sampleText(schema) {
  const sample = SAMPLE_TEXTS[schema.format]?.() ?? "text";
  if (schema.pattern) return textLike(schema);
  if (schema.format) return sample;
  const least = Math.min(Number(schema.minLength) || 0, MAX_CHECKED_TEXT);
  return sample.padEnd(least, "t").slice(0, Number(schema.maxLength ?? Infinity));
}

const PATTERN_PIECE = /(\[([^\]\\^])[^\]\\]*\]|\\([dw.])|[\p{L}\p{N}\s@:/_-])(?:\{(\d{1,2})(?:,\d*)?\}|([+*?]))?/guy;

// A string that matches a simple pattern, such as ^[A-Z]{2}-\d+$; undefined for other patterns.
function textLike(schema) {
  const source = String(schema.pattern).replace(/^\^/, "").replace(/\$$/, "");
  let text = "";
  let end = 0;
  for (const [piece, plain, first, escaped, count, sign] of source.matchAll(PATTERN_PIECE)) {
    const letter = first ?? { d: "0", w: "a" }[escaped] ?? escaped ?? plain;
    text += letter.repeat(count ?? { "*": 0, "?": 0 }[sign] ?? 1);
    end += piece.length;
  }
  if (end !== source.length || textProblems(schema, text).length) return undefined;
  return text;
}

const SAMPLE_TEXTS = {
  date: () => new Date().toISOString().slice(0, 10),
  "date-time": () => new Date().toISOString().slice(0, 19) + "Z",
  time: () => "12:30:00Z",
  duration: () => "PT1H30M",
  email: () => "ada@example.org",
  uri: () => "https://example.org",
  uuid: () => "123e4567-e89b-42d3-a456-426614174000",
  ipv4: () => "192.0.2.1",
  ipv6: () => "2001:db8::1",
  hostname: () => "example.org",
};

function isJsonObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const TYPE_WORDS = { string: "text", array: "list", integer: "integer", number: "number" };

// A few words about what a value must be, such as "integer, 1 to 60".
function shortDescription(schema, root) {
  const kind = kindOf(schema, root);
  if (kind === "options") return "";
  // Other titles mostly repeat the argument's name.
  const words = [kind === "object" && schema.title ? schema.title : typeWord(schema, root)];
  if (schema.type === "string") words.push(lengthRange(schema.minLength, schema.maxLength, "characters"));
  else if (schema.type === "array") words.push(lengthRange(schema.minItems, schema.maxItems, "items"));
  else words.push(numberRange(schema));
  if (schema.multipleOf) words.push(`a multiple of ${schema.multipleOf}`);
  if (schema.pattern && kind === "text") words.push(`like ${schema.pattern}`);
  if (schema.deprecated) words.push("deprecated");
  return words.filter(Boolean).join(", ");
}

function typeWord(schema, root, depth = 0) {
  if (depth > MAX_FORM_DEPTH || variantsOf(schema, root)) return "";
  if (schema.contentEncoding === "base64") return "base64";
  const type = schema.type || impliedType(schema);
  if (type === "string") return schema.format || "text";
  if (type === "array" && saysMore(schema.items)) {
    const word = typeWord(resolved(schema.items, root), root, depth + 1);
    return word ? `list of ${word}` : "list";
  }
  return TYPE_WORDS[type] || type || "JSON";
}

function lengthRange(least, most, unit) {
  const all = unit === "items" && least === most && least !== undefined;
  if (all) return `${least} ${unit}`;
  if (least && most !== undefined) return `${least} to ${most} ${unit}`;
  if (least) return `at least ${least} ${unit}`;
  return most === undefined ? "" : `at most ${most} ${unit}`;
}

function numberRange({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }) {
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  const low = minimum !== undefined ? `≥ ${minimum}` : numberLimit(exclusiveMinimum, ">");
  const high = maximum !== undefined ? `≤ ${maximum}` : numberLimit(exclusiveMaximum, "<");
  return [low, high].filter(Boolean).join(", ");
}

function numberLimit(limit, sign) {
  return limit === undefined ? "" : `${sign} ${limit}`;
}
