"use strict";
// What tools write and how they are called is foreign: it gets into the page as text alone, by `shown` and `textContent`.

const $ = (id) => document.getElementById(id);
const LONGEST_OUTPUT = 200_000;   // characters of a call's output that are kept, the last
const MOST_CALLS = 100;           // rows
const SAMPLES = 90;               // of a worker's memory, one each two seconds
const KEY = "hostler-key";

// ---- Text

const shown = (text) => String(text).replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (sign) => {
  const code = sign.charCodeAt(0);
  return code < 32 ? String.fromCharCode(0x2400 + code) : "\ufffd";
});
const cut = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);
const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
const megabytes = (bytes) => (bytes == null ? "" : `${(bytes / 1e6).toFixed(1)} MB`);
// Whole numbers beyond a double stay what they are.
const exact = (_, value, context) =>
  typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;
const pretty = (value) => JSON.stringify(value, (_, one) =>
  typeof one === "bigint" ? (JSON.rawJSON ? JSON.rawJSON(String(one)) : String(one)) : one, 2);

function made(name, text, type) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = shown(text);
  if (type) element.className = type;
  return element;
}

// Sets a text only if it differs: rows are drawn often, and what a person has selected stays.
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// ---- The connection

let socket = null, lastId = 0, pause = 500;
const waiting = new Map();

