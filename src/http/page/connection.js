// The connection to hostler: one at a time, made again when it ends.

const KEY = "hostler-key";
const RENEWED = 20 * 60_000; // a key ends half a day after its last use; a connection is one use
const FORGOTTEN = 10 * 60_000; // a page that nobody has looked at for this long leaves: hostler may end then

let socket = null, generation = 0, retry = 0, pause = 500, lastId = 0, renewed = 0, hidden = 0;
const waiting = new Map();

// A request. Parameters may be JSON text. With `whole`, numbers of the result stay as they are written.
function send(method, params, whole) {
  return new Promise((resolve, reject) => {
    if (!socket) return reject(new Error("hostler is not connected"));
    const id = ++lastId, text = typeof params === "string" ? params : JSON.stringify(params ?? {});
    waiting.set(id, { resolve, reject, whole });
    socket.send(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${text}}`);
  });
}

function reply(id, result) {
  socket?.send(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
}

function received(text) {
  const message = JSON.parse(text);
  if (message.method === "events.event") return happened(message.params.result);
  if (message.method === "client.elicit") return asked(message.id, message.params);
  const request = waiting.get(message.id);
  if (!request) return;
  waiting.delete(message.id);
  if (message.error) request.reject(new Error(message.error.message));
  else request.resolve(request.whole ? JSON.parse(text, asWritten).result : message.result);
}

// Trades a ticket, or a token, for a key, which ends with this hostler: a token would go to whatever listens at this port later.
async function trade(headers, body) {
  const answer = await fetch("/page/key", { method: "POST", headers, body });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error.message);
  sessionStorage.setItem(KEY, told.key);
}

async function enter() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  let why = "not connected";
  if (ticket) {
    history.replaceState(null, "", location.pathname);
    try { await trade({}, ticket); } catch (error) { why = error.message; }
  }
  if (!sessionStorage.getItem(KEY)) return locked(why);
  if (ticket && why !== "not connected") remark(why);
  if (!socket || ticket) await connect();
}

// There is no key, or it is not valid any more.
function locked(why) {
  leave();
  sessionStorage.removeItem(KEY);
  $("open").hidden = $("banner").hidden = true;
  $("closed").hidden = false;
  write($("state"), shown(why));
  write($("about"), "");
}

// From here on nothing of an earlier connection counts.
function leave() {
  generation += 1;
  clearTimeout(retry);
  socket?.close();
  socket = null;
  for (const request of waiting.values()) request.reject(new Error("the connection ended"));
  waiting.clear();
  unasked();
}

async function connect() {
  leave();
  const key = sessionStorage.getItem(KEY), own = generation;
  if (!key) return;
  // A handshake that is refused says nothing to a page; a request does.
  const is = await fetch("/rpc", {
    method: "POST", headers: { Authorization: `Bearer ${key}` }, body: '{"jsonrpc":"2.0","id":0,"method":"version"}',
  }).then((answer) => answer.status, () => 0);
  if (own !== generation) return;
  if (is === 401) return locked("this page is not connected any more");
  if (is !== 200) return again();
  renewed = performance.now();
  const next = new WebSocket(`ws://${location.host}/rpc`, ["hostler", `bearer.${key}`]);
  next.onopen = () => { if (own === generation) { socket = next; pause = 500; opened().catch(complain); } else next.close(); };
  next.onmessage = (message) => { if (own === generation) received(message.data); };
  next.onclose = () => { if (own === generation) again(); };
}

function again() {
  leave();
  gone("hostler is not reachable. If it was started again, run `hostler open`.");
  retry = setTimeout(() => connect().catch(again), pause);
  pause = Math.min(pause * 2, 10_000);
}

function gone(why) {
  write($("state"), "not connected");
  $("banner").hidden = false;
  write($("banner"), why);
  $("open").classList.add("gone");
}

async function opened() {
  $("closed").hidden = $("banner").hidden = true;
  $("open").hidden = false;
  $("open").classList.remove("gone");
  write($("state"), "connected");
  await send("events.subscribe", {});
  await Promise.all([reconcile(), refresh(), poll()]);
}

// Every two seconds.
function tick() {
  if (!socket) return;
  if (document.hidden) {
    if (performance.now() - hidden > FORGOTTEN && !hasOwn()) { leave(); gone("This page waits until you look at it."); }
    return;
  }
  if (performance.now() - renewed > RENEWED) {
    renewed = performance.now();
    fetch("/rpc", {
      method: "POST", headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` },
      body: '{"jsonrpc":"2.0","id":0,"method":"version"}',
    }).catch(() => {});
  }
  poll().catch(() => {});
}

function looked() {
  if (document.hidden) hidden = performance.now();
  else if (!socket && sessionStorage.getItem(KEY)) { pause = 500; connect().catch(again); }
}
