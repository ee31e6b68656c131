//! A git repository beneath the roots. Nothing that it names is run, and nothing is told of what lies elsewhere: `.git` may be a
//! file that names another folder, and a repository's own settings may name another tree.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::builtin::{Call, Roots};
use crate::outcome::{Code, Fault};
use crate::process::{Done, End, Exit, Grace, Launch, Once, USUAL_TAIL, once};

/// How long git may take.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// The most that it may print, in bytes.
const MOST: usize = 8 << 20;

pub(super) struct Repository {
    roots: Roots,
    git: PathBuf,
    env: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

impl Repository {
    /// The one that a folder lies in.
    pub async fn at(roots: &Roots, path: &str, call: &Call) -> Result<Self, Fault> {
        let at = roots.locate(path)?;
        let inner = at.really().map_err(|error| roots.refused(&at.path(), &error))?;
        let git = call.find_program("git").ok_or_else(|| {
            Fault::new(
                Code::CommandNotFound,
                "there is no `git` on hostler's PATH; install it, or add its folder to PATH",
            )
        })?;
        // A repository above the roots is none of this call's.
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

    /// What git says of it, as `--porcelain=v2` prints it.
    pub async fn status(&self) -> Result<Vec<u8>, Fault> {
        // What is changed within a submodule would be asked of that, with filters of its own.
        let words = ["status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "-z"];
        let done = self.ask(&words).await?;
        if succeeded(&done) { Ok(done.stdout) } else { Err(failed(&done)) }
    }

    /// Refuses a repository whose files lie outside of the roots, and has git keep to what was looked at.
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

    /// The top of the tree, where git keeps what is this tree's, and where what it shares with others.
    async fn places(&self) -> Result<[PathBuf; 3], Fault> {
        let done = self.ask(&["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"]).await?;
        if !succeeded(&done) {
            return Err(failed(&done));
        }
        let lines = done.stdout.strip_suffix(b"\n").unwrap_or(&done.stdout).split(|byte| *byte == b'\n');
        let paths: Vec<PathBuf> = lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect();
        let broken = "git did not say where its folders are; one of them has a line break in its name, so rename that";
        <[PathBuf; 3]>::try_from(paths).map_err(|_| Fault::new(Code::ToolError, broken))
    }

    /// Overrules the settings by which the repository itself names programs that its files pass through. Those of the person's
    /// own configuration are the person's.
    async fn disarm(&mut self) -> Result<(), Fault> {
        let pattern = r"^filter\..*\.(clean|smudge|process|required)$";
        let done = self.ask(&["config", "--show-scope", "--null", "--name-only", "--get-regexp", pattern]).await?;
        // There may be none.
        if !succeeded(&done) && !matches!(done.end, End::Exit(Exit::Code(1))) {
            return Err(failed(&done));
        }
        let mut words = done.stdout.split(|byte| *byte == 0);
        let mut count = 0;
        while let (Some(scope), Some(key)) = (words.next(), words.next()) {
            if scope == b"local" || scope == b"worktree" {
                // A name may hold what ends one on a command line, and bytes that are no text.
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
        let program =
            Once { launch, input: Vec::new(), limit: LIMIT, most: MOST, tail: USUAL_TAIL, grace: Grace::NONE };
        let not_started = |error| self.roots.not_started(&self.folder, &error, Code::SystemError);
        once(program, |_, _| {}).await.map_err(not_started)
    }
}

/// Whether what git keeps in a folder, which may lie elsewhere, is kept for this tree, by that folder's own word: that of a linked
/// work tree says so in `gitdir`, that of a submodule in its settings.
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

fn succeeded(done: &Done) -> bool {
    matches!(done.end, End::Exit(Exit::Code(0)))
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
