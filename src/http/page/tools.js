// Tools, and the form to call one.

const MOST_TOOLS = 500; // rows
const UNUSABLE = ["broken", "missing-binary"];
let tools = [], tool = null;

async function refresh() {
  tools = (await send("ListAvailableTools")).tools;
  $("no-tools").hidden = tools.length > 0;
  write($("tools-count"), tools.length ? String(tools.length) : "");
  list();
  const now = tool && tools.find((one) => one.name === tool.name);
  if (now && JSON.stringify([now.input_schema, now.status, now.description]) !== JSON.stringify([tool.input_schema, tool.status, tool.description])) {
    const before = new Map([...$("fields").querySelectorAll("[data-name]")].map((input) => [input.dataset.name, input.value]));
    show(now);
    for (const input of $("fields").querySelectorAll("[data-name]")) input.value = before.get(input.dataset.name) ?? "";
  }
}

function list() {
  const wanted = $("search").value.trim().toLowerCase();
  const found = tools.filter((one) => `${one.name} ${one.description ?? ""}`.toLowerCase().includes(wanted));
  const focused = document.activeElement?.dataset?.tool;
  $("tools").replaceChildren(...found.slice(0, MOST_TOOLS).map((one) => {
    const row = made("li"), name = button(cut(one.name, 200), "name", () => pick(one));
    name.dataset.tool = one.name;
    if (one.name === tool?.name) row.setAttribute("aria-current", "true");
    const counts = one.metrics?.executions ? `${plural(one.metrics.executions, "call")}${one.metrics.failed ? `, ${one.metrics.failed} failed` : ""}` : "";
    const isWell = one.status === "ready";
    row.append(name, made("span", isWell ? counts : one.status, isWell ? "fact" : "fact bad"));
    return row;
  }));
  if (focused) [...$("tools").querySelectorAll("button")].find((one) => one.dataset.tool === focused)?.focus({ preventScroll: true });
  const more = found.length - MOST_TOOLS;
  $("more-tools").hidden = more <= 0 && found.length > 0 || tools.length === 0;
  write($("more-tools"), found.length === 0 ? "No tool has that in its name or description." : `${more} more; search for them.`);
}

function pick(one) {
  show(one);
  list();
  if (one) goTo($("tool-name"));
}

function show(one) {
  tool = one;
  $("tool").hidden = !one;
  if (!one) return;
  write($("tool-name"), shown(one.name));
  write($("tool-about"), shown(cut(one.description ?? "", 4000)));
  $("tool-trouble").hidden = !one.error_message;
  write($("tool-trouble"), shown(cut(one.error_message ?? "", 4000)));
  write($("tool-schema"), cut(shown(pretty({ input: one.input_schema, output: one.output_schema })), LONGEST));
  write($("form-error"), "");
  const { fields, left } = fieldsOf("field", one.input_schema);
  $("fields").replaceChildren(...fields);
  const takesMore = one.input_schema?.additionalProperties !== false && fields.length === 0;
  $("field-note").hidden = left === 0;
  write($("field-note"), `${plural(left, "argument")} more; give them as JSON.`);
  $("raw").value = "";
  asJson(takesMore && one.status === "schema-unknown");
  $("start").disabled = UNUSABLE.includes(one.status);
}

function asJson(isOn) {
  $("as-json").setAttribute("aria-pressed", isOn);
  write($("as-json"), isOn ? "As a form" : "As JSON");
  $("raw-box").hidden = !isOn;
  $("fields").hidden = isOn;
}

function toggleJson() {
  const isOn = $("raw-box").hidden;
  if (isOn) {
    try { $("raw").value = laidOut(typed($("form"))); } catch { $("raw").value ||= "{}"; }
  }
  asJson(isOn);
}

function argumentsText() {
  if ($("raw-box").hidden) return typed($("form"));
  const text = $("raw").value.trim() || "{}";
  let value;
  try { value = JSON.parse(text); } catch (error) { throw new Error(`the arguments are not JSON: ${error.message}`); }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("the arguments must be a JSON object");
  return text;
}

async function call(event) {
  event.preventDefault();
  write($("form-error"), "");
  if ($("start").disabled) return;
  $("start").disabled = true;
  let begun = null;
  try {
    const { call: id } = await send("calls.start", `{"tool":${JSON.stringify(tool.name)},"can_ask":true,"arguments":${argumentsText()}}`);
    begun = callOf(id, tool.name);
    begun.own = true;
    begun.since ??= performance.now();
    choose(begun);
  } catch (error) {
    write($("form-error"), shown(error.message));
  }
  $("start").disabled = UNUSABLE.includes(tool?.status);
  if (!begun) return;
  try {
    const outcome = await send("calls.wait", { call: begun.id }, true);
    if (outcome) settled(begun, outcome);
  } catch {
    if (runs(begun)) Object.assign(begun, { state: "ended, outcome not known" }), ended(begun, undefined);
  }
}
