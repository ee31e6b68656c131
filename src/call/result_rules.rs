//! The rules about results, kept: what is too large is not passed on, and what a pattern matches is taken out of everything that a call
//! says.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::outcome::{Code, Fault};
use crate::policy::ResultRules;
use crate::pool::{Listener, Settled};
use crate::protocol::ProgressNote;
use crate::registry::Tool;
use crate::worker::LogLine;

fn rules_of(tool: &Tool) -> Option<&ResultRules> {
    tool.governed().map(|governed| governed.rules.results()).filter(|rules| rules.are_any())
}

/// Keeps the rules for the end of a call.
pub(super) fn keep(tool: &Tool, settled: &mut Settled) {
    let Some(rules) = rules_of(tool) else { return };
    let too_large = settled.ended.as_ref().ok().and_then(|raw| rules.judge(raw.get().len()));
    if let Some(because) = too_large {
        let place = because.origin.place().map(|place| format!(" ({place})")).unwrap_or_default();
        let message = format!("{}: {}{place}; return less, or a file", tool.name, because.reason);
        settled.ended = Err(Fault::new(Code::InvalidOutput, message));
    }
    if !rules.redact() {
        return;
    }
    match &mut settled.ended {
        Ok(raw) => {
            let clean = rules.json(raw.get()).and_then(|clean| RawValue::from_string(clean).ok());
            if let Some(clean) = clean {
                *raw = clean;
            }
        }
        Err(fault) => {
            let details = &mut fault.details;
            let texts = [&mut details.stderr, &mut details.traceback, &mut details.exception].into_iter().flatten();
            let attempts = details.attempts.iter_mut().map(|attempt| &mut attempt.message);
            texts.chain(attempts).chain([&mut fault.message]).for_each(|text| redact(rules, text));
        }
    }
    settled.metadata.output.iter_mut().for_each(|text| redact(rules, text));
}

fn redact(rules: &ResultRules, text: &mut String) {
    if let Cow::Owned(clean) = rules.text(text) {
        *text = clean;
    }
}

/// The listener of a call, without what the rules take out of texts.
pub(super) fn heard(tool: &Arc<Tool>, listener: Arc<dyn Listener>) -> Arc<dyn Listener> {
    let has_patterns = rules_of(tool).is_some_and(ResultRules::redact);
    if has_patterns { Arc::new(Heard { tool: Arc::clone(tool), listener }) } else { listener }
}

struct Heard {
    tool: Arc<Tool>,
    listener: Arc<dyn Listener>,
}

impl Heard {
    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        rules_of(&self.tool).map_or(Cow::Borrowed(text), |rules| rules.text(text))
    }
}

impl Listener for Heard {
    fn note(&self, text: &str) {
        self.listener.note(text);
    }

    fn asks(&self, text: &str) {
        self.listener.asks(&self.text(text));
    }

    fn goes_on(&self) {
        self.listener.goes_on();
    }

    fn progress(&self, note: &ProgressNote) {
        let message = note.message.as_ref().map(|message| self.text(message).into_owned());
        self.listener.progress(&ProgressNote { message, ..note.clone() });
    }

    fn output(&self, stream: &str, text: &str) {
        self.listener.output(stream, &self.text(text));
    }

    fn log(&self, line: &LogLine) {
        self.listener.log(&self.clean(line.clone()));
    }

    fn clean(&self, mut line: LogLine) -> LogLine {
        line.message = self.text(&line.message).into_owned();
        let fields = Value::Object(std::mem::take(&mut line.fields)).to_string();
        let fields = rules_of(&self.tool).and_then(|rules| rules.json(&fields)).unwrap_or(fields);
        line.fields = serde_json::from_str(&fields).unwrap_or_default();
        line
    }
}
