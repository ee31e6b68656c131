//! `read_system_logs`

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::builtin::{About, Builtin, Call};
use crate::config::declared_policy::Risk;
use crate::config::tool::Effects;
use crate::config::value::parse_duration;
use crate::outcome::{Code, Fault};
use crate::process::{End, Exit, Grace, Launch, Once, USUAL_TAIL, once};

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
        .effects(Effects::Pure)
        .risk("read_only", Risk::Medium)
        .timeout(LIMIT)
    }

    async fn call(&self, params: Params, call: Call) -> Result<LogLines, Fault> {
        let since = parse_duration(&params.since).ok_or_else(|| {
            let message = format!("`since`: expected a duration such as \"30m\" or \"2h\", got \"{}\"", params.since);
            Fault::new(Code::InvalidParams, message)
        })?;
        let programs = [
            (
                "journalctl",
                vec!["--no-pager".to_owned(), "--quiet".to_owned(), format!("--since=-{}s", since.as_secs())],
            ),
            ("log", vec!["show".to_owned(), "--style=syslog".to_owned(), format!("--last={}s", since.as_secs())]),
        ];
        for (name, words) in programs {
            // Other systems may have an unrelated `log`.
            if name == "log" && !cfg!(target_os = "macos") {
                continue;
            }
            if let Some(lines) = printed_by(name, &words, &call, &params).await {
                return Ok(LogLines { source: name.to_owned(), lines });
            }
        }
        call.blocking(move |_| from_file(&params)).await
    }
}

/// The output of a log program; none where it fails or prints nothing, as without a journal.
async fn printed_by(name: &str, words: &[String], call: &Call, params: &Params) -> Option<Vec<String>> {
    let launch = Launch::new(call.find_program(name)?).args(words).envs(call.env());
    let program =
        Once { launch, input: Vec::new(), limit: LIMIT / 2, most: MOST, tail: USUAL_TAIL, grace: Grace::NONE };
    let done = once(program, |_, _| {}).await.ok()?;
    // Without its end, the output is useless.
    let is_whole = done.end == End::Exit(Exit::Code(0));
    (is_whole && !done.stdout.is_empty()).then(|| last(&String::from_utf8_lossy(&done.stdout), params))
}

fn from_file(params: &Params) -> Result<LogLines, Fault> {
    let mut denied = None;
    for path in FILES {
        match end_of(Path::new(path)) {
            Ok(text) => return Ok(LogLines { source: path.to_owned(), lines: last(&text, params) }),
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
pub(super) fn last(text: &str, params: &Params) -> Vec<String> {
    let mut kept = VecDeque::with_capacity(params.lines.min(5000));
    for line in text.lines().filter(|line| params.text.as_ref().is_none_or(|text| line.contains(text))) {
        if kept.len() == params.lines.max(1) {
            kept.pop_front();
        }
        kept.push_back(line.to_owned());
    }
    kept.into()
}
