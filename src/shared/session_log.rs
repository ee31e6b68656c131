//! What concerns one session goes to the standard error of its attached process, over the control socket.

use std::sync::Arc;

use parking_lot::Mutex;

use super::message::{self, LOG, Said};
use crate::config::Config;
use crate::process::Outbox;
use crate::telemetry::{self, Audience};

/// The most bytes that wait for the attached process. Further lines are dropped and counted.
const MOST: usize = 1 << 20;

/// The log of a session.
#[derive(Default)]
pub struct SessionLog(Mutex<State>);

#[derive(Default)]
struct State {
    /// The connection, once the session is accepted.
    outbox: Option<Outbox>,
    /// What was said before.
    early: String,
    /// Lines that were dropped.
    lost: usize,
}

impl SessionLog {
    /// Its reader, at the level by `-v`, given this often, or by the session's configuration.
    pub fn audience(self: &Arc<Self>, verbose: u8, config: &Config) -> Audience {
        let log = Arc::clone(self);
        Audience::new(telemetry::level(verbose, &config.log.value), config.log_format, move |text| log.tell(text))
    }

    /// Sends what was said, and from now on whatever is.
    pub fn open(&self, outbox: Outbox) {
        let mut state = self.0.lock();
        let early = std::mem::take(&mut state.early);
        state.outbox = Some(outbox);
        state.tell(&early);
    }

    /// Closes the connection; what is said afterwards is lost.
    pub fn close(&self) {
        self.0.lock().outbox = None;
    }

    fn tell(&self, text: &str) {
        self.0.lock().tell(text);
    }
}

impl State {
    fn tell(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let Some(outbox) = &self.outbox else {
            if self.early.len() + text.len() <= MOST {
                self.early.push_str(text);
            }
            return;
        };
        if outbox.waiting() + text.len() > MOST {
            self.lost += text.lines().count();
            return;
        }
        let text = match std::mem::take(&mut self.lost) {
            0 => text.to_owned(),
            lost => format!("{}{text}", telemetry::dropped(lost)),
        };
        outbox.send(&message::notification(LOG, Said { text }));
    }
}
