//! Starts hostler as a process that outlives the one that starts it: no child of it, in no session and no folder of it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::setsid;

use super::keeper::fork;

/// Starts this program again with this argument and these variables. What it writes to standard output and standard error
/// can be read until it closes both. The started process must [`detach`].
pub fn start_detached(argument: &OsStr, variables: BTreeMap<OsString, OsString>) -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(this_program()?);
    command.arg0("hostler").arg(argument).env_clear().envs(variables).current_dir("/").process_group(0);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut started = command.spawn()?;
    // Its copies of the pipe are held by the command.
    drop(command);
    // It forks at once, so that this process never has a child.
    started.wait()?;
    Ok(reader)
}

/// Leaves the process that started this one: in a session of its own, with init or a subreaper as its parent. Call it while there is one thread.
pub fn detach() -> io::Result<()> {
    if fork()?.is_some() {
        std::process::exit(0);
    }
    setsid()?;
    Ok(())
}

/// Also after an update has replaced the file: the build that attaches and the one that it starts must be the same.
fn this_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}

/// Whether this program understands hostler's command line.
static IS_HOSTLER: AtomicBool = AtomicBool::new(false);

/// From now on, this program can be started again with hostler's commands. A program that embeds hostler has others.
pub fn is_hostler() {
    IS_HOSTLER.store(true, Ordering::Relaxed);
}

/// This program, if it is hostler.
pub fn own_program() -> Option<PathBuf> {
    IS_HOSTLER.load(Ordering::Relaxed).then(this_program)?.ok()
}
