// What --schema prints: one entry for each function, out of its JSDoc. What is not said there is left open.

/** The entries of these functions, whose module has this text. */
export function schemas({ functions, secrets }, source) {
  const docs = new Map();
  const documented = /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*export\s+(?:async\s+)?(?:function\s*\*?\s*|const\s+|let\s+)([\w$]+)/g;
  for (const [, text, name] of source.matchAll(documented)) docs.set(name, parsed(text));
  return [...functions].map(([name, made]) => {
    const { description, params = [], returns } = docs.get(name) ?? {};
    const input_schema = isTold(params, String(made)) ? objectOf(params) : { type: "object" };
    const output = returns && Object.keys(returns).length > 0 ? { output_schema: returns } : {};
    const asks = secrets.length > 0 ? { secrets } : {};
    return { name, description, input_schema, ...output, protocol: "v1", ...asks };
  });
}

/** Whether the comment says what the function takes: each argument, or nothing where it takes nothing. */
function isTold(params, source) {
  const [, name] = source.match(/^(?:async\s+)?(?:function\s*\*?\s*[\w$]*)?\s*\(?\s*([\w$]*)/) ?? [];
  const takesNothing = /^(?:async\s+)?(?:function\s*\*?\s*[\w$]*)?\s*\(\s*\)/.test(source);
  if (params.length === 0) return takesNothing;
  const [{ path, schema }] = params;
  // The whole of the arguments under a name, with nothing said of what is in it.
  return !(params.length === 1 && path.length === 1 && path[0] === name && schema.type === "object");
}

function parsed(text) {
  const plain = text.split("\n").map((line) => line.replace(/^\s*\*? ?/, "")).join("\n");
  const [description, ...tags] = plain.split(/^[ \t]*@(?=\w)/m);
  const found = { description: description.trim() || undefined, params: [], returns: undefined };
  for (const tag of tags) {
    const word = tag.match(/^\w+/)[0];
    const [type, rest] = typeAndRest(tag.slice(word.length).trim());
    if (word === "param" || word === "arg" || word === "argument") {
      const one = parameter(type, rest);
      if (one.path.every((name) => /^[\w$-]+(\[\])?$/.test(name) && name !== "__proto__")) found.params.push(one);
    }
    if ((word === "returns" || word === "return") && !/^(Promise<)?(void|undefined)>?$/.test(type)) {
      found.returns = { ...schemaOf(type), ...(rest && { description: oneLine(rest) }) };
    }
  }
  return found;
}

/** `{type} rest`, where the type may hold braces of its own. */
function typeAndRest(text) {
  if (!text.startsWith("{")) return ["*", text];
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    depth += text[at] === "{" ? 1 : text[at] === "}" ? -1 : 0;
    if (depth === 0) return [text.slice(1, at).trim(), text.slice(at + 1).trim()];
  }
  return ["*", text];
}

function parameter(type, rest) {
  const [, optional, open] = rest.match(/^(?:\[((?:[^\[\]]|\[[^\]]*\])*)\]|(\S+))/) ?? [];
  const text = oneLine(rest.slice((optional === undefined ? open ?? "" : `[${optional}]`).length).replace(/^\s*-\s+/, ""));
  const [name, ...value] = (optional ?? open ?? "").split("=");
  const schema = { ...schemaOf(type.replace(/=$/, "")), ...(text && { description: text }) };
  if (value.length > 0) schema.default = literal(value.join("=").trim(), schema);
  return { path: name.trim().split("."), schema, required: optional === undefined && !type.endsWith("=") };
}

const oneLine = (text) => text.trim().split(/\s+/).join(" ");

function literal(text, { type }) {
  const inner = text.match(/^'(.*)'$/s);
  if (inner) return inner[1];
  try {
    return JSON.parse(text);
  } catch {
    return type === "string" ? text : undefined;
  }
}

/** Parameters by name. Those that are said to be members of the first (`args.text`) are the arguments themselves. */
function objectOf(params) {
  const [first] = params;
  const isWhole = first?.path.length === 1 && params.length > 1 && params.slice(1).every(({ path }) => path.length > 1 && path[0] === first.path[0]);
  const named = isWhole ? params.slice(1).map((one) => ({ ...one, path: one.path.slice(1) })) : params;
  const whole = { type: "object", properties: {}, additionalProperties: false };
  for (const { path, schema, required } of named) {
    const holder = path.slice(0, -1).reduce(memberOf, whole);
    const name = path.at(-1);
    (holder.properties ??= {})[name] = schema;
    if (required && !holder.required?.includes(name)) (holder.required ??= []).push(name);
  }
  return whole;
}

/** The schema of a member, or of the items of one that is a list. */
function memberOf(holder, name) {
  const key = name.replace("[]", "");
  const found = holder.properties && Object.hasOwn(holder.properties, key) ? holder.properties[key] : {};
  return key === name ? found : found.items ?? {};
}

const PLAIN = {
  string: "string", number: "number", integer: "integer", int: "integer", boolean: "boolean", bool: "boolean",
  null: "null", undefined: "null", object: "object", array: "array",
};

/** A type of JSDoc as JSON Schema. What is not known is left open. */
function schemaOf(text) {
  const type = text.trim();
  const branches = split(type);
  if (branches.length > 1) {
    const found = branches.map(schemaOf);
    return found.every((one) => "const" in one) ? { enum: found.map((one) => one.const) } : { anyOf: found };
  }
  if (/^\(.*\)$/s.test(type)) return schemaOf(type.slice(1, -1));
  if (/^[?].+/s.test(type)) return { anyOf: [schemaOf(type.slice(1)), { type: "null" }] };
  if (type.startsWith("!")) return schemaOf(type.slice(1));
  if (type.endsWith("[]")) return { type: "array", items: schemaOf(type.slice(0, -2)) };
  const [, holder, inside] = type.match(/^(\w+)\.?<(.*)>$/s) ?? [];
  if (holder === "Array") return { type: "array", items: schemaOf(inside) };
  if (holder === "Promise") return schemaOf(inside);
  if (holder === "Object" || holder === "Record") {
    return { type: "object", additionalProperties: schemaOf(inside.slice(inside.indexOf(",") + 1)) };
  }
  if (type.startsWith("{")) return { type: "object" };
  if (/^(["']).*\1$/s.test(type)) return { const: type.slice(1, -1) };
  if (/^-?\d+(\.\d+)?$/.test(type) || type === "true" || type === "false") return { const: JSON.parse(type) };
  const plain = PLAIN[type.toLowerCase()];
  return plain ? { type: plain } : {};
}

/** At the bars that stand in no bracket and no text. */
function split(text) {
  const parts = [""];
  let depth = 0, quote = "";
  for (const letter of text) {
    if (quote) quote = letter === quote ? "" : quote;
    else if (letter === '"' || letter === "'") quote = letter;
    else depth += "(<{[".includes(letter) ? 1 : ")>}]".includes(letter) ? -1 : 0;
    if (letter === "|" && depth === 0 && !quote) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts;
}
