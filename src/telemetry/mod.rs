//! Logs. They go to standard error, always: standard output belongs to answers and protocols.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging at a level: `warn`, `info`, `debug`, or a filter such as `hostler=debug,tool=info`.
/// An unusable filter is reported and replaced by `warn`; logging is no reason not to serve.
pub fn start(level: &str) {
    let filter = if is_understood(level) { EnvFilter::try_new(level).ok() } else { None };
    let unusable = filter.is_none();
    // rmcp tells every request at info; at the levels people set for hostler that is noise.
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    let filter = if level.contains("rmcp") { filter } else { quiet(filter) };
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .try_init();
    if started.is_ok() && unusable {
        tracing::warn!(level, "log level not understood; write error, warn, info, debug or trace");
    }
}

/// A single word that is no level would be taken for the name of a module, and silence everything else.
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
