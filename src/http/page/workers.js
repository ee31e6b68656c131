// Workers: one row each, which stays while its worker lives.

const SAMPLES = 90; // of a worker's memory, one each two seconds
const workers = new Map(); // by process id

async function poll() {
  const status = await send("status");
  const { version, pid, sessions, rss, draining } = status;
  write($("about"), `version ${version} · process ${pid} · ${plural(sessions.length, "session")} · ${megabytes(rss)}`);
  if (draining) {
    $("banner").hidden = false;
    write($("banner"), "hostler ends when its clients have left; it accepts no new ones.");
    if (!hasOwn()) { leave(); return gone("hostler ends, so this page has left it. Run `hostler open` again."); }
  }
  const seen = new Set();
  for (const pool of status.pools) {
    for (const worker of pool.workers) {
      const key = worker.pid ?? `${pool.source} ${worker.state}`;
      seen.add(key);
      drawWorker(workers.get(key) ?? workerOf(key, pool), worker);
    }
  }
  for (const [key, worker] of workers) {
    if (seen.has(key)) continue;
    worker.row.remove();
    workers.delete(key);
  }
  $("no-workers").hidden = workers.size > 0;
  // Events of calls that ended may have been lost.
  if ([...calls.values()].some((call) => runs(call) && performance.now() - call.since > 2000)) await reconcile();
}

function workerOf(key, pool) {
  const name = made("span", pool.source.split("/").pop(), "name"), fact = made("span", "", "fact"), memory = made("span", "", "fact");
  name.title = shown(pool.source);
  const restart = button("Restart", "quiet", () => send("pool.restart", { source: pool.source }).then(
    () => remark(`${pool.source.split("/").pop()}: its workers are replaced when their calls have ended`), complain),
  `Restart the workers of ${pool.source}`);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  line.append(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
  line.setAttribute("viewBox", "0 0 110 26");
  line.setAttribute("role", "img");
  const worker = { samples: [], fact, memory, line, row: made("li") };
  worker.row.append(name, fact, line, memory, restart);
  workers.set(key, worker);
  $("workers").append(worker.row);
  return worker;
}

function drawWorker(row, worker) {
  write(row.fact, shown(`${worker.pid ?? ""} ${worker.state} · ${plural(worker.calls, "call")}`));
  write(row.memory, megabytes(worker.rss));
  if (worker.rss == null) return;
  row.samples.push(worker.rss);
  row.samples.splice(0, row.samples.length - SAMPLES);
  const most = Math.max(...row.samples) * 1.6, first = SAMPLES - row.samples.length;
  // The newest is at the right. One sample alone is a line, too.
  const values = row.samples.length === 1 ? [worker.rss, worker.rss] : row.samples;
  const points = values.map((bytes, at) => `${((first + at) * 110) / (SAMPLES - 1)},${25 - (bytes / most) * 24}`);
  row.line.firstChild.setAttribute("points", points.join(" "));
  row.line.setAttribute("aria-label", `memory, ${megabytes(worker.rss)} now`);
}
