// A form for a JSON Schema: of a tool's arguments, or of what a tool asks.

const MOST_FIELDS = 200, MOST_CHOICES = 1000;

// What a schema comes to: references within it are followed, and `null` beside one other type is left out.
function plainOf(schema, root, depth = 0) {
  if (!schema || typeof schema !== "object" || depth > 8) return {};
  const { title, description, default: usual } = schema;
  const own = Object.fromEntries(Object.entries({ title, description, default: usual }).filter(([, value]) => value !== undefined));
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#/")) {
    const parts = schema.$ref.slice(2).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    const found = parts.reduce((at, part) => (at && Object.hasOwn(at, part) ? at[part] : undefined), root);
    return { ...plainOf(found, root, depth + 1), ...own };
  }
  const others = [schema.anyOf, schema.oneOf, schema.allOf].find(Array.isArray);
  if (others) {
    const real = others.filter((one) => one?.type !== "null");
    if (real.length === 1) return { ...plainOf(real[0], root, depth + 1), ...own };
    if (real.length > 1 && real.every((one) => one && Object.hasOwn(one, "const")))
      return { ...own, enum: real.map((one) => one.const), names: real.map((one) => one.title) };
    return own;
  }
  if (Array.isArray(schema.type)) {
    const real = schema.type.filter((one) => one !== "null");
    return { ...schema, type: real.length === 1 ? real[0] : undefined };
  }
  if (Object.hasOwn(schema, "const")) return { ...schema, enum: [schema.const] };
  return schema;
}

function fieldOf(id, name, whole, root, isRequired) {
  const field = plainOf(whole, root);
  const choices = field.type === "boolean" ? [true, false] : Array.isArray(field.enum) && field.enum.length <= MOST_CHOICES ? field.enum : null;
  const isNumber = field.type === "integer" || field.type === "number";
  const kind = choices ? "choice" : isNumber ? field.type : field.type === "string" ? "string" : "json";
  const label = made("label", cut(field.title ?? name, 200) + (isRequired ? " *" : ""));
  const input = made(choices ? "select" : isNumber ? "input" : "textarea");
  const usual = field.default === undefined ? "" : cut(typeof field.default === "string" ? field.default : JSON.stringify(field.default), 200);
  if (choices) {
    const texts = choices.map((one, at) => field.names?.[at] ?? (typeof one === "string" ? one : JSON.stringify(one)));
    input.append(new Option(isRequired ? "choose" : usual ? `left out (${shown(usual)})` : "left out", ""));
    input.append(...choices.map((one, at) => new Option(shown(cut(String(texts[at]), 200)), JSON.stringify(one))));
  } else {
    input.placeholder = shown(usual || (kind === "json" ? "JSON" : ""));
    if (isNumber) input.inputMode = "decimal"; else input.rows = 1;
  }
  Object.assign(input, { id, spellcheck: false, autocomplete: "off" });
  Object.assign(input.dataset, { name, kind, required: isRequired ? "1" : "" });
  label.htmlFor = id;
  const type = typeof field.type === "string" ? field.type : choices ? "" : kind;
  const about = [type, field.description].filter((part) => typeof part === "string" && part !== "").join(" · ");
  label.append(made("small", cut(about, 500)));
  const box = made("div");
  box.append(label, input);
  return box;
}

// The fields of a schema; how many did not fit.
function fieldsOf(prefix, schema) {
  const all = Object.entries(schema?.properties ?? {}), required = Array.isArray(schema?.required) ? schema.required : [];
  const sorted = [...all.filter(([name]) => required.includes(name)), ...all.filter(([name]) => !required.includes(name))];
  const fields = sorted.slice(0, MOST_FIELDS).map(([name, field], at) => fieldOf(`${prefix}-${at}`, name, field, schema, required.includes(name)));
  return { fields, left: all.length - fields.length };
}

// What was typed, as JSON text: a number is passed on as it is written.
function typed(form) {
  const parts = [];
  for (const input of form.querySelectorAll("[data-name]")) {
    const { name, kind, required } = input.dataset, value = input.value.trim();
    if (input.value === "" && !(required && kind === "string")) {
      if (required) throw new Error(`${name}: a value is needed`);
      continue;
    }
    if (kind === "integer" && !/^-?(0|[1-9]\d*)$/.test(value)) throw new Error(`${name}: this is not a whole number`);
    if (kind === "number" && !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(value)) throw new Error(`${name}: this is not a number such as 0.5`);
    if (kind === "json") {
      try { JSON.parse(value); } catch { throw new Error(`${name}: this is not JSON; a text needs quotes, as in "text"`); }
    }
    parts.push(`${JSON.stringify(name)}:${kind === "string" ? JSON.stringify(input.value) : value}`);
  }
  return `{${parts.join(",")}}`;
}
