//! Programs of the tools folders: started when they are whole, and why one cannot be.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use super::child::Child;
use super::launch::{Launch, SpawnError};

/// A file that is being written cannot be run. An editor or a compiler is done in a moment.
const WRITING: Duration = Duration::from_millis(500);

/// Starts a program of the tools folders, which somebody may just be writing.
pub async fn spawn_when_written(launch: &Launch) -> Result<Child, SpawnError> {
    let begun = Instant::now();
    loop {
        match Child::spawn(launch) {
            Err(error) if error.source.kind() == ErrorKind::ExecutableFileBusy && begun.elapsed() < WRITING => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

/// Why a program cannot be started, and what to do.
pub fn cannot_run(path: &Path, error: &SpawnError) -> String {
    let error = &error.source;
    match error.kind() {
        ErrorKind::NotFound if path.exists() => match interpreter(path) {
            // An editor does not show it, and the system takes it for a part of the name.
            Some(interpreter) if interpreter.ends_with('\r') => format!(
                "its lines end as on Windows, so its first line wants `{}\\r`, which is not there; save it with the line ends of \
                 Unix (`sed -i 's/\\r$//' FILE`)",
                interpreter.trim_end()
            ),
            Some(interpreter) => format!(
                "its first line wants {interpreter}, which is not there; install that, or correct the line"
            ),
            None => "what it needs to be loaded is not there; build it for this machine".to_owned(),
        },
        ErrorKind::NotFound => "the file is gone; put it back, or refresh to forget it".to_owned(),
        ErrorKind::PermissionDenied => format!("it may not be executed; run `chmod +x {}`", path.display()),
        ErrorKind::ExecutableFileBusy => "it is still being written; try again when that is done".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            "it is neither a program for this machine nor a script that begins with `#!`; build it for this machine, or \
             write `#!/usr/bin/env python3` or the like as its first line"
                .to_owned()
        }
        _ => format!("it cannot be started: {error}"),
    }
}

fn interpreter(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(256).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.split('\n').next()?.strip_prefix("#!")?.trim_matches([' ', '\t']).to_owned())
}
