//! From the start of the process to the answer to `tools/list`, with and without what an earlier run kept.

use std::fs;
use std::thread::sleep;
use std::time::Instant;

use serde_json::json;

use crate::Fallible;
use crate::ground::Ground;
use crate::peer::{Peer, Streams};
use crate::sample::median;
use crate::table::{Measured, Target, rounded};
use crate::tools::{FUNCTIONS_EACH, SETTLED, write_packs};

/// What is done before each start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// Nothing is kept: every file is read.
    Cold,
    /// Everything is kept.
    Cache,
}

pub fn listing(ground: &Ground) -> Fallible<Vec<Measured>> {
    write_packs(&ground.folder("hundred"), 100)?;
    write_packs(&ground.folder("thousand"), 1000)?;
    sleep(SETTLED);
    let rows = [
        ("hundred", 100, From::Cold, Target::AtMost(50.0), Target::AtMost(15.0)),
        ("hundred", 100, From::Cache, Target::AtMost(50.0), Target::AtMost(7.0)),
        ("thousand", 1000, From::Cold, Target::AtMost(1000.0), Target::Open),
        ("thousand", 1000, From::Cache, Target::AtMost(100.0), Target::AtMost(50.0)),
    ];
    let row = |(folder, files, from, now, aim)| {
        let (median, spread) = measure(ground, folder, files, from)?;
        let how = if from == From::Cold { "read from cold" } else { "unchanged" };
        let what = format!("tools/list from process start, {files} tool files, {how}");
        Ok(Measured::against(&what, median, " ms", now, aim).from(spread))
    };
    rows.into_iter().map(row).collect()
}

fn measure(ground: &Ground, folder: &str, files: usize, from: From) -> Fallible<(f64, String)> {
    let mut times = Vec::new();
    if from == From::Cache {
        start(ground, folder, files)?;
    }
    for _ in 0..ground.counts.starts {
        if from == From::Cold && ground.catalogues().exists() {
            fs::remove_dir_all(ground.catalogues())?;
        }
        let before = written(ground);
        times.push(start(ground, folder, files)?);
        let wrote = written(ground) != before;
        if wrote != (from == From::Cold) {
            return Err(format!("the catalogue was {}written", if wrote { "" } else { "not " }).into());
        }
    }
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    let spread = format!("best {} ms of {}", rounded(best), times.len());
    Ok((median(times), spread))
}

/// One start; how long the answer took, until its last byte was here.
fn start(ground: &Ground, folder: &str, files: usize) -> Fallible<f64> {
    let began = Instant::now();
    let mut peer = Peer::mcp(&mut ground.serve(folder), Streams::Pipes)?;
    let (answer, arrived) = peer.request_timed("tools/list", &json!({}))?;
    let took = arrived.duration_since(began).as_secs_f64() * 1e3;
    let tools = answer["tools"].as_array().ok_or("no tools")?;
    let typed = tools.iter().filter(|tool| tool["inputSchema"]["properties"]["wanted"].is_object()).count();
    let wanted = files * FUNCTIONS_EACH;
    if tools.len() != wanted || typed != tools.len() {
        return Err(format!("{} tools, {typed} of them with their types, and not {wanted}", tools.len()).into());
    }
    Ok(took)
}

/// When catalogues were last written, if any is kept.
fn written(ground: &Ground) -> Option<std::time::SystemTime> {
    let files = fs::read_dir(ground.catalogues()).ok()?;
    files
        .flatten()
        .filter(|file| file.file_name() != "lock")
        .filter_map(|file| file.metadata().ok()?.modified().ok())
        .max()
}
