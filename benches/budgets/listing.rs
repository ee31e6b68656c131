//! From the start of the process to the answer to `tools/list`.

use std::time::Instant;

use serde_json::json;

use crate::Fallible;
use crate::ground::Ground;
use crate::peer::{Peer, Streams};
use crate::sample::median;
use crate::table::{Measured, Target, rounded};
use crate::tools::{FUNCTIONS_EACH, write_packs};

pub fn listing(ground: &Ground) -> Fallible<Vec<Measured>> {
    write_packs(&ground.folder("hundred"), 100)?;
    write_packs(&ground.folder("thousand"), 1000)?;
    let what = |files| format!("tools/list from process start, {files} tool files");
    let (hundred, spread) = measure(ground, "hundred", 100)?;
    let (thousand, wider) = measure(ground, "thousand", 1000)?;
    let (at_most, open) = (Target::AtMost, Target::Open);
    Ok(vec![
        Measured::against(&what("100"), hundred, " ms", at_most(50.0), open).from(spread),
        Measured::against(&what("1,000"), thousand, " ms", open, at_most(100.0)).from(wider),
    ])
}

fn measure(ground: &Ground, folder: &str, files: usize) -> Fallible<(f64, String)> {
    let mut times = Vec::new();
    for _ in 0..ground.counts.starts {
        let began = Instant::now();
        let mut peer = Peer::mcp(&mut ground.serve(folder), Streams::Pipes)?;
        let answer = peer.request("tools/list", &json!({}))?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        let tools = answer["tools"].as_array().ok_or("no tools")?;
        let typed = tools.iter().filter(|tool| tool["inputSchema"]["properties"]["wanted"].is_object()).count();
        if tools.len() != files * FUNCTIONS_EACH || typed != tools.len() {
            let wanted = files * FUNCTIONS_EACH;
            return Err(format!("{} tools, {typed} of them with their types, and not {wanted}", tools.len()).into());
        }
    }
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    let spread = format!("best {} ms of {}", rounded(best), times.len());
    Ok((median(times), spread))
}
