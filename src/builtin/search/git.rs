//! `git_status`

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::builtin::{About, Builtin, Call, Roots};
use crate::config::facts::Risk;
use crate::config::tool::Effects;
use crate::outcome::{Code, Fault};
use crate::process::{Done, End, Exit, Grace, Launch, Once, USUAL_TAIL, once};

pub(super) struct GitStatus(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// A folder of the repository; relative paths begin at the first folder that tools may reach, which `.` is.
    #[serde(default = "crate::builtin::here")]
    pub path: String,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Status {
    /// The branch, unless the head is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit, unless there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// How many commits it is ahead of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// How many behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Whether nothing is changed and nothing is new.
    pub clean: bool,
    /// What is to be committed.
    pub staged: Vec<Changed>,
    /// What is changed and not to be committed.
    pub unstaged: Vec<Changed>,
    /// What git does not know.
    pub untracked: Vec<String>,
    /// What two sides changed differently.
    pub conflicts: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Changed {
    /// The file, from the top of the repository.
    pub path: String,
    /// What became of it.
    pub change: String,
    /// Where it was before, where it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

const LIMIT: Duration = Duration::from_secs(30);
const MOST: usize = 8 << 20;

impl Builtin for GitStatus {
    type Params = Wanted;
    type Answer = Status;

    fn about(&self) -> About {
        About::new(
            "git_status",
            "Say what git says of a folder: branch, commit, what is changed, staged, new or in conflict.",
        )
        .effects(Effects::Pure)
        .risk("read_only", Risk::Low)
        .timeout(LIMIT)
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Status, Fault> {
        let at = self.0.locate(&wanted.path)?;
        let inner = at.root.canonicalize(at.inner()).map_err(|error| self.0.refused(&at.path(), &error))?;
        let folder = at.above.join(inner);
        let git = which::which("git").map_err(|_| {
            Fault::new(
                Code::CommandNotFound,
                "there is no `git` on hostler's PATH; install it, or add its folder to PATH",
            )
        })?;
        // A repository above the roots is none of this call's, and nothing that a repository names is to be run.
        let ceiling = at.above.canonicalize().unwrap_or_else(|_| at.above.clone());
        let launch = || {
            Launch::new(&git)
                .args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
                .envs(call.env())
                .env("GIT_CEILING_DIRECTORIES", ceiling.parent().unwrap_or(&ceiling))
                .env("GIT_NO_LAZY_FETCH", "1")
                .env("GIT_TERMINAL_PROMPT", "0")
                .env("LC_ALL", "C")
                .within(folder.clone())
        };
        let filters = filters(launch()).await?;
        let mut launch = launch();
        for (at, key) in filters.iter().enumerate() {
            // A name may hold what ends one on a command line.
            launch = launch.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), "");
        }
        let launch = launch.env("GIT_CONFIG_COUNT", filters.len().to_string());
        // What is changed within a submodule would be asked of that, with filters of its own.
        let words = ["status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "-z"];
        let done = asked(launch.args(words)).await?;
        match done.end {
            End::Exit(Exit::Code(0)) => Ok(read(&String::from_utf8_lossy(&done.stdout))),
            _ => Err(failed(&done)),
        }
    }
}

async fn asked(launch: Launch) -> Result<Done, Fault> {
    let program = Once { launch, input: Vec::new(), limit: LIMIT, most: MOST, tail: USUAL_TAIL, grace: Grace::NONE };
    once(program, |_, _| {}).await.map_err(|error| Fault::new(Code::SystemError, error.to_string()))
}

/// The settings by which the repository itself names programs that its files pass through, to be overruled. Those of the
/// person's own configuration are the person's.
async fn filters(launch: Launch) -> Result<Vec<String>, Fault> {
    let pattern = r"^filter\..*\.(clean|smudge|process|required)$";
    let done = asked(launch.args(["config", "--show-scope", "--null", "--name-only", "--get-regexp", pattern])).await?;
    match done.end {
        End::Exit(Exit::Code(0)) => {}
        // There is none.
        End::Exit(Exit::Code(1)) => return Ok(Vec::new()),
        _ => return Err(failed(&done)),
    }
    let printed = String::from_utf8_lossy(&done.stdout);
    let mut words = printed.split('\0');
    let mut keys = Vec::new();
    while let (Some(scope), Some(key)) = (words.next(), words.next()) {
        if scope == "local" || scope == "worktree" {
            keys.push(key.to_owned());
        }
    }
    Ok(keys)
}

fn failed(done: &Done) -> Fault {
    let why = match done.end {
        End::Exit(exit) => {
            let said = done.stderr.lines().find(|line| !line.trim().is_empty());
            said.map_or_else(|| format!("it ended with {exit}"), |line| line.trim_start_matches("fatal: ").to_owned())
        }
        End::TimeOver => format!("it did not end within {}", humantime::format_duration(LIMIT)),
        End::TooMuch => "more is changed than can be told".to_owned(),
    };
    Fault::new(Code::ToolError, format!("git did not say: {why}"))
}

/// What `git status --porcelain=v2 --branch -z` prints.
pub(super) fn read(printed: &str) -> Status {
    let mut status = Status::default();
    let mut fields = printed.split('\0').filter(|field| !field.is_empty());
    while let Some(field) = fields.next() {
        let (kind, rest) = field.split_once(' ').unwrap_or((field, ""));
        match kind {
            "#" => head(&mut status, rest),
            "1" => changed(&mut status, rest, 7, None),
            "2" => {
                let from = fields.next();
                changed(&mut status, rest, 8, from);
            }
            "u" => status.conflicts.extend(rest.splitn(10, ' ').nth(9).map(str::to_owned)),
            "?" => status.untracked.push(rest.to_owned()),
            _ => {}
        }
    }
    let nothing = [status.staged.len(), status.unstaged.len(), status.untracked.len(), status.conflicts.len()];
    status.clean = nothing == [0; 4];
    status
}

fn head(status: &mut Status, line: &str) {
    match line.split_once(' ') {
        Some(("branch.oid", oid)) => status.commit = Some(oid.to_owned()).filter(|oid| oid != "(initial)"),
        Some(("branch.head", name)) => status.branch = Some(name.to_owned()).filter(|name| name != "(detached)"),
        Some(("branch.upstream", name)) => status.upstream = Some(name.to_owned()),
        Some(("branch.ab", counts)) => {
            let mut counts = counts.split(' ').map(|count| count.trim_start_matches(['+', '-']).parse().ok());
            (status.ahead, status.behind) = (counts.next().flatten(), counts.next().flatten());
        }
        _ => {}
    }
}

/// One entry: `XY`, then so many fields, the last of which is the path.
fn changed(status: &mut Status, line: &str, fields: usize, from: Option<&str>) {
    let mut words = line.splitn(fields + 1, ' ');
    let marks: Vec<char> = words.next().unwrap_or_default().chars().collect();
    let Some(path) = words.nth(fields - 1) else { return };
    for (mark, list) in marks.into_iter().zip([&mut status.staged, &mut status.unstaged]) {
        let change = match mark {
            'M' => "modified",
            'T' => "type changed",
            'A' => "added",
            'D' => "deleted",
            'R' => "renamed",
            'C' => "copied",
            _ => continue,
        };
        list.push(Changed { path: path.to_owned(), change: change.to_owned(), from: from.map(str::to_owned) });
    }
}
