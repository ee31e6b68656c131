//! The budgets of hostler, measured: `cargo bench --features bench --bench budgets [-- --quick] [-- --row NAME]`.
//!
//! Machines and moments differ, so nothing here is compared with a number from another run. Every comparison is made
//! of rounds in which the two sides take turns; a round gives a ratio, and the median of the rounds is told. Every
//! answer that is timed is checked against its question. The bench fails when a row misses its budget of now, when an
//! answer is wrong or when a row could not be measured.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

mod clock;
mod cold;
mod executables;
mod faces;
mod ground;
mod journal;
mod listing;
mod load;
mod memory;
mod one_shot;
mod others;
mod peer;
mod policy;
mod pool;
mod proxy;
mod question;
mod redaction;
mod relay;
mod reload;
mod sample;
mod search;
mod shared;
mod spans;
mod table;
mod tools;
mod validation;
mod warm;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use ground::{Counts, Ground};
use table::Measured;

/// What can go wrong.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// A hung peer must not hang the bench: longer than this, one measurement never takes.
const PATIENCE: Duration = Duration::from_mins(7);

type Measure = fn(&Ground) -> Fallible<Vec<Measured>>;

const ROWS: &[(&str, Measure)] = &[
    ("warm", warm::sequential),
    ("flight", warm::in_flight),
    ("sockets", warm::sockets),
    ("node", others::node),
    ("fastmcp", others::fastmcp),
    ("one-shot", one_shot::one_shot),
    ("faces", faces::faces),
    ("watch", watch::watch),
    ("spans", spans::spans),
    ("redaction", redaction::redaction),
    ("journal", journal::calls),
    ("cold", cold::cold),
    ("validate", validation::validation),
    ("policy", policy::policy),
    ("executable", executables::overhead),
    ("walls", executables::walls),
    ("proxy", proxy::proxy),
    ("asked", executables::asked),
    ("search", search::search),
    ("reload", reload::reload),
    ("workers", pool::workers),
    ("crash", pool::crash),
    ("list", listing::listing),
    ("memory", memory::memory),
    ("crowd", load::crowd),
    ("spread", load::spread),
    ("hundred", pool::hundred),
    ("shared-calls", shared::calls),
    ("shared-starts", shared::starts),
    ("shared-five", shared::five),
];

struct Wanted {
    counts: Counts,
    row: Option<String>,
}

fn wanted() -> Result<Wanted, String> {
    let mut wanted = Wanted { counts: Counts::FULL, row: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => wanted.counts = Counts::QUICK,
            "--row" => wanted.row = Some(words.next().unwrap_or_default()),
            // cargo says this to every bench.
            "--bench" => {}
            other => return Err(format!("{other} is not known; there are --quick and --row NAME")),
        }
    }
    let names: Vec<&str> = ROWS.iter().map(|(name, _)| *name).collect();
    match &wanted.row {
        Some(row) if !names.contains(&row.as_str()) => Err(format!("no row {row:?}; there are {}", names.join(", "))),
        _ => Ok(wanted),
    }
}

fn main() -> ExitCode {
    if let Some(code) = relay::run_if_asked() {
        return code;
    }
    let wanted = match wanted() {
        Ok(wanted) => wanted,
        Err(reason) => {
            eprintln!("budgets: {reason}");
            return ExitCode::from(2);
        }
    };
    match measure(&wanted) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("budgets: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints each row as soon as it is measured. Says whether all of them were, and hold their budget.
fn measure(wanted: &Wanted) -> Fallible<bool> {
    let ground = Ground::prepare(wanted.counts)?;
    println!("{}", table::head());
    let mut sound = true;
    for (name, measure) in ROWS.iter().filter(|(name, _)| wanted.row.as_deref().is_none_or(|row| row == *name)) {
        let watchdog = clock::watchdog(name, PATIENCE);
        match measure(&ground) {
            Ok(rows) => {
                for row in &rows {
                    println!("{row}");
                    sound &= row.holds();
                }
            }
            Err(error) => {
                sound = false;
                println!("{}", Measured::failed(name, &error.to_string()));
            }
        }
        drop(watchdog);
    }
    Ok(sound)
}
