//! The connections to the shared hostler: one asks, one hears events. Each has a thread, and comes back when another hostler runs.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::KeyEvent;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use crate::call::CallInfo;
use crate::cli::shared::{own, refusal};
use crate::cli::style::Refusal;
use crate::config::Environment;
use crate::control::{Connection, Status};

/// How often it is asked, and how long after an end another one is looked for.
const LOOK: Duration = Duration::from_secs(1);
/// The most calls that are listed.
pub const LISTED: usize = 200;

/// What comes in.
pub enum Message {
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    Status(Box<Status>),
    Calls(Vec<CallInfo>),
    Event(Value),
    /// So many events were left out.
    LeftOut(u64),
    /// No shared hostler answers, and why.
    Gone(String),
    /// What came of a wish.
    Done(String),
    /// Nothing comes any more.
    Closed,
}

/// What is asked of the hostler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Of this call.
    Cancel {
        call: String,
    },
    /// Of the workers of this tool file.
    Drain {
        source: String,
    },
    Restart {
        source: String,
    },
}

impl Wish {
    fn ask(&self, connection: &mut Connection) -> Result<String, Refusal> {
        match self {
            Self::Cancel { call } => match connection.call::<bool>("calls.cancel", &json!({"call": call})) {
                Ok(true) => Ok("the call is cancelled".to_owned()),
                Ok(false) => Ok("the call had ended".to_owned()),
                Err(error) => Err(refusal(error)),
            },
            Self::Drain { source } => {
                connection.call::<Value>("pool.drain", &json!({"source": source})).map_err(refusal)?;
                Ok("its workers finish their calls and end; the next call starts others".to_owned())
            }
            Self::Restart { source } => {
                connection.call::<Value>("pool.restart", &json!({"source": source})).map_err(refusal)?;
                Ok("its workers are replaced".to_owned())
            }
        }
    }
}

/// Starts both. What is sent to the one returned is asked at once.
pub fn start(environment: &Arc<Environment>, messages: &Sender<Message>) -> io::Result<SyncSender<Wish>> {
    let (wishes, wanted) = sync_channel(16);
    let (own, sender) = (Arc::clone(environment), messages.clone());
    thread::Builder::new().name("asks".to_owned()).spawn(move || ask(&own, &sender, &wanted))?;
    let (own, sender) = (Arc::clone(environment), messages.clone());
    thread::Builder::new().name("hears".to_owned()).spawn(move || hear(&own, &sender))?;
    Ok(wishes)
}

fn ask(environment: &Environment, messages: &Sender<Message>, wishes: &Receiver<Wish>) {
    loop {
        let why = match own(environment) {
            Ok(Some(connection)) => look(connection, messages, wishes).what,
            Ok(None) => "no shared hostler is running; a client's `hostler serve` starts one".to_owned(),
            Err(error) => error.what,
        };
        if messages.blocking_send(Message::Gone(why)).is_err() {
            return;
        }
        thread::sleep(LOOK);
    }
}

/// Asks again and again, until there is no answer.
fn look(mut connection: Connection, messages: &Sender<Message>, wishes: &Receiver<Wish>) -> Refusal {
    loop {
        let status = connection.call::<Status>("status", &json!({}));
        let calls = connection.call::<Vec<CallInfo>>("calls.list", &json!({"limit": LISTED}));
        match (status, calls) {
            (Ok(status), Ok(calls)) => {
                let _ = messages.blocking_send(Message::Status(Box::new(status)));
                let _ = messages.blocking_send(Message::Calls(calls));
            }
            (Err(error), _) | (_, Err(error)) => return refusal(error),
        }
        match wishes.recv_timeout(LOOK) {
            Ok(wish) => {
                let done = wish.ask(&mut connection).unwrap_or_else(|error| error.what);
                let _ = messages.blocking_send(Message::Done(done));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Refusal::new("ended", ""),
        }
    }
}

fn hear(environment: &Environment, messages: &Sender<Message>) {
    while !messages.is_closed() {
        if let Ok(Some(mut connection)) = own(environment)
            && connection.subscribe(&json!({})).is_ok()
        {
            let mut left_out = 0;
            // Its end is that of the hostler: the other thread says so.
            let _ = connection.events(None, |event| {
                if left_out > 0 && messages.try_send(Message::LeftOut(left_out)).is_ok() {
                    left_out = 0;
                }
                match messages.try_send(Message::Event(event)) {
                    Ok(()) => true,
                    Err(TrySendError::Full(_)) => {
                        left_out += 1;
                        true
                    }
                    Err(TrySendError::Closed(_)) => false,
                }
            });
        }
        thread::sleep(LOOK);
    }
}
