//! The fault of a call whose worker died.

use std::path::Path;
use std::time::Duration;

use super::stack::Stack;
use super::task::installed;
use super::writer::{MOST_REQUESTS, MOST_UNREAD};
use crate::outcome::{Code, Details, Fault, Missing};
use crate::process::{Excess, Exit, last_word};

/// How a worker's process ended.
#[derive(Debug, Clone)]
pub struct Death {
    /// Its exit.
    pub exit: Exit,
    /// Its launcher's status, if that may be the program's own as well as a signal.
    pub status: Option<i32>,
    /// The last lines of its stderr.
    pub stderr: Option<String>,
    /// The stack its interpreter printed, at the crash or at an earlier interruption.
    pub stack: Stack,
    /// The limit that it exceeded, if hostler killed it for that.
    pub excess: Option<Excess>,
    /// Its peak memory, in bytes.
    pub peak_memory: Option<usize>,
    /// Why hostler killed it, if its end of the pipes was wrong.
    pub broke: Option<Broke>,
    /// Whether it is known to have read nothing of its first call.
    pub read_nothing: bool,
}

/// What a worker did to its pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broke {
    /// It closed its standard input or output without exiting.
    HungUp,
    /// It sent more requests than may wait, for an answer or for it to read the answer.
    TooManyRequests,
}

/// Signals usually sent by another process; death by any other signal is the tool's own.
const SENT: [&str; 4] = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"];

/// Signals at which the interpreter prints its stack before it dies.
const TELLING: [&str; 5] = ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"];

/// Whether this signal usually comes from another process.
pub fn is_sent(signal: &str) -> bool {
    SENT.contains(&signal)
}

/// The fault of a call whose worker died, with `beside` other calls running in it.
pub fn died_fault(tool: &str, file: &Path, death: &Death, beside: usize) -> Fault {
    let signal = death.exit.signal_name();
    let says_where = signal.as_deref().is_some_and(|signal| TELLING.contains(&signal)) || death.stack.tells_exit();
    let place = death.stack.place(file).filter(|_| says_where).map(|place| format!(" at {place}")).unwrap_or_default();
    let details = Details {
        traceback: death.stack.listing(file).filter(|_| says_where),
        exit_code: death.exit.code(),
        signal: signal.clone(),
        stderr: death.stderr.clone(),
        peak_memory: death.peak_memory,
        ..Details::default()
    };
    if death.is_failed_start() {
        let missing = said_missing(death.stderr.as_deref());
        return Fault::new(Code::StartupFailed, unread_text(tool, death)).with(Details { missing, ..details });
    }
    let next = match beside {
        0 => "the next call starts a new worker".to_owned(),
        // The cause is one of several calls.
        1 => "it also ran one other call; the next call starts a new worker".to_owned(),
        more => format!("it also ran {more} other calls; the next call starts a new worker"),
    };
    if let Some(excess) = death.excess {
        // The caller adds where the limit is set.
        let is_of_several = beside > 0 && matches!(excess, Excess::Processor { .. });
        let who = if is_of_several { format!("a call in the worker of {tool}") } else { tool.to_owned() };
        let text = format!("{who} {}, so its worker was stopped; the next call starts a new one", excess.said());
        return Fault::new(Code::ResourceExhausted, text).with(Details { missing: Some(excess.into()), ..details });
    }
    let fault = match (death.exit, signal) {
        _ if death.broke == Some(Broke::TooManyRequests) => Fault::new(
            Code::ResourceExhausted,
            format!(
                "{tool} was stopped: it sent too many requests to hostler without waiting for the answers or reading them (at \
                 most {MOST_REQUESTS} requests, or {} MB of requests and answers); {next}",
                MOST_UNREAD >> 20
            ),
        ),
        _ if death.broke == Some(Broke::HungUp) => Fault::new(
            Code::ToolCrashed,
            format!("{tool} closed its connection to hostler during the call and was stopped; {next}"),
        ),
        (Exit::Signal(_), Some(signal))
            if signal == "SIGKILL" && is_for_want_of_memory(death.peak_memory, installed()) =>
        {
            let held = death.peak_memory.unwrap_or_default() / 1_000_000;
            Fault::new(
                Code::ProcessKilled,
                format!(
                    "{tool} was killed with SIGKILL during the call, most likely by the system \
                     for lack of memory (it held {held} MB): set `max_memory` for a clear error before that; {next}"
                ),
            )
        }
        (Exit::Signal(_), Some(signal)) if death.status.is_some() => {
            let status = death.status.unwrap_or_default();
            let code = if is_sent(&signal) { Code::ProcessKilled } else { Code::ToolCrashed };
            Fault::new(code, format!("{tool} ended with status {status} or {signal} during the call; {next}"))
        }
        (Exit::Signal(_), Some(signal)) if SENT.contains(&signal.as_str()) => Fault::new(
            Code::ProcessKilled,
            format!("{tool} was killed with {signal} during the call, by another process or by itself; {next}"),
        ),
        (Exit::Signal(_), Some(signal)) => {
            Fault::new(Code::ToolCrashed, format!("{tool} crashed with {signal} during the call{place}; {next}"))
        }
        (Exit::Code(code), _) => {
            Fault::new(Code::ToolCrashed, format!("{tool} exited with code {code} during the call{place}; {next}"))
        }
        _ => Fault::new(Code::ToolCrashed, format!("{tool} died during the call; {next}")),
    };
    fault.with(details)
}

