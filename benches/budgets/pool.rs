//! What several workers are worth, what a death costs, and what a crowd of idle workers does to one that works.

use std::time::{Duration, Instant};

use crate::Fallible;
use crate::ground::{Ground, worker_pid};
use crate::memory::supervisor;
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::{Rounds, median, p50};
use crate::table::{Measured, Target, rounded};
use crate::tools;

/// Calls that need a core for themselves, made by one, two and four workers.
pub fn workers(ground: &Ground) -> Fallible<Vec<Measured>> {
    const TOOL: Dialect<'static> = Dialect::Mcp("busy_add");
    const DEPTH: usize = 16;
    let mut peers = Vec::new();
    for count in [1, 2, 4] {
        let folder = format!("workers-{count}");
        tools::write_busy(&ground.folder(&folder), "busy")?;
        let config = format!("[tool]\nmax_workers = {count}\n");
        let mut peer = Peer::mcp(&mut ground.serve_with(&folder, &config)?, Streams::Pipes)?;
        // All of its workers are there after this.
        peer.ask_ahead(TOOL, 8 * DEPTH, DEPTH)?;
        peers.push(peer);
    }
    let calls = ground.counts.calls / 10;
    let mut rounds = Rounds::<3>::new();
    for _ in 0..ground.counts.rounds.min(7) {
        let mut rates = [0.0; 3];
        for (rate, peer) in rates.iter_mut().zip(&mut peers) {
            *rate = peer.ask_ahead(TOOL, calls, DEPTH)?;
        }
        rounds.push(rates);
    }
    let cores = std::thread::available_parallelism()?.get();
    let [one, two, four] = [0, 1, 2].map(|side| rounded(rounds.of(side)));
    let from = |many: String| format!("{many}/s ÷ {one}/s of 3 ms each, {cores} cores");
    let row = |what: &str, side, target| Measured::against(what, rounds.ratio(side, 0), "", target, Target::Open);
    Ok(vec![
        row("rate of 2 workers ÷ 1, CPU-bound tool", 1, Target::AtLeast(1.6)).from(from(two)),
        row("rate of 4 workers ÷ 1, CPU-bound tool", 2, Target::AtLeast(1.6)).from(from(four)),
    ])
}

/// From the call that ends its worker to the next answer, beside a start without a death.
pub fn crash(ground: &Ground) -> Fallible<Vec<Measured>> {
    tools::write_mortal(&ground.folder("mortal"), "mortal")?;
    let mut times = Vec::new();
    let mut peer = Peer::mcp(&mut ground.serve("mortal"), Streams::Pipes)?;
    for _ in 0..ground.counts.starts {
        let before = worker_pid(&mut peer, "mortal_add")?;
        let began = Instant::now();
        let died = peer.request("tools/call", &serde_json::json!({"name": "mortal_die", "arguments": {}}))?;
        if died["isError"] != true {
            return Err(format!("it did not die: {died}").into());
        }
        peer.ask_once(Dialect::Mcp("mortal_add"))?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        if worker_pid(&mut peer, "mortal_add")? == before {
            return Err("the same worker answered after its death".into());
        }
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let spread = format!("worst {} ms of {}", rounded(worst), times.len());
    let row =
        Measured::against("death to next answer", median(times), " ms", Target::AtMost(200.0), Target::AtMost(60.0));
    Ok(vec![row.from(spread)])
}

/// A thousand tool files, with one worker alive and with a hundred.
pub fn hundred(ground: &Ground) -> Fallible<Vec<Measured>> {
    const ALIVE: u32 = 100;
    let folder = ground.folder("thousand");
    tools::write_packs(&folder, 900)?;
    for number in 0..ALIVE {
        tools::write_adder(&folder, &format!("idle_{number}"))?;
    }
    std::thread::sleep(tools::SETTLED);
    let serve = || ground.serve_with("thousand", "[tool]\nlauncher = \"direct\"\n[limits]\nmax_workers = 128\n");
    // Read once, so that both sides find the same.
    drop(Peer::mcp(&mut serve()?, Streams::Pipes)?);
    let (mut one, mut many) = (Peer::mcp(&mut serve()?, Streams::Pipes)?, Peer::mcp(&mut serve()?, Streams::Pipes)?);
    let tool = Dialect::Mcp("idle_0_add");
    for peer in [&mut one, &mut many] {
        peer.request("tools/list", &serde_json::json!({}))?;
        peer.ask_once(tool)?;
        peer.ask_in_turn(tool, ground.counts.calls)?;
    }
    std::thread::sleep(Duration::from_millis(500));
    let before = supervisor(&many)?;
    let mut workers = std::collections::HashSet::new();
    for number in 0..ALIVE {
        workers.insert(worker_pid(&mut many, &format!("idle_{number}_add"))?);
    }
    if workers.len() != usize::try_from(ALIVE)? {
        return Err(format!("{} workers are alive", workers.len()).into());
    }
    std::thread::sleep(Duration::from_millis(500));
    let after = supervisor(&many)?;
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds {
        let crowded = p50(&many.ask_in_turn(tool, ground.counts.calls)?);
        rounds.push([crowded, p50(&one.ask_in_turn(tool, ground.counts.calls)?)]);
    }
    let [crowded, alone] = [0, 1].map(|side| rounded(rounds.of(side)));
    let (p50_now, rss_now) = (Target::AtMost(1.1), Target::AtMost(1.1));
    Ok(vec![
        Measured::against(
            "warm call p50, 100 workers alive ÷ 1 (1,000 files)",
            rounds.ratio(0, 1),
            "",
            p50_now,
            Target::Open,
        )
        .from(format!("{crowded} µs ÷ {alone} µs")),
        Measured::against(
            "supervisor's own memory, 100 workers alive ÷ 1 (1,000 files)",
            after / before,
            "",
            rss_now,
            Target::Open,
        )
        .from(format!("{} MB ÷ {} MB", rounded(after), rounded(before))),
        Measured::plain(
            "supervisor's own memory for each idle worker",
            (after - before) * 1024.0 / f64::from(ALIVE - 1),
            " KB",
        ),
    ])
}
