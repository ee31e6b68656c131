//! Faults of workers: error answers, and failed starts.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;

use super::death::said_missing;
use super::handshake::Handshake;
use super::stack::Stack;
use crate::outcome::{Code, Details, Fault, Missing};
use crate::process::{keeper, last_word, limit_in};
use crate::protocol::{MAX_FRAME, WireError, wire_code};

/// Whether the answer says that the call was cancelled.
pub fn is_cancelled(answer: &Result<Box<RawValue>, WireError>) -> bool {
    matches!(answer, Err(error) if error.code == wire_code::CANCELLED)
}

/// The fault for a worker's error, for the caller of `tool` in `file`.
pub fn error_fault(tool: &str, file: &Path, error: &WireError) -> Fault {
    let details = Details {
        exception: error.detail("type").map(str::to_owned),
        traceback: error.detail("traceback").map(str::to_owned),
        missing: missing(error),
        capability: error.detail("capability").map(str::to_owned),
        ..Details::default()
    };
    let text = &error.message;
    // The traceback stays in the details, which a model may not see.
    let place = || {
        let stack = error.detail("traceback").map(Stack::of_traceback).filter(|stack| stack.enters(file));
        stack.and_then(|stack| stack.place(file)).map(|place| format!(" ({place})")).unwrap_or_default()
    };
    let (code, message) = match error.code {
        wire_code::TOOL_RAISED if of_client(error).is_some() => {
            (of_client(error).unwrap_or(Code::ToolError), format!("{tool}: {text}{}", place()))
        }
        wire_code::INVALID_OUTPUT => (Code::InvalidOutput, format!("the result of {tool} cannot be sent: {text}")),
        wire_code::MISSING_SECRET => (Code::MissingCredentials, missing_secret(tool, error)),
        wire_code::CANCELLED => (Code::Cancelled, format!("the call of {tool} was cancelled")),
        wire_code::EXHAUSTED => (Code::ResourceExhausted, exhausted(tool, error) + &place()),
        wire_code::BAD_ARGUMENT => (Code::InvalidParams, format!("{tool}: {text}")),
        wire_code::NO_FUNCTION if is_defined(error) => (Code::ToolNotFound, format!("{tool} is missing: {text}")),
        wire_code::NO_FUNCTION => (Code::ToolNotFound, format!("{tool} is no longer in its file: {text}")),
        _ => (Code::ToolError, format!("{text}{}", place())),
    };
    Fault::new(code, message).with(details)
}

/// Whether the function is in its file, and does not exist after that has run.
fn is_defined(error: &WireError) -> bool {
    error.data.as_ref().is_some_and(|data| data.get("missing").is_some())
}

/// Why a question to the client has no answer, where the tool did not catch that.
fn of_client(error: &WireError) -> Option<Code> {
    let codes = [Code::NotSupported, Code::ToolTimeout, Code::Busy];
    codes.into_iter().find(|code| error.detail("client") == Some(code.word()))
}

/// The resource that an answer reports as missing.
pub(super) fn missing(error: &WireError) -> Option<Missing> {
    let named = |key| error.detail(key).map(str::to_owned);
    let known = [
        named("module").map(Missing::Module),
        named("secret").map(Missing::Secret),
        named("undeclared").map(Missing::Declaration),
        named("variable").map(Missing::Variable),
        named("usage").map(|_| Missing::Arguments),
    ];
    known.into_iter().flatten().next()
}

fn exhausted(tool: &str, error: &WireError) -> String {
    let what = match error.detail("resource") {
        Some("disk") => "has no disk space left; free some, or write elsewhere",
        Some("descriptors") => {
            "has too many open files; close them (`with open(…)`), or raise the limit of hostler's shell (`ulimit -n`)"
        }
        _ => "ran out of memory; process less at once",
    };
    format!("{tool} {what}. {}", error.message)
}

fn missing_secret(tool: &str, error: &WireError) -> String {
    let name = error.detail("secret").unwrap_or("it needs");
    // The caller adds where to set it.
    format!("{tool} needs the secret {name}, which is not set")
}

/// The fault for a result above the size limit.
pub fn oversized_fault(tool: &str, bytes: usize) -> Fault {
    let (size, limit) = (bytes / 1_000_000, MAX_FRAME / (1024 * 1024));
    let message = format!(
        "{tool} returned {size} MB, the limit is {limit} MB; write the result to a file and return its path, or return \
         less"
    );
    Fault::new(Code::InvalidOutput, message)
}

/// Characters of a line that a message shows.
const LONGEST_LINE: usize = 500;
/// How long an interpreter that did not become ready may take to print its stack.
const STACK_LOOK: Duration = Duration::from_millis(20);
const STACK_LOOKS: u32 = 15;

impl Handshake {
    pub(super) fn import_fault(&self, error: &WireError) -> Fault {
        let line = error.data.as_ref().and_then(|data| data.get("line")?.as_u64());
        let file = self.spec.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Python's own message has the place of a syntax error.
        let is_named = line.is_some_and(|line| error.message.contains(&format!("({file}, line {line})")));
        let place = line.filter(|_| !is_named).map(|line| format!(" ({file} line {line})")).unwrap_or_default();
        let details = Details {
            traceback: error.detail("traceback").map(str::to_owned),
            exception: error.detail("type").map(str::to_owned),
            missing: missing(error),
            capability: error.detail("capability").map(str::to_owned),
            stderr: self.tail.lock().text(),
            ..Details::default()
        };
        // A file that ends the process has said why.
        let has_said = details.exception.as_deref() == Some("SystemExit");
        let said = details.stderr.as_deref().filter(|_| has_said).and_then(last_word);
        let said =
            said.map(|line| format!("; last line of output: {}", line.chars().take(LONGEST_LINE).collect::<String>()));
        self.fault(&format!("{}{place}{}", error.message, said.unwrap_or_default()), details)
    }

