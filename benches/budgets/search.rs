//! `grep` and `glob` beside ripgrep, on one tree in turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::Fallible;
use crate::ground::Ground;
use crate::peer::{Peer, Streams};
use crate::sample::Rounds;
use crate::table::{Measured, Target, rounded};

const FOLDERS: usize = 200;
const FILES: usize = 100;
/// One file in so many holds what is searched for.
const RARE: usize = 20;
const LINES: usize = 120;

pub fn search(ground: &Ground) -> Fallible<Vec<Measured>> {
    let tree = ground.folder("tree");
    let hits = grow(&tree)?;
    let rg = ripgrep()?;
    let settings = format!("[builtin]\nenable = [\"search\"]\nroots = [{:?}]\n", tree.display().to_string());
    fs::create_dir_all(ground.folder("no-tools"))?;
    let mut peer = Peer::mcp(&mut ground.serve_with("no-tools", &settings)?, Streams::Pipes)?;
    let mut rows = Vec::new();
    let grep = json!({"pattern": r"needle_\d+", "limit": 10_000});
    let glob = json!({"pattern": "*.rs", "limit": 100_000});
    let by_hand: [&[&str]; 2] = [&["-n", r"needle_\d+"], &["--files", "-g", "*.rs"]];
    for ((tool, arguments, expected), words) in
        [("grep", grep, hits), ("glob", glob, FOLDERS * FILES)].iter().zip(by_hand)
    {
        let mut rounds = Rounds::<2>::new();
        for _ in 0..=ground.counts.rounds {
            let theirs = run(&rg, words, &tree, *expected)?;
            let ours = ask(&mut peer, tool, arguments, *expected)?;
            rounds.push([theirs, ours]);
        }
        let raw = format!("{} ÷ {} ms", rounded(rounds.of(1)), rounded(rounds.of(0)));
        let what = format!("{tool} of {} files ÷ rg {}", FOLDERS * FILES, words[0]);
        rows.push(Measured::against(&what, rounds.ratio(1, 0), "", Target::AtMost(1.3), Target::Open).from(raw));
    }
    Ok(rows)
}

/// A tree like one of code; says how many lines are to be found.
fn grow(tree: &Path) -> Fallible<usize> {
    let mut hits = 0;
    for folder in 0..FOLDERS {
        let place = tree.join(format!("part{:02}", folder % 20)).join(format!("module{folder}"));
        fs::create_dir_all(&place)?;
        for file in 0..FILES {
            let line = |line| format!("    let value_{line} = compute({folder}, {file}, \"some text of a line\");\n");
            let mut text: String = (0..LINES).map(line).collect();
            if (folder * FILES + file).is_multiple_of(RARE) {
                text.extend(["// needle_", &folder.to_string(), "\n"]);
                hits += 1;
            }
            fs::write(place.join(format!("file{file}.rs")), text)?;
        }
    }
    Ok(hits)
}

/// The program, installed once where there is none.
fn ripgrep() -> Fallible<PathBuf> {
    let there = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|folder| folder.join("rg")).find(|rg| rg.is_file()));
    if let Some(rg) = there {
        return Ok(rg);
    }
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ripgrep");
    let rg = kept.join("bin/rg");
    if !rg.is_file() {
        let done = Command::new(env!("CARGO")).args(["install", "ripgrep", "--quiet", "--root"]).arg(&kept).status()?;
        if !done.success() {
            return Err("ripgrep could not be installed".into());
        }
    }
    Ok(rg)
}

fn run(rg: &Path, words: &[&str], tree: &Path, expected: usize) -> Fallible<f64> {
    let began = Instant::now();
    let done = Command::new(rg).arg("--no-config").args(words).arg(".").current_dir(tree).output()?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    let lines = String::from_utf8(done.stdout)?.lines().count();
    if lines == expected { Ok(took) } else { Err(format!("rg found {lines} of {expected}").into()) }
}

fn ask(peer: &mut Peer, tool: &str, arguments: &Value, expected: usize) -> Fallible<f64> {
    let began = Instant::now();
    let (result, arrived) = peer.request_timed("tools/call", &json!({"name": tool, "arguments": arguments}))?;
    let found = &result["structuredContent"];
    let (counted, handed) = (&found["total"], handed_over(&found["files"]));
    if *counted == json!(expected) && handed == expected {
        Ok((arrived - began).as_secs_f64() * 1e3)
    } else {
        Err(format!("{tool} counted {counted} of {expected}, and handed over {handed}").into())
    }
}

/// How much of what was found really came: a count alone is soon said.
fn handed_over(files: &Value) -> usize {
    let of = |file: &Value| if file.is_string() { 1 } else { file["lines"].as_array().map_or(0, Vec::len) };
    files.as_array().into_iter().flatten().map(of).sum()
}
