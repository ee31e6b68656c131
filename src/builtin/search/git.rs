//! `git_status`

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::builtin::{About, Builtin, Call, Roots};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};
use crate::process::{Done, End, Exit, Grace, Launch, Once, USUAL_TAIL, UsageLimits, once};

/// The time limit of git.
const LIMIT: Duration = Duration::from_secs(30);

/// The most output of git, in bytes.
const MOST: usize = 8 << 20;

pub(super) struct GitStatus(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// A folder of the repository, absolute or relative to the first allowed folder (`.`).
    #[serde(default = "crate::builtin::here")]
    pub path: String,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Status {
    /// The branch, unless HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The current commit, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The upstream branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Commits ahead of upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// Commits behind upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Whether nothing is changed or untracked.
    pub clean: bool,
    /// Staged changes.
    pub staged: Vec<Changed>,
    /// Unstaged changes.
    pub unstaged: Vec<Changed>,
    /// Untracked files.
    pub untracked: Vec<String>,
    /// Files with conflicts.
    pub conflicts: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Changed {
    /// The file, relative to the repository.
    pub path: String,
    /// The kind of change.
    pub change: String,
    /// Its path before a rename.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Builtin for GitStatus {
    type Params = Params;
    type Answer = Status;

    fn about(&self) -> About {
        About::new(
            "git_status",
            "Return the git status of a folder: branch, commit, staged, unstaged, untracked and conflicting files.",
        )
        .reads("read_only", Risk::Low)
        .path_argument("path")
        .timeout(LIMIT)
    }

    async fn call(&self, params: Params, call: Call) -> Result<Status, Fault> {
        let printed = Repository::at(&self.0, &params.path, &call).await?.status().await?;
        Ok(read(&String::from_utf8_lossy(&printed)))
    }
}

/// Parses `git status --porcelain=v2 --branch -z`.
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

/// Parses one entry: `XY`, then `fields` fields, the last of which is the path.
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

/// A git repository beneath the roots. No program that it names is run, and nothing of other folders is read: `.git` may be a
/// file that names another folder, and a repository's own settings may name another work tree.
struct Repository {
    roots: Roots,
    git: PathBuf,
    env: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

impl Repository {
    /// The repository of a folder.
    pub async fn at(roots: &Roots, path: &str, call: &Call) -> Result<Self, Fault> {
        let at = roots.locate(path)?;
        let inner = at.really().map_err(|error| roots.refused(&at.path(), &error))?;
        let git = call.find_program("git").ok_or_else(|| {
            Fault::new(Code::CommandNotFound, "`git` is not on hostler's PATH; install it, or add its folder to PATH")
        })?;
        // A repository above the roots is out of bounds.
        let above = at.above.canonicalize().unwrap_or_else(|_| at.above.clone());
        let ceiling = above.parent().unwrap_or(&above);
        let mut env: Vec<_> = call.env().into_iter().collect();
        env.push(("GIT_CEILING_DIRECTORIES".into(), ceiling.into()));
        for (name, value) in [("GIT_NO_LAZY_FETCH", "1"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")] {
            env.push((name.into(), value.into()));
        }
        let mut found = Self { roots: roots.clone(), git, env, folder: at.above.join(inner) };
        found.stay_within(roots).await?;
        found.disarm().await?;
        Ok(found)
    }

    /// The output of `git status --porcelain=v2`.
    pub async fn status(&self) -> Result<Vec<u8>, Fault> {
        // Looking into a submodule would run its own filters.
        let words = ["status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "-z"];
        self.output(&words).await
    }

    async fn output(&self, words: &[&str]) -> Result<Vec<u8>, Fault> {
        let done = self.ask(words).await?;
        if done.end == End::Exit(Exit::Code(0)) { Ok(done.stdout) } else { Err(failed(&done)) }
    }

    /// Refuses a repository with files outside the roots, and pins git to the checked folders.
    async fn stay_within(&mut self, roots: &Roots) -> Result<(), Fault> {
        let [tree, store, common] = self.places().await?;
        let common = self.folder.join(common);
        roots.hold(&tree)?;
        if !claims(&store, &tree) {
            roots.hold(&store)?;
            roots.hold(&common)?;
        }
        self.env.push(("GIT_WORK_TREE".into(), tree.into()));
        self.env.push(("GIT_DIR".into(), store.into()));
        Ok(())
    }

    /// The work tree, its git directory, and the one it shares with other work trees.
    async fn places(&self) -> Result<[PathBuf; 3], Fault> {
        let words = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
        let printed = self.output(&words).await?;
        let lines = printed.strip_suffix(b"\n").unwrap_or(&printed).split(|byte| *byte == b'\n');
        let paths: Vec<PathBuf> = lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect();
        let broken = "a folder of this repository has a line break in its name; rename it";
        <[PathBuf; 3]>::try_from(paths).map_err(|_| Fault::new(Code::ToolError, broken))
    }

    /// Overrides filter programs that the repository's own settings name. Those of the user's configuration stay.
    async fn disarm(&mut self) -> Result<(), Fault> {
        let pattern = r"^filter\..*\.(clean|smudge|process|required)$";
        let done = self.ask(&["config", "--show-scope", "--null", "--name-only", "--get-regexp", pattern]).await?;
        // Status 1: there are none.
        if !matches!(done.end, End::Exit(Exit::Code(0 | 1))) {
            return Err(failed(&done));
        }
        let mut words = done.stdout.split(|byte| *byte == 0);
        let mut count = 0;
        while let (Some(scope), Some(key)) = (words.next(), words.next()) {
            if scope == b"local" || scope == b"worktree" {
                // As variables, because a name may contain `=` and bytes that are not text.
                self.env.push((format!("GIT_CONFIG_KEY_{count}").into(), OsStr::from_bytes(key).into()));
                self.env.push((format!("GIT_CONFIG_VALUE_{count}").into(), OsString::new()));
                count += 1;
            }
        }
        self.env.push(("GIT_CONFIG_COUNT".into(), count.to_string().into()));
        Ok(())
    }

    async fn ask(&self, words: &[&str]) -> Result<Done, Fault> {
        let launch = Launch::new(&self.git)
            .args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
            .args(words)
            .envs(self.env.iter().cloned().collect())
            .within(self.folder.clone());
        let program = Once {
            launch,
            input: Vec::new(),
            limit: LIMIT,
            most: MOST,
            tail: USUAL_TAIL,
            grace: Grace::NONE,
            limits: UsageLimits::default(),
        };
        let not_started = |error| self.roots.not_started(&self.folder, &error, Code::SystemError);
        once(program, |_, _| {}).await.map_err(not_started)
    }
}

/// Whether a git directory elsewhere belongs to this work tree, as it says itself: that of a linked work tree in `gitdir`, that of a
/// submodule in its settings.
fn claims(store: &Path, tree: &Path) -> bool {
    let same = |one: PathBuf, other: PathBuf| {
        one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
    };
    let linked = std::fs::read_to_string(store.join("gitdir")).unwrap_or_default();
    if !linked.is_empty() && same(store.join(linked.trim_end_matches('\n')), tree.join(".git")) {
        return true;
    }
    let settings = std::fs::read_to_string(store.join("config")).unwrap_or_default();
    let named = settings.lines().filter_map(|line| line.trim().strip_prefix("worktree")?.trim().strip_prefix('='));
    named.map(|path| path.trim().trim_matches('"')).any(|path| same(store.join(path), tree.to_owned()))
}

fn failed(done: &Done) -> Fault {
    let why = match done.end {
        End::Exit(exit) => {
            let line = done.stderr.lines().find(|line| !line.trim().is_empty());
            line.map_or_else(|| format!("it ended with {exit}"), |line| line.trim_start_matches("fatal: ").to_owned())
        }
        End::TimeOver | End::Excess(_) => format!("it did not end within {}", humantime::format_duration(LIMIT)),
        End::TooMuch => "its output is too long".to_owned(),
    };
    Fault::new(Code::ToolError, format!("git failed: {why}"))
}