    pub(super) async fn death_fault(mut self, stderr: JoinHandle<()>) -> Fault {
        let exit = tokio::time::timeout(Duration::from_secs(1), self.child.exited()).await.ok();
        keeper::unless_over().await;
        self.child.clean_up();
        let _ = tokio::time::timeout(Duration::from_millis(200), stderr).await;
        if let (Some(environments), Some(exit)) = (&self.support.launched, exit) {
            let said = self.tail.lock().text().unwrap_or_default();
            if limit_in(&said).is_none()
                && let Some(fault) = environments.unfit_launcher(exit, &said).await
            {
                return fault;
            }
        }
        let how = exit.map_or_else(
            || "it closed its standard output during startup".to_owned(),
            |exit| format!("it exited with {} during startup", exit.behind_launcher()),
        );
        let tail = self.tail.lock().text();
        if let Some(limit) = tail.as_deref().and_then(limit_in) {
            let text = format!("{} could not be started: {limit}", self.spec.pack);
            return Fault::new(Code::ResourceExhausted, text).with(Details { stderr: tail, ..Details::default() });
        }
        let last = tail.as_deref().and_then(last_word).map(|line| format!("; last line of stderr: {line}"));
        let stack = self.stack.lock().clone();
        let place = stack.place(&self.spec.file).map(|place| format!(", at {place}")).unwrap_or_default();
        let text = format!("{how}{place}{}", last.unwrap_or_default());
        let traceback = stack.listing(&self.spec.file);
        let missing = said_missing(tail.as_deref());
        self.fault(&text, Details { stderr: tail, traceback, missing, ..Details::default() })
    }

    pub(super) async fn slow_fault(&self, limit: Duration) -> Fault {
        let place = self.stuck_place().await.map(|place| format!("; it was at {place}")).unwrap_or_default();
        let limit = humantime::format_duration(limit);
        let serving = self.stack.lock().line_that_serves(&self.spec.file);
        let setting = self.spec.startup_timeout_place.as_str();
        // A program without our interpreter; most languages buffer output to a pipe.
        let text = if let Some(line) = serving {
            let file = self.spec.file.file_name().unwrap_or_default().to_string_lossy();
            format!(
                "{file} line {line} runs a server or an event loop when the file is imported, and had not returned after {limit}. \
                 Put it under `if __name__ == \"__main__\":`; if it is to return, raise its `startup_timeout` {setting}"
            )
        } else if self.support.lease.is_some() {
            format!(
                "it was not ready within {limit}{place}. Move calls that do not return under `if __name__ == \"__main__\":`, do less \
                 during import, or raise its `startup_timeout` {setting}"
            )
        } else {
            format!(
                "it did not answer `hello` within {limit}. Flush its output after each line, do less before it reads the first \
                 one, or raise its `startup_timeout` {setting}"
            )
        };
        let details = Details {
            stderr: self.tail.lock().text(),
            traceback: self.stack.lock().listing(&self.spec.file),
            ..Details::default()
        };
        self.fault(&text, details)
    }

    /// Asks the interpreter for its stack. Its pid is still unknown, so the whole group is signalled; the launcher dies
    /// of that, but it is about to be stopped anyway.
    async fn stuck_place(&self) -> Option<String> {
        // Other programs do not handle this signal and would die.
        self.support.lease.as_ref().filter(|_| !self.spec.is_bare)?;
        self.child.signal_group(Signal::USR2);
        for _ in 0..STACK_LOOKS {
            tokio::time::sleep(STACK_LOOK).await;
            let place = self.stack.lock().place(&self.spec.file);
            if place.is_some() {
                // The frames arrive one by one, innermost first.
                tokio::time::sleep(STACK_LOOK).await;
                return self.stack.lock().place(&self.spec.file);
            }
        }
        None
    }

    /// The worker is configured for more concurrency than it supports.
    pub(super) fn one_at_a_time(&self) -> Fault {
        let text = "its worker runs only one call at a time; set `concurrency = 1`";
        self.fault(text, Details::default())
    }

    pub(super) fn fault(&self, why: &str, details: Details) -> Fault {
        let message = format!("{} could not be started: {why}", self.spec.pack);
        Fault::new(Code::StartupFailed, message).with(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_has_the_line_in_the_tools_own_file_only() {
        let messages = |code| {
            let line =
                "  File \"/t/slow.py\", line 7, in fetch\n  File \"/usr/lib/python3.11/json.py\", line 9, in loads\n";
            let data = serde_json::json!({"traceback": line, "resource": "disk"});
            let error = WireError { code, message: "ValueError: no".to_owned(), data: Some(data) };
            ["/t/slow.py", "/t/other.py"].map(|file| error_fault("slow.fetch", Path::new(file), &error).message)
        };
        let place = " (slow.py:7 in fetch (inside json.py:9))";
        let [own, others] = messages(-1);
        assert_eq!((own, others.as_str()), (format!("ValueError: no{place}"), "ValueError: no"));
        let [own, others] = messages(wire_code::EXHAUSTED);
        assert!(own.ends_with(place) && !others.contains("slow.py"), "{own} {others}");
    }
}
