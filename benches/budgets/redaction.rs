//! How fast secrets are looked for in what tools print.

use std::hint::black_box;
use std::time::Instant;

use hostler::bench::Redacting;

use crate::Fallible;
use crate::ground::Ground;
use crate::sample::median;
use crate::table::{Measured, Target};

/// How many secrets are in use.
const SECRETS: usize = 50;
/// A line of a log as services write them.
const LINE: &str = "2026-11-26T01:12:12.203Z INFO request{id=7f3a91c2} GET /api/v2/items?page=3&sort=name 200 18.4 ms, 4096 bytes sk-learn\n";

/// Text in pieces as they come from a pipe.
pub fn redaction(ground: &Ground) -> Fallible<Vec<Measured>> {
    let redacting = Redacting::new(SECRETS).ok_or("there is nothing to find")?;
    let text = LINE.repeat((4 << 20) / LINE.len());
    let mut speeds = Vec::new();
    for _ in 0..ground.counts.rounds.max(3) {
        let began = Instant::now();
        if !black_box(&redacting).is_clean(black_box(&text), 16 << 10) {
            return Err("a text without secrets was changed".into());
        }
        #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
        let bytes = text.len() as f64;
        speeds.push(bytes / began.elapsed().as_secs_f64() / 1e6);
    }
    let what = format!("{SECRETS} secrets looked for in all their forms");
    Ok(vec![Measured::against(&what, median(speeds), " MB/s", Target::AtLeast(300.0), Target::Open)])
}
