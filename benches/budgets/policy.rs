//! What rules cost: one decision, and a warm call of a tool that has some.

use std::hint::black_box;
use std::time::Instant;

use hostler::bench::Deciding;

use crate::Fallible;
use crate::clock::on_one_processor;
use crate::ground::{ADD, Ground};
use crate::peer::{Peer, Streams};
use crate::sample::{Rounds, median, p50};
use crate::table::{Measured, Target, rounded};
use crate::tools;

/// How many decisions stand between two looks at the clock.
const BATCH: u32 = 10_000;
const FREE: &str = "";
/// Rules of every kind that looks at no file.
const RULED: &str = r#"
[policy]
forbidden_in_modes = ["lockdown", "recovery"]
requires_approval_in_modes = ["alert"]
[tool.sums]
allowed_modes = ["normal", "alert", "degraded"]
requires_approval = false
command_arguments = []
allowed_commands = ["git status", "git log", "git diff", "ls", "cat", "head", "tail", "wc"]
forbidden_commands = ["rm", "git push", "curl", "wget", "ssh", "sudo"]
host_arguments = []
allowed_hosts = ["example.com", "*.example.org"]
"#;

/// Rates that no call reaches: two counts in files.
const RATED: &str = "
[policy]
rate_limit_per_hour = 1_000_000
[tool.sums]
rate_limit_per_minute = 1_000_000
";

/// Decisions, and calls.
pub fn policy(ground: &Ground) -> Fallible<Vec<Measured>> {
    let mut rows = vec![decided(ground, 20, Target::AtMost(0.5))?, decided(ground, 1000, Target::AtMost(2.0))?];
    tools::write_adder(&ground.folder("ruled"), "sums")?;
    rows.push(on_one_processor(|| called(ground, "20 rules", RULED, Target::AtMost(1.02)))?);
    rows.push(on_one_processor(|| called(ground, "two rates", RATED, Target::AtMost(1.2)))?);
    Ok(rows)
}

fn decided(ground: &Ground, patterns: usize, limit: Target) -> Fallible<Measured> {
    let deciding = Deciding::new(patterns);
    let mut times = Vec::new();
    for _ in 0..ground.counts.rounds * 10 {
        let began = Instant::now();
        let allowed = (0..BATCH).filter(|_| black_box(&deciding).decide()).count();
        times.push(began.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH));
        if allowed != BATCH as usize {
            return Err("a call that is allowed was denied".into());
        }
    }
    Ok(Measured::against(
        &format!("a decision by {patterns} patterns of paths"),
        median(times),
        " µs",
        limit,
        Target::Open,
    ))
}

fn called(ground: &Ground, with: &str, settings: &str, limit: Target) -> Fallible<Measured> {
    let mut peers = [peer(ground, FREE)?, peer(ground, settings)?];
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds {
        let mut round = [0.0; 2];
        for (side, peer) in round.iter_mut().zip(&mut peers) {
            *side = p50(&peer.ask_in_turn(ADD, ground.counts.calls)?);
        }
        rounds.push(round);
    }
    let from = format!("{} µs ÷ {} µs", rounded(rounds.of(1)), rounded(rounds.of(0)));
    let what = format!("warm call with {with} ÷ without");
    Ok(Measured::against(&what, rounds.ratio(1, 0), "", limit, Target::Open).from(from))
}

fn peer(ground: &Ground, settings: &str) -> Fallible<Peer> {
    let mut peer = Peer::mcp(&mut ground.serve_with("ruled", settings)?, Streams::Pipes)?;
    peer.ask_once(ADD)?;
    Ok(peer)
}