function send(method, params) {
  return new Promise((resolve, reject) => {
    if (socket?.readyState !== WebSocket.OPEN) return reject(new Error("not connected"));
    const id = ++lastId;
    waiting.set(id, { resolve, reject });
    // Parameters may be JSON that is written already.
    const text = typeof params === "string" ? params : JSON.stringify(params ?? {});
    socket.send(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${text}}`);
  });
}

function received(text) {
  const message = /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
  if (message.method === "events.event") return happened(message.params.result);
  const asked = waiting.get(message.id);
  if (!asked) return;
  waiting.delete(message.id);
  if (message.error) asked.reject(new Error(message.error.message)); else asked.resolve(message.result);
}

async function enter() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (ticket) {
    history.replaceState(null, "", location.pathname);
    const answer = await fetch("/page/key", { method: "POST", body: ticket });
    const body = await answer.json();
    if (answer.ok) sessionStorage.setItem(KEY, body.key); else return closed(body.error.message);
  }
  if (sessionStorage.getItem(KEY)) await connect(); else closed("not connected");
}

function closed(why) {
  sessionStorage.removeItem(KEY);
  $("open").hidden = true;
  $("closed").hidden = false;
  write($("about"), shown(why));
}

async function connect() {
  const key = sessionStorage.getItem(KEY);
  if (!key) return;
  // A handshake that is refused says nothing to a page; a request does.
  const answer = await fetch("/rpc", {
    method: "POST", headers: { Authorization: `Bearer ${key}` }, body: '{"jsonrpc":"2.0","id":0,"method":"version"}',
  }).catch(() => null);
  if (answer?.status === 401) return closed("this ticket is not valid any more");
  if (!answer) return again();
  const next = new WebSocket(`ws://${location.host}/rpc`, ["hostler", `bearer.${key}`]);
  next.onopen = () => { socket = next; pause = 500; opened().catch((error) => write($("about"), shown(error.message))); };
  next.onmessage = (message) => received(message.data);
  next.onclose = again;
}

function again() {
  socket = null;
  for (const asked of waiting.values()) asked.reject(new Error("the connection ended"));
  waiting.clear();
  write($("about"), "hostler is not reachable; trying again…");
  setTimeout(() => connect().catch(again), pause);
  pause = Math.min(pause * 2, 10_000);
}

async function opened() {
  $("closed").hidden = true;
  $("open").hidden = false;
  for (const call of calls.values()) call.row.remove();
  calls.clear();
  await send("events.subscribe", {});
  const list = await send("calls.list", { limit: MOST_CALLS });
  list.reverse().forEach(known);
  await Promise.all([refresh(), poll()]);
}

// ---- Calls

const calls = new Map();
let chosen = null;
const runs = (call) => ["queued", "running", "asking"].includes(call.state);

function callOf(id, tool) {
  let call = calls.get(id);
  if (call) return call;
  call = { id, tool, state: "running", since: performance.now(), output: "", dropped: 0, row: made("li") };
  const name = made("button", cut(tool, 200), "name");
  name.type = "button";
  name.onclick = () => choose(call);
  call.fact = made("span", "", "fact");
  call.cancel = made("button", "Cancel", "quiet");
  call.cancel.type = "button";
  call.cancel.setAttribute("aria-label", `Cancel ${shown(cut(tool, 200))}`);
  call.cancel.onclick = () => send("calls.cancel", { call: id }).catch((error) => write($("about"), shown(error.message)));
  call.row.append(name, call.fact, call.cancel);
  calls.set(id, call);
  $("calls").prepend(call.row);
  for (const [old, one] of calls) {
    if (calls.size <= MOST_CALLS) break;
    if (runs(one) || one === chosen) continue;
    one.row.remove();
    calls.delete(old);
  }
  return call;
}

function known(info) {
  const call = callOf(info.call_id, info.tool);
  Object.assign(call, { state: info.state, error: info.error, arguments: info.arguments, client: info.client });
  if (runs(call)) call.since = performance.now() - info.duration_ms; else call.took = info.duration_ms;
}

function happened(event) {
  if (event.event === "catalogue_changed") return void refresh().catch(() => {});
  if (!event.call_id) return;
  const call = callOf(event.call_id, event.tool_name ?? "");
  if (event.event === "tool_call_started") Object.assign(call, { client: event.client, arguments: event.arguments });
  else if (event.event === "tool_output") print(call, event.text);
  else if (event.event === "tool_progress") call.progress = event;
  else if (event.event.startsWith("tool_call_")) {
    const code = event.error?.code;
    call.state = event.event === "tool_call_completed" ? "complete" : code === "CANCELLED" ? "cancelled" : "error";
    Object.assign(call, { took: event.latency_ms, error: event.error, traceback: event.traceback });
  }
}

function print(call, text) {
  call.output += text;
  if (call.output.length > 2 * LONGEST_OUTPUT) trim(call);
}

function trim(call) {
  const over = call.output.length - LONGEST_OUTPUT;
  if (over <= 0) return;
  call.output = call.output.slice(over);
  call.dropped += over;
}

function choose(call) {
  chosen = call;
  $("call").hidden = !call;
  draw();
}

function drawChosen() {
  const call = chosen;
  if (!call) return;
  trim(call);
  write($("call-name"), shown(call.tool));
  const facts = [call.state, call.client, `call ${call.id}`];
  if (call.progress) facts.push(`${call.progress.progress}${call.progress.total == null ? "" : ` of ${call.progress.total}`} ${call.progress.message ?? ""}`);
  write($("call-facts"), shown(cut(facts.filter(Boolean).join(" · "), 1000)));
  $("call-error").hidden = !call.error;
  if (call.error) write($("call-error"), shown(`${call.error.code}: ${call.error.message}`));
  $("call-lost").hidden = !call.dropped;
  write($("call-lost"), `${call.dropped} characters before these are left out.`);
  $("call-printed").hidden = call.output === "";
  const box = $("call-output"), isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  write(box, shown(call.output));
  if (isAtEnd) box.scrollTop = box.scrollHeight;
  const more = [["Result", call.result], ["Traceback", call.traceback], ["Arguments", call.arguments]].filter(([, value]) => value != null);
  const key = `${call.id} ${more.map(([title]) => title)}`;
  if ($("call-more").dataset.key === key) return;
  $("call-more").dataset.key = key;
  $("call-more").replaceChildren(...more.flatMap(([title, value]) => {
    const text = typeof value === "string" ? value : pretty(value);
    const over = text.length - LONGEST_OUTPUT;
    const parts = [made("h4", title), made("pre", cut(text, LONGEST_OUTPUT))];
    return over > 0 ? [...parts, made("p", `${over} characters after these are left out.`, "faint")] : parts;
  }));
}

function draw() {
  const now = performance.now();
  for (const call of calls.values()) {
    const is = runs(call);
    write(call.fact, `${call.state === "error" && call.error ? shown(call.error.code) : call.state} · ${seconds(is ? now - call.since : call.took ?? 0)}`);
    call.fact.className = call.state === "error" ? "fact bad" : call.state === "complete" ? "fact good" : "fact";
    call.cancel.hidden = !is;
  }
  $("no-calls").hidden = calls.size > 0;
  drawChosen();
}

// ---- Workers

const memory = new Map();

async function poll() {
  const status = await send("status");
  write($("about"), `version ${status.version} · process ${status.pid} · ${status.sessions.length} sessions · ${megabytes(status.rss)}`);
  const seen = new Set();
  $("workers").replaceChildren(...status.pools.flatMap((pool) => pool.workers.map((worker) => {
    const samples = memory.get(worker.pid) ?? [];
    if (worker.rss != null) samples.push(worker.rss);
    samples.splice(0, samples.length - SAMPLES);
    memory.set(worker.pid, samples);
    seen.add(worker.pid);
    return rowOf(pool, worker, samples);
  })));
  for (const pid of memory.keys()) if (!seen.has(pid)) memory.delete(pid);
  $("no-workers").hidden = seen.size > 0;
}

function rowOf(pool, worker, samples) {
  const row = made("li"), name = made("span", pool.source.split("/").pop(), "name");
  name.title = shown(pool.source);
  const restart = made("button", "Restart", "quiet");
  restart.type = "button";
  restart.onclick = () => send("pool.restart", { source: pool.source }).catch((error) => write($("about"), shown(error.message)));
  row.append(name, made("span", `${worker.pid ?? ""} ${worker.state} · ${worker.calls} calls`, "fact"), lineOf(samples),
    made("span", megabytes(worker.rss), "fact"), restart);
  return row;
}

function lineOf(samples) {
  const name = "http://www.w3.org/2000/svg", svg = document.createElementNS(name, "svg"), line = document.createElementNS(name, "polyline");
  const most = Math.max(...samples, 1) * 1.1;
  svg.setAttribute("viewBox", "0 0 110 26");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `memory, ${megabytes(samples.at(-1)) || "unknown"} now`);
  line.setAttribute("points", samples.map((bytes, at) => `${(at * 110) / (SAMPLES - 1)},${25 - (bytes / most) * 24}`).join(" "));
  svg.append(line);
  return svg;
}

// ---- Tools, and the form to call one

let tools = [], tool = null;

async function refresh() {
  tools = (await send("ListAvailableTools")).tools;
  $("no-tools").hidden = tools.length > 0;
  list();
}

function list() {
  const wanted = $("search").value.toLowerCase();
  const found = tools.filter((one) => `${one.name} ${one.description ?? ""}`.toLowerCase().includes(wanted)).slice(0, 500);
  $("tools").replaceChildren(...found.map((one) => {
    const row = made("li"), name = made("button", cut(one.name, 200), "name");
    name.type = "button";
    name.onclick = () => pick(one);
    const counts = one.metrics?.executions ? `${one.metrics.executions} calls, ${one.metrics.failed} failed` : "";
    row.append(name, made("span", one.status === "ready" ? counts : one.status, one.status === "ready" ? "fact" : "fact bad"));
    return row;
  }));
}

function pick(one) {
  tool = one;
  $("tool").hidden = !one;
  if (!one) return;
  write($("tool-name"), shown(one.name));
  write($("tool-about"), shown(cut(one.error_message ?? one.description ?? "", 4000)));
  write($("tool-schema"), cut(shown(pretty({ input: one.input_schema, output: one.output_schema })), LONGEST_OUTPUT));
  write($("form-error"), "");
  const schema = one.input_schema ?? {}, required = Array.isArray(schema.required) ? schema.required : [];
  $("fields").replaceChildren(...Object.entries(schema.properties ?? {}).slice(0, 200).map(([name, field], at) =>
    fieldOf(name, field ?? {}, required.includes(name), at)));
  $("start").disabled = one.status !== "ready";
}

function fieldOf(name, field, isRequired, at) {
  const box = made("div"), label = made("label", cut(name, 200) + (isRequired ? " *" : "")), id = `field-${at}`;
  const choices = Array.isArray(field.enum) ? field.enum : field.type === "boolean" ? [true, false] : null;
  const isLine = ["integer", "number"].includes(field.type) || (field.type === "string" && !(field.default ?? "").includes?.("\n"));
  const input = made(choices ? "select" : isLine ? "input" : "textarea");
  if (choices) {
    input.append(new Option(isRequired ? "choose" : "default", ""), ...choices.map((one) => new Option(shown(pretty(one)), pretty(one))));
  } else {
    input.placeholder = field.default === undefined ? (isLine ? "" : "JSON") : shown(cut(pretty(field.default), 200));
  }
  Object.assign(input, { id, required: isRequired && field.type !== "string", spellcheck: false });
  Object.assign(input.dataset, { name, type: choices ? "json" : typeof field.type === "string" ? field.type : "json", required: isRequired ? "1" : "" });
  label.htmlFor = id;
  const about = [field.type, field.description].filter((part) => typeof part === "string").join(" · ");
  label.append(made("small", cut(about, 500)));
  box.append(label, input);
  return box;
}

// The arguments as JSON text: a number is passed on as it was typed.
function argumentsOf(form) {
  const parts = [];
  for (const input of form.querySelectorAll("[data-name]")) {
    const { name, type, required } = input.dataset;
    let value = input.value;
    if (value === "" && !(required && type === "string")) continue;
    if (type === "string") value = JSON.stringify(value);
    try { JSON.parse(value); } catch { throw new Error(`${name}: this is not JSON`); }
    parts.push(`${JSON.stringify(name)}:${value}`);
  }
  return `{${parts.join(",")}}`;
}

$("form").onsubmit = async (event) => {
  event.preventDefault();
  write($("form-error"), "");
  try {
    const { call: id } = await send("calls.start", `{"tool":${JSON.stringify(tool.name)},"arguments":${argumentsOf($("form"))}}`);
    const call = callOf(id, tool.name);
    choose(call);
    const outcome = await send("calls.wait", { call: id });
    if (outcome?.success) call.result = outcome.result; else if (outcome) call.error = outcome.error ?? call.error;
  } catch (error) {
    write($("form-error"), shown(error.message));
  }
};
$("search").oninput = list;
$("call-close").onclick = () => choose(null);
$("tool-close").onclick = () => pick(null);
$("enter").onsubmit = (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("token").value.trim());
  $("token").value = "";
  connect().catch(again);
};

window.addEventListener("hashchange", () => enter().catch(again));
setInterval(draw, 200);
setInterval(() => { if (socket && !document.hidden) poll().catch(() => {}); }, 2000);
enter().catch(again);
