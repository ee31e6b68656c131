//! Logs. They always go to standard error: standard output belongs to answers and protocols.

mod stderr_writer;

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

pub use stderr_writer::{flush, say};

/// Starts logging at a level: `warn`, `info`, `debug`, or a filter such as `hostler=debug,tool=info`. An invalid filter
/// is reported and replaced by `warn`. From here on a thread writes the log, so that a slow reader of stderr blocks no
/// caller.
pub fn start(level: &str) {
    stderr_writer::start();
    let filter = if is_understood(level) { EnvFilter::try_new(level).ok() } else { None };
    let unusable = filter.is_none();
    // rmcp logs every request at info, which is noise at hostler's levels.
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    let filter = if level.contains("rmcp") { filter } else { quiet(filter) };
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Lines)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .try_init();
    if started.is_ok() && unusable {
        tracing::warn!(level, "log level not understood; write error, warn, info, debug or trace");
    }
}

/// The subscriber's writer; each write is a whole event.
struct Lines;

impl Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        say(&String::from_utf8_lossy(text));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An unknown word would be parsed as a module name, and silence everything else.
fn is_understood(level: &str) -> bool {
    let words = ["off", "error", "warn", "info", "debug", "trace"];
    level.contains(['=', ',']) || words.contains(&level.trim().to_ascii_lowercase().as_str())
}

fn quiet(filter: EnvFilter) -> EnvFilter {
    match "rmcp=error".parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    }
}
