//! Runs a helper program to its end: uv, pip, a command that prints a secret.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

use super::child::Child;
use super::exit::Exit;
use super::ladder::{Grace, stop};
use super::launch::{Launch, SpawnError};

/// The result of a helper program.
#[derive(Debug)]
pub struct Finished {
    /// Its exit; `None` if it was stopped at its time limit.
    pub exit: Option<Exit>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Finished {
    /// Whether it exited with status 0.
    pub fn succeeded(&self) -> bool {
        self.exit == Some(Exit::Code(0))
    }
}

/// Runs a program with empty standard input; `on_line` receives each line of standard error at once. Dropping the
/// future kills the process group.
pub async fn run(launch: &Launch, limit: Duration, mut on_line: impl FnMut(&str)) -> Result<Finished, SpawnError> {
    let mut child = Child::start(launch).await?;
    drop(child.stdin.take());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut collected = (String::new(), String::new());
    let work = async {
        let ((), ()) =
            tokio::join!(read_all(stdout, &mut collected.0), read_lines(stderr, &mut collected.1, &mut on_line));
        child.exited().await
    };
    let exit = tokio::time::timeout(limit, work).await.ok();
    if exit.is_none() {
        stop(&mut child, Grace { to_leave: Duration::ZERO, to_obey: Duration::from_millis(500) }).await;
    }
    child.clean_up();
    Ok(Finished { exit, stdout: collected.0, stderr: collected.1 })
}

async fn read_all(pipe: Option<pipe::Receiver>, into: &mut String) {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes).await;
    }
    into.push_str(&String::from_utf8_lossy(&bytes));
}

async fn read_lines(pipe: Option<pipe::Receiver>, into: &mut String, on_line: &mut impl FnMut(&str)) {
    let Some(pipe) = pipe else { return };
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while let Ok(1..) = reader.read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line);
        on_line(text.trim_end());
        into.push_str(&text);
        line.clear();
    }
}

/// The last line; for Node, which ends a stack with its version, the reason above.
pub fn last_word(said: &str) -> Option<&str> {
    let mut lines = said.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.next()?;
    let is_reason = |line: &&str| !line.starts_with([' ', '\t', '}', '(']);
    let mut reason = || lines.find(is_reason).unwrap_or(last);
    Some(if last.starts_with("Node.js v") { reason() } else { last }.trim())
}

/// A word of a command line, quoted if needed, for commands that users copy from messages.
pub fn shell_word(text: &str) -> String {
    // Only a NUL cannot be quoted, and no path contains one.
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::*;
    use crate::process::exit::DeathWatch;

    fn shell(script: &str) -> Launch {
        Launch::new("/bin/sh").args(["-c", script])
    }

    #[tokio::test]
    async fn output_error_and_status_are_kept_apart() {
        let mut lines = Vec::new();
        let script = shell("echo out; echo one >&2; echo two >&2; exit 3");
        let done = run(&script, Duration::from_secs(10), |line| lines.push(line.to_owned())).await.unwrap();
        assert_eq!((done.stdout.as_str(), done.exit), ("out\n", Some(Exit::Code(3))));
        assert_eq!(lines, ["one", "two"]);
        assert!(!done.succeeded());
    }

    #[tokio::test]
    async fn a_program_at_its_time_limit_is_stopped_with_its_children() {
        let done = run(&shell("sleep 60 & echo $! >&2; wait"), Duration::from_millis(200), |_| {}).await.unwrap();
        assert_eq!(done.exit, None);
        let raw = done.stderr.trim().parse().unwrap();
        // KILL takes effect a moment later; an exited process cannot be watched.
        if let Ok(child) = DeathWatch::on(Pid::from_raw(raw).unwrap()) {
            let died = tokio::time::timeout(Duration::from_secs(5), child.died()).await;
            assert!(died.is_ok(), "the child outlived its group");
        }
    }

    #[tokio::test]
    async fn a_dropped_process_is_no_zombie() {
        let child = Child::start(&shell("sleep 60")).await.unwrap();
        let pid = Pid::from_raw(child.pid().cast_signed()).unwrap();
        drop(child);
        let gone = async {
            while rustix::process::test_kill_process(pid).is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(5), gone).await.is_ok(), "it is still on the process table");
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        let error = run(&Launch::new("/nowhere/at/all"), Duration::from_secs(1), |_| {}).await.unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/at/all could not be started"), "{error}");
    }

    #[tokio::test]
    async fn nothing_is_inherited_by_accident() {
        let done = run(&Launch::new("/usr/bin/env").env("ONE", "1"), Duration::from_secs(10), |_| {}).await.unwrap();
        let variables: Vec<&str> = done.stdout.lines().filter(|line| !line.starts_with("HOSTLER_RUN=")).collect();
        assert_eq!(variables, ["ONE=1"]);
        let marks = done.stdout.lines().count() - 1;
        assert_eq!(
            marks,
            usize::from(cfg!(target_os = "linux")),
            "the mark of every process of hostler: {}",
            done.stdout
        );
    }

    #[test]
    fn the_reason_of_a_failure_is_its_last_line() {
        assert_eq!(last_word("Traceback\n  File\nValueError: no bridge\n\n"), Some("ValueError: no bridge"));
        assert_eq!(last_word(" \n"), None);
        let node = "file:///t/a.mjs:6\nthrow 1\n^\n\nError [ERR_X]: no bridge\n    at a.mjs:6 {\n  code: 'ERR_X'\n}\n\nNode.js v20.20.2\n";
        assert_eq!(last_word(node), Some("Error [ERR_X]: no bridge"));
        assert_eq!(last_word("no bridge\n(Use `node --trace-uncaught ...`)\n\nNode.js v20.20.2\n"), Some("no bridge"));
        assert_eq!(last_word("Node.js v20.20.2\n"), Some("Node.js v20.20.2"));
    }
}
