//! What listeners of a call hear.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::handle::{CallEvent, RunningCall};
use crate::outcome::Outcome;
use crate::pool::Listener;
use crate::protocol::ProgressNote;
use crate::worker::LogLine;

/// Forwards what happens in the worker to every listener.
impl Listener for RunningCall {
    fn note(&self, text: &str) {
        self.each(|listener| listener.note(text));
    }

    fn asks(&self, text: &str) {
        self.watched.asks();
        self.each(|listener| listener.asks(text));
    }

    fn goes_on(&self) {
        self.watched.goes_on();
        self.each(|listener| listener.goes_on());
    }

    fn progress(&self, note: &ProgressNote) {
        self.watch_progress(note);
        self.each(|listener| listener.progress(note));
    }

    fn output(&self, stream: &str, text: &str) {
        self.watch_output(stream, text);
        self.journal_output(stream, text);
        self.each(|listener| listener.output(stream, text));
    }

    fn log(&self, line: &LogLine) {
        self.each(|listener| listener.log(line));
    }
}

/// Hears executables and built-in tools. They may print secrets; what a pool passes on has none.
pub(super) struct Redacting(pub Arc<RunningCall>);

impl Listener for Redacting {
    fn note(&self, text: &str) {
        self.0.note(text);
    }

    fn asks(&self, text: &str) {
        self.0.asks(text);
    }

    fn goes_on(&self) {
        self.0.goes_on();
    }

    fn progress(&self, note: &ProgressNote) {
        let Some(secrets) = self.0.secrets() else { return self.0.progress(note) };
        let message = note.message.as_ref().map(|message| secrets.text(message).into_owned());
        self.0.progress(&ProgressNote { message, ..note.clone() });
    }

    fn output(&self, stream: &str, text: &str) {
        let secrets = self.0.secrets();
        self.0.output(stream, &secrets.as_ref().map_or(text.into(), |secrets| secrets.text(text)));
    }

    fn log(&self, line: &LogLine) {
        let Some(secrets) = self.0.secrets() else { return self.0.log(line) };
        let mut line = line.clone();
        line.message = secrets.text(&line.message).into_owned();
        secrets.members(&mut line.fields);
        self.0.log(&line);
    }
}

/// A listener that writes to a channel.
pub(super) struct EventSender(pub mpsc::Sender<CallEvent>);

impl Listener for EventSender {
    fn note(&self, text: &str) {
        let _ = self.0.try_send(CallEvent::Note(text.to_owned()));
    }

    fn progress(&self, note: &ProgressNote) {
        let _ = self.0.try_send(CallEvent::Progress(note.clone()));
    }

    fn output(&self, stream: &str, text: &str) {
        let _ = self.0.try_send(CallEvent::Output { stream: stream.to_owned(), text: text.to_owned() });
    }

    fn log(&self, line: &LogLine) {
        let _ = self.0.try_send(CallEvent::Log(line.clone()));
    }

    fn ended(&self, outcome: &Arc<Outcome>) {
        let (sender, outcome) = (self.0.clone(), Arc::clone(outcome));
        if let Err(mpsc::error::TrySendError::Full(last)) = sender.try_send(CallEvent::Ended(outcome)) {
            // The outcome is never dropped, however far the reader is behind.
            tokio::spawn(async move { sender.send(last).await });
        }
    }
}
