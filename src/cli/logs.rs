//! `hostler logs`: what the shared hostler logs and what its tools write, lately and from now on.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};

use super::calls::no_call;
use super::events::{Said, said, short};
use super::options::Logs;
use super::shared::{own, place, refusal};
use super::style::{self, Refusal};
use crate::call::{CallInfo, CallState};
use crate::config::Environment;

/// How often the log is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long another hostler may take to replace one that was followed.
const REPLACED: Duration = Duration::from_secs(2);
/// The most of the log that is read at once.
const MOST: u64 = 4 << 20;

pub(super) fn run(args: &Logs, environment: &Environment) -> Result<ExitCode, Refusal> {
    let mut log = Log { path: place(environment)?.log, at: 0, file: 0 };
    let connection = own(environment)?;
    let is_running = connection.is_some();
    if !is_running {
        style::note("no shared hostler is running; what follows is the log of the last one");
    }
    let mut lines: Vec<(u64, String)> = Vec::new();
    // Of one tool, only its calls: the log names files and processes.
    let logged = log.earlier() + &log.next();
    if args.tool.is_none() || !is_running {
        let mut time = 0;
        for line in logged.lines() {
            time = time_of(line).unwrap_or(time);
            lines.push((time, of_log(line, args.json)));
        }
    }
    if let Some(mut connection) = connection {
        let states = json!(["complete", "error", "cancelled"]);
        let filter = json!({"tool": args.tool, "states": states, "limit": args.lines});
        let calls: Vec<CallInfo> = connection.call("calls.list", &filter).map_err(refusal)?;
        lines.extend(calls.iter().rev().map(|call| (ended_ms(call), of_call(call, args.json))));
        lines.sort_by_key(|(time, _)| *time);
    }
    let skipped = lines.len().saturating_sub(args.lines);
    let is_empty = lines.is_empty();
    if !print(lines.into_iter().skip(skipped).map(|(_, line)| line)) || !is_running {
        return Ok(if is_running { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if args.follow {
        follow(args, environment, log)?;
    } else if is_empty {
        let logged = if args.tool.is_some() { "" } else { "nothing was logged, and " };
        style::note(&format!("{logged}{} has ended lately", no_call(args.tool.as_deref())));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what happens until the hostler ends and none replaces it, or until the output is closed.
fn follow(args: &Logs, environment: &Environment, mut log: Log) -> Result<(), Refusal> {
    let is_read = Arc::new(AtomicBool::new(true));
    if args.tool.is_none() {
        let (is_read, is_json) = (Arc::clone(&is_read), args.json);
        let tail = move || {
            while is_read.load(Ordering::Relaxed) {
                is_read.fetch_and(print(log.next().lines().map(|line| of_log(line, is_json))), Ordering::Relaxed);
                thread::sleep(LOOK);
            }
        };
        let thread = thread::Builder::new().name("log".to_owned()).spawn(tail);
        thread.map_err(|error| Refusal::system("the log cannot be followed", error))?;
    }
    let filter = json!({"tool": args.tool});
    while let Some(mut connection) = again(environment)? {
        if connection.subscribe(&filter).is_err() {
            thread::sleep(LOOK);
            continue;
        }
        // Its end is that of the hostler, however it came.
        let _ = connection.events(Some(rustix::stdio::stdout()), |event| {
            is_read.fetch_and(print(of_event(&event, args.json)), Ordering::Relaxed);
            is_read.load(Ordering::Relaxed)
        });
        if !is_read.load(Ordering::Relaxed) || !style::is_read() {
            return Ok(());
        }
    }
    style::note("the shared hostler has ended");
    Ok(())
}

/// Prints lines. Whether they are still read.
fn print(lines: impl IntoIterator<Item = String>) -> bool {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    style::part(&text)
}

/// A connection to the hostler that runs, or to the one that takes its place.
fn again(environment: &Environment) -> Result<Option<crate::control::Connection>, Refusal> {
    let late = Instant::now() + REPLACED;
    loop {
        match own(environment)? {
            Some(connection) => return Ok(Some(connection)),
            None if Instant::now() > late => return Ok(None),
            None => thread::sleep(LOOK),
        }
    }
}

/// The log of the shared hostler, which begins anew when it is large.
struct Log {
    path: PathBuf,
    at: u64,
    /// The file that was read last.
    file: u64,
}

impl Log {
    /// What was put aside when the log was large.
    fn earlier(&self) -> String {
        let mut aside = Self { path: self.path.with_extension("log.old"), at: 0, file: 0 };
        aside.next()
    }

    /// Its whole lines since the last time.
    fn next(&mut self) -> String {
        let mut read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.path)?;
            let meta = file.metadata()?;
            if self.file != meta.ino() || meta.len() < self.at {
                (self.file, self.at) = (meta.ino(), 0);
            }
            file.seek(SeekFrom::Start(self.at))?;
            let mut bytes = Vec::new();
            file.take(MOST).read_to_end(&mut bytes)?;
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
            self.at += bytes.len() as u64;
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

fn of_log(line: &str, is_json: bool) -> String {
    if is_json { json!({"event": "log", "text": line}).to_string() } else { style::plain(line) }
}

fn of_call(call: &CallInfo, is_json: bool) -> String {
    if is_json {
        let mut shown = json!(call);
        shown["event"] = json!("call");
        return shown.to_string();
    }
    let end = match (&call.error, call.state) {
        (Some(error), CallState::Cancelled) => format!("cancelled: {}", error.message),
        (Some(error), _) => format!("failed after {:.1} ms: {}: {}", call.duration_ms, error.code, error.message),
        (None, _) => format!("completed in {:.1} ms", call.duration_ms),
    };
    of(ended_ms(call), &format!("{} {}", call.tool, short(&call.call_id)), &end.replace('\n', " "))
}

/// The lines that show an event.
fn of_event(event: &Value, is_json: bool) -> Vec<String> {
    if is_json {
        return vec![event.to_string()];
    }
    // What hostler says of the subscription itself has no time.
    let line = |said: Said| if said.time_ms == 0 { said.what } else { of(said.time_ms, &said.subject, &said.what) };
    said(event).map(line).collect()
}

/// A line at a time.
fn of(time_ms: u64, subject: &str, what: &str) -> String {
    let time = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(time_ms));
    style::plain(&format!("{time} {subject} {what}"))
}

fn ended_ms(call: &CallInfo) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds of a duration")]
    let took = call.duration_ms as u64;
    call.started_ms + took
}

/// When a line of the log was written, if it says so.
fn time_of(line: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339_weak(line.split_whitespace().next()?).ok()?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}
