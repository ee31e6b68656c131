//! How a worker ended, in words: the fault of the call it was running.

use std::path::Path;
use std::time::Duration;

use super::stack::Stack;
use super::task::{Excess, installed};
use crate::outcome::{Code, Details, Fault, Missing};
use crate::process::Exit;

/// The end of a worker's process.
#[derive(Debug, Clone)]
pub struct Death {
    /// How it ended.
    pub exit: Exit,
    /// The last lines of its standard error.
    pub stderr: Option<String>,
    /// Where it was, if its interpreter said so: as it crashed, or when a call before was interrupted.
    pub stack: Stack,
    /// Why hostler ended it, when it held too much memory.
    pub excess: Option<Excess>,
    /// The most memory it ever held, in bytes.
    pub peak_memory: Option<usize>,
    /// Whether hostler ended it because it had closed its output, and lived on.
    pub hung_up: bool,
}

/// Signals that somebody sends; any other death by signal is the tool's own doing.
const SENT: [&str; 4] = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"];

/// Signals at which the interpreter prints where it is before it dies.
const TELLING: [&str; 5] = ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"];

/// Whether a death by this signal is somebody else's doing.
pub fn is_sent(signal: &str) -> bool {
    SENT.contains(&signal)
}

/// The fault of a call whose worker died under it, and under so many others beside it.
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
    let next = match beside {
        0 => "the next call starts a new worker".to_owned(),
        // Which of them it died of, nobody knows.
        1 => "it made one other call as well, and the next call starts a new worker".to_owned(),
        more => format!("it made {more} other calls as well, and the next call starts a new worker"),
    };
    if let Some(excess) = death.excess {
        // Where its limit stands is for those to say who know the settings.
        return memory_fault(tool, excess).with(Details { missing: Some(Missing::Memory), ..details });
    }
    let fault = match (death.exit, signal) {
        _ if death.hung_up => Fault::new(
            Code::ToolCrashed,
            format!("the process of {tool} closed its connection to hostler during this call and was stopped; {next}"),
        ),
        (Exit::Signal(_), Some(signal))
            if signal == "SIGKILL" && is_for_want_of_memory(death.peak_memory, installed()) =>
        {
            let held = death.peak_memory.unwrap_or_default() / 1_000_000;
            Fault::new(
                Code::ProcessKilled,
                format!(
                    "the process of {tool} was killed with SIGKILL from outside during this call, most likely by the system \
                     for want of memory (it held {held} MB): set `max_memory`, and its calls are told so in time; {next}"
                ),
            )
        }
        (Exit::Signal(_), Some(signal)) if SENT.contains(&signal.as_str()) => Fault::new(
            Code::ProcessKilled,
            format!(
                "the process of {tool} was killed with {signal} during this call, from outside or by itself; {next}"
            ),
        ),
        (Exit::Signal(_), Some(signal)) => Fault::new(
            Code::ToolCrashed,
            format!("the process of {tool} crashed with {signal} during this call{place}; {next}"),
        ),
        (Exit::Code(code), _) => Fault::new(
            Code::ToolCrashed,
            format!("the process of {tool} ended itself with exit code {code} during this call{place}; {next}"),
        ),
        _ => Fault::new(Code::ToolCrashed, format!("the process of {tool} died during this call; {next}")),
    };
    fault.with(details)
}

/// Whether a process held so much of what there is that the system most likely took it for the one to end.
fn is_for_want_of_memory(peak: Option<usize>, installed: Option<usize>) -> bool {
    peak.zip(installed).is_some_and(|(peak, installed)| peak > installed / 2)
}

/// What became of a worker that died and made no call. For those who are refused because of it.
pub fn idle_death_fault(death: &Death) -> Fault {
    let details = Details {
        exit_code: death.exit.code(),
        signal: death.exit.signal_name(),
        stderr: death.stderr.clone(),
        peak_memory: death.peak_memory,
        ..Details::default()
    };
    Fault::new(Code::ToolCrashed, format!("it ended between two calls, with {}", death.exit)).with(details)
}

/// The fault of a call whose worker had to be stopped because of a call beside it.
pub fn held_up_fault(tool: &str) -> Fault {
    let message = format!(
        "the process of {tool} was stopped during this call: another call in it obeyed no interruption, and held up all \
         others. Make this one again; where that happens often, take `concurrency` out of its settings"
    );
    Fault::new(Code::ToolCrashed, message)
}

fn memory_fault(tool: &str, Excess { held, limit }: Excess) -> Fault {
    let message = format!(
        "{tool} held {} MB of memory and its limit is {} MB, so its worker was stopped; the next call starts a new one",
        held / 1_000_000,
        limit / 1_000_000
    );
    Fault::new(Code::ResourceExhausted, message)
}

/// The fault of a call that ran past its time.
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
    fn a_kill_is_told_by_what_the_process_held() {
        let message = |peak: usize| {
            let (exit, stack) = (Exit::Signal(9), Stack::default());
            let death = Death { exit, stderr: None, stack, excess: None, peak_memory: Some(peak), hung_up: false };
            died_fault("a.f", Path::new("a.py"), &death, 0).message
        };
        assert!(message(1_000_000).contains("was killed with SIGKILL during this call, from outside or by itself"));
        if super::installed().is_some() {
            let large = message(usize::MAX / 2);
            assert!(large.contains("for want of memory (it held") && large.contains("set `max_memory`"), "{large}");
        }
    }

    #[test]
    fn only_what_held_most_of_the_memory_was_likely_ended_for_it() {
        assert!(is_for_want_of_memory(Some(600), Some(1000)));
        assert!(!is_for_want_of_memory(Some(400), Some(1000)));
        assert!(!is_for_want_of_memory(None, Some(1000)) && !is_for_want_of_memory(Some(600), None));
    }
}
