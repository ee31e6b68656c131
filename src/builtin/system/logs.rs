//! `read_system_logs`

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::builtin::{About, Builtin, Call};
use crate::config::declared_policy::Risk;
use crate::config::value::parse_duration;
use crate::outcome::{Code, Fault};

pub(super) struct Logs;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// The number of lines.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 5000))]
    pub lines: usize,
    /// How far back, such as `30m` or `2h`.
    #[serde(default = "an_hour")]
    pub since: String,
    /// Only lines that contain this text.
    #[serde(default)]
    pub text: Option<String>,
}

fn usual() -> usize {
    100
}

fn an_hour() -> String {
    "1h".to_owned()
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LogLines {
    /// Where they come from: journald, a file, the macOS log.
    source: String,
    /// The lines, oldest first.
    lines: Vec<String>,
}

const LIMIT: Duration = Duration::from_secs(30);
const MOST: usize = 16 << 20;
/// How much of the end of a log file is read, in bytes.
const END: u64 = 8 << 20;
const FILES: [&str; 3] = ["/var/log/syslog", "/var/log/messages", "/var/log/system.log"];

impl Builtin for Logs {
    type Params = Params;
    type Answer = LogLines;

    fn about(&self) -> About {
        About::new(
            "read_system_logs",
            "Read the last lines of the system log: journald, the macOS log or a syslog file.\n\nFor a syslog file, `since` has no \
             effect.",
        )
        .reads("read_only", Risk::Medium)
        .timeout(LIMIT)
    }

    async fn call(&self, params: Params, call: Call) -> Result<LogLines, Fault> {
        let since = parse_duration(&params.since).ok_or_else(|| {
            let message = format!("`since`: expected a duration such as \"30m\" or \"2h\", got \"{}\"", params.since);
            Fault::new(Code::InvalidParams, message)
        })?;
        let (since, last) = (format!("--since=-{}s", since.as_secs()), format!("--last={}s", since.as_secs()));
        let mut programs = vec![("journalctl", ["--no-pager", "--quiet", &since])];
        // Other systems may have an unrelated `log`.
        if cfg!(target_os = "macos") {
            programs.push(("log", ["show", "--style=syslog", &last]));
        }
        for (name, words) in programs {
            // Without a journal, it fails or prints nothing.
            if let Some(text) = call.output_of(name, &words, LIMIT / 2, MOST).await {
                return Ok(LogLines { source: name.to_owned(), lines: last_lines(&text, &params) });
            }
        }
        call.blocking(move |_| from_file(&params)).await
    }
}

fn from_file(params: &Params) -> Result<LogLines, Fault> {
    let mut denied = None;
    for path in FILES {
        match end_of(Path::new(path)) {
            Ok(text) => return Ok(LogLines { source: path.to_owned(), lines: last_lines(&text, params) }),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => denied = Some(path),
            Err(_) => {}
        }
    }
    Err(match denied {
        Some(path) => Fault::new(
            Code::PermissionDenied,
            format!("cannot read {path}: add hostler's user to the group that may (often `adm`)"),
        ),
        None => Fault::new(Code::ToolError, format!("no system log found: neither journald nor {}", FILES.join(", "))),
    })
}

fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last matching lines.
pub(super) fn last_lines(text: &str, params: &Params) -> Vec<String> {
    let matches = |line: &&str| params.text.as_ref().is_none_or(|text| line.contains(text));
    let mut lines: Vec<String> =
        text.lines().rev().filter(matches).take(params.lines.max(1)).map(str::to_owned).collect();
    lines.reverse();
    lines
}
