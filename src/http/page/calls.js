// Calls: those that run, the last that ended, and the one that was chosen.

const MOST_CALLS = 100; // rows of ended calls
const calls = new Map(); // by id, oldest first
let chosen = null, reconciling = false;
const runs = (call) => ["queued", "waiting_approval", "running", "asking"].includes(call.state);
const hasOwn = () => [...calls.values()].some((call) => call.own && runs(call));

function callOf(id, tool, at) {
  let call = calls.get(id);
  if (call) return call;
  call = { id, tool, state: "running", at: at ?? Date.now(), output: "", dropped: 0, row: made("li") };
  const name = button(cut(tool, 200), "name", () => choose(call));
  call.fact = made("span", "", "fact");
  call.when = made("span", "", "fact when");
  call.cancel = button("Cancel", "quiet", () => send("calls.cancel", { call: id }).catch(complain), `Cancel ${cut(tool, 200)}`);
  call.row.append(name, call.when, call.fact, call.cancel);
  calls.set(id, call);
  $("running").prepend(call.row);
  return call;
}

function known(info) {
  const call = callOf(info.call_id, info.tool, info.started_ms);
  Object.assign(call, { state: info.state, error: info.error, client: info.client, at: info.started_ms });
  call.arguments ??= info.arguments;
  if (runs(call)) call.since = performance.now() - info.duration_ms; else ended(call, info.duration_ms);
}

function ended(call, took) {
  call.took = took;
  unasked(call.id);
  if (call.row.parentNode === $("ended")) return;
  call.row.remove();
  // Where it belongs by its start; mostly first.
  const before = [...$("ended").children].find((row) => row.at <= call.at);
  call.row.at = call.at;
  $("ended").insertBefore(call.row, before ?? null);
  if ($("ended").children.length <= MOST_CALLS) return;
  for (const [old, one] of calls) {
    if (runs(one) || one === chosen) continue;
    one.row.remove();
    calls.delete(old);
    break;
  }
}

// Events may be lost: what runs is what hostler says.
async function reconcile() {
  if (reconciling) return;
  reconciling = true;
  try {
    const before = [...calls.values()].filter(runs);
    const list = await send("calls.list", { limit: MOST_CALLS });
    const running = await send("calls.list", { states: ["queued", "waiting_approval", "running", "asking"] });
    [...list, ...running.filter((one) => !list.some((other) => other.call_id === one.call_id))].reverse().forEach(known);
    const still = new Set(running.map((one) => one.call_id));
    for (const call of before.filter((one) => runs(one) && !still.has(one.id))) {
      await send("calls.get", { call: call.id }).then(known, () => { call.state = "ended, outcome not known"; ended(call, undefined); });
    }
  } finally {
    reconciling = false;
  }
}

function happened(event) {
  if (event.event === "catalogue_changed") return void refresh().catch(() => {});
  if (event.event === "lost") {
    if (chosen && runs(chosen)) chosen.missed = (chosen.missed ?? 0) + event.count;
    return void reconcile().catch(() => {});
  }
  if (!event.call_id) return;
  const call = callOf(event.call_id, event.tool_name ?? "", event.time_ms);
  call.since ??= performance.now();
  if (event.event === "tool_call_started") Object.assign(call, { client: event.client, arguments: event.arguments });
  else if (event.event === "tool_output") print(call, event.text);
  else if (event.event === "tool_progress") call.progress = event;
  else if (event.event.startsWith("tool_call_")) {
    const code = event.error?.code;
    const states = { tool_call_completed: "complete", tool_call_blocked: "denied" };
    call.state = states[event.event] ?? (code === "CANCELLED" ? "cancelled" : "error");
    Object.assign(call, { error: event.error, traceback: event.traceback });
    ended(call, event.latency_ms);
  }
}

// The outcome of a call that was made here.
function settled(call, outcome) {
  if (outcome.success) call.result = outcome.result ?? null; else call.error ??= outcome.error;
  call.hasResult = outcome.success;
  call.state = outcome.success ? "complete" : outcome.error?.code === "CANCELLED" ? "cancelled" : "error";
  ended(call, outcome.latency_ms);
}

function print(call, text) {
  call.output += text;
  if (call.output.length > 2 * LONGEST) trim(call);
}

function trim(call) {
  const over = call.output.length - LONGEST;
  if (over <= 0) return;
  call.output = call.output.slice(over);
  call.dropped += over;
}

function choose(call) {
  chosen?.row.removeAttribute("aria-current");
  chosen = call;
  $("call").hidden = !call;
  if (!call) return;
  call.row.setAttribute("aria-current", "true");
  drawChosen();
  goTo($("call-name"));
}

function drawChosen() {
  const call = chosen;
  if (!call) return;
  trim(call);
  write($("call-name"), shown(call.tool));
  const facts = [call.state, tookOf(call), call.client, clock(call.at), `call ${call.id}`];
  if (call.progress) {
    const { progress, total, message } = call.progress;
    facts.push(`${progress}${total == null ? "" : ` of ${total}`} ${message ?? ""}`);
  }
  write($("call-facts"), shown(cut(facts.filter(Boolean).join(" · "), 1000)));
  $("call-error").hidden = !call.error;
  if (call.error) write($("call-error"), shown(`${call.error.code}: ${call.error.message}`));
  $("call-lost").hidden = !call.dropped && !call.missed;
  write($("call-lost"), `${call.dropped ? `${call.dropped} characters before these are left out. ` : ""}${
    call.missed ? `${plural(call.missed, "event")} of hostler came too fast for this page; output may be missing.` : ""}`);
  $("call-printed").hidden = call.output === "" && !call.missed;
  const box = $("call-output"), isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  write(box, shown(call.output));
  if (isAtEnd) box.scrollTop = box.scrollHeight;
  drawMore(call);
}

function drawMore(call) {
  const parts = [["Result", call.result, call.hasResult], ["Traceback", call.traceback], ["Arguments", call.arguments]]
    .filter(([, value, is]) => is ?? value != null);
  const key = `${call.id} ${parts.map(([title]) => title)}`;
  if ($("call-more").dataset.key === key) return;
  $("call-more").dataset.key = key;
  $("call-more").replaceChildren(...parts.flatMap(([title, value]) => {
    const text = title === "Arguments" ? laidOut(value) : typeof value === "string" ? value : pretty(value);
    const over = text.length - LONGEST, box = made("pre", cut(text, LONGEST));
    box.tabIndex = 0;
    const part = [made("h4", title), box];
    return over > 0 ? [...part, made("p", `${over} characters after these are left out.`, "faint")] : part;
  }));
}

const stateOf = (call) => (["error", "denied"].includes(call.state) && call.error ? call.error.code : call.state);

function tookOf(call) {
  const took = runs(call) ? performance.now() - (call.since ?? performance.now()) : call.took;
  return took === undefined ? "" : time(took);
}

function draw() {
  if (socket) {
    for (const call of calls.values()) {
      write(call.fact, [shown(stateOf(call)), tookOf(call)].filter(Boolean).join(" · "));
      write(call.when, [cut(shown(call.client ?? ""), 40), clock(call.at)].filter(Boolean).join(" · "));
      call.fact.className = ["error", "denied"].includes(call.state) ? "fact bad" : call.state === "complete" ? "fact good" : "fact";
      call.cancel.hidden = !runs(call);
    }
    const running = $("running").children.length;
    write($("calls-count"), running ? `${running} running` : "");
    $("no-calls").hidden = calls.size > 0;
  }
  drawChosen();
}
