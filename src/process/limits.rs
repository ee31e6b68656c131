//! The limits of the system that an error comes from, with what to change.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::exit::Exit;
use super::launch::SpawnError;
use crate::config::origin::Diagnosis;
use crate::outcome::{Code, Fault};

/// The limit behind an error of starting a process or a thread, or of opening or writing a file. `None` if it has
/// another cause.
pub fn limit_behind(error: &io::Error) -> Option<Diagnosis> {
    let (what, fix) = match Errno::from_io_error(error)? {
        Errno::AGAIN => (
            format!("this user runs as many processes and threads as it may{}", value(Resource::Nproc)),
            "end some, or raise the limit where hostler is started (`ulimit -u`, or `pids.max` of a container)",
        ),
        Errno::MFILE => (
            format!("hostler has as many files open as it may{}", value(Resource::Nofile)),
            "raise the limit where hostler is started (`ulimit -n 1024`)",
        ),
        Errno::NFILE => {
            ("the system has as many files open as it may".to_owned(), "close programs, or raise `fs.file-max`")
        }
        Errno::NOMEM => ("the system has no memory left".to_owned(), "end other programs, or lower `max_workers`"),
        Errno::FBIG => (
            format!("files may not become larger{}", value(Resource::Fsize)),
            "raise the limit where hostler is started (`ulimit -f unlimited`)",
        ),
        _ => return None,
    };
    Some(Diagnosis::new(what, fix))
}

/// The limit behind what a program wrote before it failed: the system's own words, which every program prints.
pub fn limit_in(text: &str) -> Option<Diagnosis> {
    const WORDS: [(&str, Errno); 4] = [
        ("Resource temporarily unavailable", Errno::AGAIN),
        ("Too many open files", Errno::MFILE),
        ("Cannot allocate memory", Errno::NOMEM),
        ("File too large", Errno::FBIG),
    ];
    let (_, errno) = WORDS.into_iter().find(|(words, _)| text.contains(words))?;
    limit_behind(&errno.into())
}

/// With fewer open files hostler cannot begin to work.
const FEWEST_FILES: u64 = 16;

/// The limit of open files, if it is too low to begin with.
pub fn too_few_files() -> Option<Diagnosis> {
    let limit = getrlimit(Resource::Nofile).current?;
    let what = format!("hostler needs at least {FEWEST_FILES} open files and may have {limit}");
    let fix = "raise the limit where hostler is started (`ulimit -n 1024`)";
    (limit < FEWEST_FILES).then(|| Diagnosis::new(what, fix))
}

/// The limit in force, in parentheses.
fn value(resource: Resource) -> String {
    getrlimit(resource).current.map_or_else(String::new, |limit| format!(" ({limit})"))
}

impl SpawnError {
    /// The fault where a limit of the system prevented the start. Calling again later may help.
    pub fn limit(&self) -> Option<Fault> {
        let limit = limit_behind(&self.source)?;
        Some(Fault::new(Code::ResourceExhausted, format!("{} could not be started: {limit}", self.program)))
    }
}

impl Exit {
    /// The limit that a program was killed for exceeding.
    pub fn limit(self) -> Option<Diagnosis> {
        let is_size = self == Self::Signal(libc::SIGXFSZ);
        is_size.then(|| limit_behind(&Errno::FBIG.into())).flatten()
    }
}

/// The fault of work for which the system gave no thread.
pub fn without_thread(error: &io::Error) -> Fault {
    let limit = limit_behind(error).map_or_else(|| error.to_string(), |limit| limit.to_string());
    Fault::new(Code::ResourceExhausted, format!("no thread could be started: {limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_named_with_its_command() {
        let behind = |errno: Errno| limit_behind(&errno.into()).map(|found| found.to_string());
        for (errno, command) in [(Errno::AGAIN, "ulimit -u"), (Errno::MFILE, "ulimit -n"), (Errno::FBIG, "ulimit -f")] {
            assert!(behind(errno).is_some_and(|text| text.contains(command)), "{errno}");
        }
        assert_eq!(behind(Errno::NOENT), None);
        for errno in [Errno::AGAIN, Errno::MFILE, Errno::NOMEM, Errno::FBIG] {
            let said = format!("error: cannot start: {}", io::Error::from(errno));
            assert_eq!(limit_in(&said).map(|found| found.to_string()), behind(errno), "{said}");
        }
        assert_eq!(limit_in("error: no such package"), None);
        let error = SpawnError { program: "uv".to_owned(), source: Errno::AGAIN.into() };
        assert_eq!(error.limit().unwrap().code, Code::ResourceExhausted);
    }
}
