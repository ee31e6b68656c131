//! Why a worker did not come to life, in sentences.

use std::time::Duration;

use rustix::process::Signal;
use tokio::task::JoinHandle;

use super::answer::lack;
use super::fresh::Fresh;
use crate::outcome::{Code, Details, Fault};
use crate::process::{keeper, last_word};
use crate::protocol::WireError;

/// How long an interpreter that did not get ready may take to say where it is.
const STACK_LOOK: Duration = Duration::from_millis(20);
const STACK_LOOKS: u32 = 15;

impl Fresh {
    pub(super) fn import_fault(&self, error: &WireError) -> Fault {
        let line = error.data.as_ref().and_then(|data| data.get("line")?.as_u64());
        let file = self.spec.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Python's own words name the place of what is no Python.
        let is_told = line.is_some_and(|line| error.message.contains(&format!("({file}, line {line})")));
        let place = line.filter(|_| !is_told).map(|line| format!(" ({file} line {line})")).unwrap_or_default();
        let details = Details {
            traceback: error.detail("traceback").map(str::to_owned),
            exception: error.detail("type").map(str::to_owned),
            lack: lack(error),
            stderr: self.tail.lock().text(),
            ..Details::default()
        };
        self.fault(&format!("{}{place}", error.message), details)
    }

    pub(super) async fn death_fault(mut self, stderr: JoinHandle<()>) -> Fault {
        let exit = tokio::time::timeout(Duration::from_secs(1), self.child.exited()).await.ok();
        keeper::unless_over().await;
        self.child.clean_up();
        let _ = tokio::time::timeout(Duration::from_millis(200), stderr).await;
        if let (Some(environments), Some(exit)) = (&self.support.launched, exit) {
            let said = self.tail.lock().text().unwrap_or_default();
            if let Some(fault) = environments.unfit_launcher(exit, &said).await {
                return fault;
            }
        }
        let how = exit.map_or_else(
            || "it closed its output before it was ready".to_owned(),
            |exit| format!("its process ended with {} before it was ready", exit.behind_launcher()),
        );
        let tail = self.tail.lock().text();
        let last = tail.as_deref().and_then(last_word).map(|line| format!("; it last said: {line}"));
        let stack = self.stack.lock().clone();
        let place = stack.place(&self.spec.file).map(|place| format!(", at {place}")).unwrap_or_default();
        let text = format!("{how}{place}{}", last.unwrap_or_default());
        let traceback = stack.listing(&self.spec.file);
        self.fault(&text, Details { stderr: tail, traceback, ..Details::default() })
    }

    pub(super) async fn slow_fault(&self, limit: Duration) -> Fault {
        let place = self.stuck_place().await.map(|place| format!("; it was at {place}")).unwrap_or_default();
        let limit = humantime::format_duration(limit);
        let setting = self.spec.startup_timeout_place.as_str();
        // Without an interpreter of ours it is a program; most languages keep what goes to a pipe until there is much of it.
        let text = if self.support.lease.is_some() {
            format!(
                "it was not ready within {limit}{place}. Raise its `startup_timeout` {setting}, or do less while it is imported"
            )
        } else {
            format!(
                "it did not answer `hello` within {limit}. Let it flush its output after each line, do less before it reads the first \
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

    /// Asks the interpreter where it is. Its own pid is not known yet, so the whole group is asked; a launcher dies of
    /// that, as it is about to anyway.
    async fn stuck_place(&self) -> Option<String> {
        // Other programs than the interpreter know nothing of this, and would only die of it.
        self.support.lease.as_ref().filter(|_| !self.spec.is_bare)?;
        self.child.signal_group(Signal::USR2);
        for _ in 0..STACK_LOOKS {
            tokio::time::sleep(STACK_LOOK).await;
            let place = self.stack.lock().place(&self.spec.file);
            if place.is_some() {
                // The frames come one by one, the innermost first.
                tokio::time::sleep(STACK_LOOK).await;
                return self.stack.lock().place(&self.spec.file);
            }
        }
        None
    }

    /// More was asked of it than it can.
    pub(super) fn one_at_a_time(&self) -> Fault {
        let text = "its worker runs one call at a time and cannot be asked for more; set `concurrency = 1` for it";
        self.fault(text, Details::default())
    }

    pub(super) fn fault(&self, why: &str, details: Details) -> Fault {
        let message = format!("{} could not be started: {why}", self.spec.pack);
        Fault::new(Code::StartupFailed, message).with(details)
    }
}
