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
pub(super) struct Wanted {
    /// How many lines, the last ones.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 5000))]
    pub lines: usize,
    /// How far back, such as `30m` or `2h`.
    #[serde(default = "an_hour")]
    pub since: String,
    /// Only lines with this text.
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
pub(super) struct Said {
    /// Who kept them: journald, a file, the macOS log.
    source: String,
    /// The lines, the oldest first.
    lines: Vec<String>,
}

const LIMIT: Duration = Duration::from_secs(30);
const MOST: usize = 16 << 20;
/// So much of the end of a log file is looked at, in bytes.
const END: u64 = 8 << 20;
const FILES: [&str; 3] = ["/var/log/syslog", "/var/log/messages", "/var/log/system.log"];

impl Builtin for Logs {
    type Params = Wanted;
    type Answer = Said;

    fn about(&self) -> About {
        About::new(
            "read_system_logs",
            "Read the last lines of the machine's log: journald, syslog or the macOS log, whichever there is.\n\nA log file says \
             nothing of how far back; of that its last lines are told.",
        )
        .effects(Effects::Pure)
        .risk("read_only", Risk::Medium)
        .timeout(LIMIT)
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Said, Fault> {
        let since = parse_duration(&wanted.since).ok_or_else(|| {
            let message = format!("`since` is a time such as \"30m\" or \"2h\", and \"{}\" came", wanted.since);
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
            // Other systems have programs called `log`, too.
            if name == "log" && !cfg!(target_os = "macos") {
                continue;
            }
            if let Some(lines) = said_by(name, &words, &call, &wanted).await {
                return Ok(Said { source: name.to_owned(), lines });
            }
        }
        call.blocking(move |_| of_a_file(&wanted)).await
    }
}

/// What a program prints, if it prints anything: a machine may have the program and keep no log with it.
async fn said_by(name: &str, words: &[String], call: &Call, wanted: &Wanted) -> Option<Vec<String>> {
    let launch = Launch::new(call.find_program(name)?).args(words).envs(call.env());
    let asked = Once { launch, input: Vec::new(), limit: LIMIT / 2, most: MOST, tail: USUAL_TAIL, grace: Grace::NONE };
    let done = once(asked, |_, _| {}).await.ok()?;
    // Of too much the end cannot be told: it was stopped before.
    let is_whole = done.end == End::Exit(Exit::Code(0));
    (is_whole && !done.stdout.is_empty()).then(|| last(&String::from_utf8_lossy(&done.stdout), wanted))
}

fn of_a_file(wanted: &Wanted) -> Result<Said, Fault> {
    let mut denied = None;
    for path in FILES {
        match end_of(Path::new(path)) {
            Ok(text) => return Ok(Said { source: path.to_owned(), lines: last(&text, wanted) }),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => denied = Some(path),
            Err(_) => {}
        }
    }
    Err(match denied {
        Some(path) => Fault::new(
            Code::PermissionDenied,
            format!(
                "hostler may not read {path}; its user can be let by adding it to the group that may (`adm` on many)"
            ),
        ),
        None => Fault::new(
            Code::ToolError,
            format!("this machine keeps no log that is known: neither journald nor {}", FILES.join(", ")),
        ),
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

/// The last lines that are meant.
pub(super) fn last(text: &str, wanted: &Wanted) -> Vec<String> {
    let mut kept = VecDeque::with_capacity(wanted.lines.min(5000));
    for line in text.lines().filter(|line| wanted.text.as_ref().is_none_or(|text| line.contains(text))) {
        if kept.len() == wanted.lines.max(1) {
            kept.pop_front();
        }
        kept.push_back(line.to_owned());
    }
    kept.into()
}