impl Death {
    /// Whether it ended by itself before it read its first call.
    fn is_failed_start(&self) -> bool {
        let was_sent = self.exit.signal_name().is_some_and(|signal| is_sent(&signal));
        self.read_nothing && !was_sent && self.excess.is_none() && self.broke.is_none()
    }
}

/// The module that Python did not find, as its last line says.
pub(super) fn said_missing(stderr: Option<&str>) -> Option<Missing> {
    let (_, name) = last_word(stderr?)?.split_once("ModuleNotFoundError: No module named '")?;
    Some(Missing::Module(name.split('\'').next()?.to_owned()))
}

fn unread_text(tool: &str, death: &Death) -> String {
    let last = death.stderr.as_deref().and_then(last_word).map(|line| format!("; last line of stderr: {line}"));
    let (exit, last) = (death.exit, last.unwrap_or_default());
    format!(
        "{tool} could not be started: it ended with {exit} before it read the call{last}. The next call starts a new worker"
    )
}

/// Whether a process held so much of the installed memory that the system most likely killed it.
fn is_for_want_of_memory(peak: Option<usize>, installed: Option<usize>) -> bool {
    peak.zip(installed).is_some_and(|(peak, installed)| peak > installed / 2)
}

/// The exit of an idle worker, for calls that are refused because of it.
pub fn idle_death_fault(death: &Death) -> Fault {
    let details = Details {
        exit_code: death.exit.code(),
        signal: death.exit.signal_name(),
        stderr: death.stderr.clone(),
        peak_memory: death.peak_memory,
        ..Details::default()
    };
    Fault::new(Code::ToolCrashed, format!("it exited between two calls, with {}", death.exit)).with(details)
}

/// The fault of a call whose worker was stopped because of another call.
pub fn held_up_fault(tool: &str) -> Fault {
    let message = format!(
        "the worker of {tool} was stopped during the call: another call in it ignored the interruption and blocked the \
         others. Retry this call; if it happens often, remove `concurrency` from its settings"
    );
    Fault::new(Code::ToolCrashed, message)
}

/// The fault of a call that exceeded its time limit.
pub fn timeout_fault(tool: &str, file: &Path, timeout: Duration, stack: &Stack, stopped: bool) -> Fault {
    let place = stack.place(file).map(|place| format!(" at {place}")).unwrap_or_default();
    let end = if stopped { "its worker was stopped" } else { "it was interrupted" };
    let message = format!("{tool} did not answer in {}; {end}{place}", humantime::format_duration(timeout));
    let signal = stopped.then(|| "SIGKILL".to_owned());
    let traceback = stack.listing(file);
    Fault::new(Code::ToolTimeout, message).with(Details { signal, traceback, ..Details::default() })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Death, Stack, died_fault, is_for_want_of_memory};
    use crate::process::Exit;

    #[test]
    fn a_kill_names_the_likely_cause_by_the_memory_held() {
        let message = |peak: usize| {
            let (exit, stack) = (Exit::Signal(9), Stack::default());
            let death = Death {
                exit,
                status: None,
                stderr: None,
                stack,
                excess: None,
                peak_memory: Some(peak),
                broke: None,
                read_nothing: false,
            };
            died_fault("a.f", Path::new("a.py"), &death, 0).message
        };
        assert!(
            message(1_000_000).contains("was killed with SIGKILL during the call, by another process or by itself")
        );
        if super::installed().is_some() {
            let large = message(usize::MAX / 2);
            assert!(large.contains("for lack of memory (it held") && large.contains("set `max_memory`"), "{large}");
        }
    }

    #[test]
    fn only_a_process_with_most_of_the_memory_was_killed_for_it() {
        assert!(is_for_want_of_memory(Some(600), Some(1000)));
        assert!(!is_for_want_of_memory(Some(400), Some(1000)));
        assert!(!is_for_want_of_memory(None, Some(1000)) && !is_for_want_of_memory(Some(600), None));
    }
}
