//! How log lines are written: for people, or as JSON.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{self, Format, FormatEvent, FormatFields, Full, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, time::SystemTime};
use tracing_subscriber::registry::LookupSpan;

use super::audience::Audience;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// A JSON object for each line.
    Json,
}

/// Writes each line as its reader wants it.
pub(super) struct Formats {
    text: Format<Full, SystemTime>,
    json: Format<Json, SystemTime>,
    usual: LogFormat,
}

impl Formats {
    /// `usual` is the format for those without an audience.
    pub fn new(usual: LogFormat) -> Self {
        let text = format::format().with_target(false);
        let json = format::format().json().flatten_event(true).with_current_span(false).with_span_list(false);
        Self { text, json, usual }
    }
}

impl<S, N> FormatEvent<S, N> for Formats
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        match Audience::current().map_or(self.usual, |audience| audience.format()) {
            LogFormat::Text => self.text.format_event(context, writer, event),
            LogFormat::Json => self.json.format_event(context, writer, event),
        }
    }
}
