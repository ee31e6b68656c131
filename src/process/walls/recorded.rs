//! From what a process does to what is recorded of it: the real files and folders, as the kernel would judge them.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access as Right, access};

use super::addresses::Address;
use super::programs::{DEEPEST, interpreter_in};
use super::reported::Deed;
use crate::config::recorder::{Record, Recorder};

/// Records what a thread is about to do. What fails for another reason than a sandbox is left out: a file that is not there, or that this
/// user may not change.
pub(super) fn note(recorder: &Recorder, thread: u32, deed: Deed) {
    let seen = |path: &Path| as_seen(path, thread);
    match deed {
        Deed::Open { path, reads, writes, creates } => open(recorder, &seen(&path), reads, writes, creates),
        Deed::Make(path) => {
            let path = seen(&path);
            if !is_there(&path) {
                name(recorder, &path);
            }
        }
        Deed::Remove(path) => {
            let path = seen(&path);
            if is_there(&path) {
                name(recorder, &path);
            }
        }
        Deed::Move(old, new) => {
            let (old, new) = (seen(&old), seen(&new));
            if is_there(&old) {
                name(recorder, &old);
                name(recorder, &new);
            }
        }
        Deed::Link(old, new) => {
            let (old, new) = (seen(&old), seen(&new));
            if is_there(&old) && !is_there(&new) {
                name(recorder, &new);
                // Within one folder, the old name is not touched.
                if folder_of(&old).ok() != folder_of(&new).ok() {
                    name(recorder, &old);
                }
            }
        }
        Deed::Change(path) => change(recorder, &seen(&path)),
        Deed::Run(path) => run(recorder, &seen(&path)),
        Deed::Watch(path) => {
            let watched = seen(&path).canonicalize().ok();
            recorder.add(|record| record.watched.extend(watched));
        }
        Deed::Reach(address) => reach(recorder, address, &seen),
        Deed::Bind(Address::Internet(_)) => recorder.add(|record| record.listens = true),
        Deed::Bind(_) => {}
    }
}

/// A path as a thread sees it: what it calls itself has another name here.
fn as_seen(path: &Path, thread: u32) -> PathBuf {
    let own = PathBuf::from(format!("/proc/{thread}"));
    let standard = ["/dev/stdin", "/dev/stdout", "/dev/stderr"].into_iter().position(|name| path == Path::new(name));
    if let Some(number) = standard {
        return own.join("fd").join(number.to_string());
    }
    let beneath = |prefix: &str| path.strip_prefix(prefix).ok();
    if let Some(rest) = beneath("/dev/fd") {
        return own.join("fd").join(rest);
    }
    let rest = beneath("/proc/self").or_else(|| beneath("/proc/thread-self"));
    rest.map_or_else(|| path.to_owned(), |rest| own.join(rest))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The terminal of a person, which shells look for and do without.
const TERMINAL: &str = "/dev/tty";

fn open(recorder: &Recorder, path: &Path, reads: bool, writes: bool, creates: bool) {
    if path == Path::new(TERMINAL) {
        return;
    }
    match path.canonicalize() {
        Ok(real) => {
            let writes = writes && !real.is_dir() && access(&real, Right::WRITE_OK).is_ok();
            recorder.add(|record| {
                if reads && !record.may_read(&real) {
                    record.reads.insert(real.clone());
                }
                if writes {
                    add_written(record, real);
                }
            });
        }
        Err(error) if creates && error.kind() == io::ErrorKind::NotFound => name(recorder, path),
        Err(_) => {}
    }
}

/// A name is made or removed: that changes its folder.
fn name(recorder: &Recorder, path: &Path) {
    if is_bytecode(path) {
        return;
    }
    if let Ok(folder) = folder_of(path)
        && access(&folder, Right::WRITE_OK).is_ok()
    {
        recorder.add(|record| add_written(record, folder));
    }
}

/// The folder that a name is in, whatever links lead there.
fn folder_of(path: &Path) -> io::Result<PathBuf> {
    match path.components().next_back() {
        Some(Component::Normal(_)) => path.parent().unwrap_or(Path::new("/")).canonicalize(),
        _ => path.canonicalize(),
    }
}

fn change(recorder: &Recorder, path: &Path) {
    if let Ok(real) = path.canonicalize()
        && !is_bytecode(path)
    {
        recorder.add(|record| add_written(record, real));
    }
}

fn add_written(record: &mut Record, real: PathBuf) {
    if !record.may_write(&real) {
        record.writes.insert(real);
    }
}

/// Python goes on without being able to keep its compiled modules.
fn is_bytecode(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "__pycache__")
}

/// The kernel opens the interpreter of a script itself.
fn run(recorder: &Recorder, path: &Path) {
    let mut program = Some(path.to_owned());
    for _ in 0..DEEPEST {
        let Some(real) = program.and_then(|program| program.canonicalize().ok()).filter(|real| real.is_file()) else {
            return;
        };
        // It may be a pipe by now, for which the recorder would wait.
        let script = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&real).ok();
        let script = script.filter(|script| script.metadata().is_ok_and(|about| about.is_file()));
        program = script.and_then(|script| interpreter_in(script, |_| None));
        recorder.add(|record| {
            if !record.may_read(&real) {
                record.reads.insert(real);
            }
        });
    }
}

fn reach(recorder: &Recorder, address: Address, seen: &impl Fn(&Path) -> PathBuf) {
    match address {
        // With port 0, a program only asks the kernel for a route.
        Address::Internet(address) if address.port() != 0 => recorder.add(|record| {
            if !record.proxies.contains(&address) {
                record.addresses.insert(address);
            }
        }),
        Address::Unix(path) => {
            let path = if path.is_absolute() { path } else { Path::new("/proc/self/cwd").join(path) };
            let socket = seen(&path).canonicalize().ok();
            recorder.add(|record| record.sockets.extend(socket));
        }
        Address::Internet(_) | Address::Other => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_real_file_counts_and_what_cannot_work_does_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        for folder in ["a", "b", "tool/__pycache__"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("a/file"), "x").unwrap();
        fs::write(at("a/script"), format!("#!{}\n", at("a/file").display())).unwrap();
        symlink("../a/file", at("b/link")).unwrap();
        let recorder = Recorder::default();
        let of = |deed: Deed| {
            note(&recorder, std::process::id(), deed);
            let record = recorder.record();
            recorder.add(|record| *record = Record::default());
            let names = |paths: &std::collections::BTreeSet<PathBuf>| -> Vec<String> {
                let base = at("");
                paths.iter().map(|path| path.strip_prefix(&base).unwrap_or(path).display().to_string()).collect()
            };
            (names(&record.reads), names(&record.writes))
        };
        let open = |name: &str, reads, writes, creates| Deed::Open { path: at(name), reads, writes, creates };
        let [none, file, folder] =
            [&[][..], &["a/file"], &["a"]].map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(open("b/link", true, false, false)), (file.clone(), none.clone()));
        assert_eq!(of(open("b/../a/file", true, true, false)), (file.clone(), file.clone()));
        assert_eq!(of(open("a/new", true, false, false)), (none.clone(), none.clone()), "it is not there");
        assert_eq!(of(open("a/new", false, true, true)), (none.clone(), folder.clone()));
        assert_eq!(of(open("none/new", false, true, true)), (none.clone(), none.clone()));
        assert_eq!(of(Deed::Make(at("a/file"))), (none.clone(), none.clone()), "it is there already");
        assert_eq!(of(Deed::Make(at("a/new"))), (none.clone(), folder.clone()));
        assert_eq!(of(Deed::Remove(at("a/new"))), (none.clone(), none.clone()));
        assert_eq!(of(Deed::Remove(at("b/link"))).1, ["b"], "the link itself goes");
        assert_eq!(of(Deed::Move(at("a/file"), at("b/file"))).1, ["a", "b"]);
        assert_eq!(of(Deed::Link(at("a/file"), at("a/other"))), (none.clone(), folder));
        assert_eq!(of(Deed::Change(at("b/link"))), (none.clone(), file));
        assert_eq!(of(open("tool/__pycache__/x.pyc", false, true, true)), (none.clone(), none.clone()));
        assert_eq!(of(Deed::Run(at("a/script"))).0, ["a/file", "a/script"]);
    }

    #[test]
    fn what_a_thread_calls_itself_has_another_name_here() {
        for (path, seen) in [
            ("/proc/self/maps", "/proc/7/maps"),
            ("/proc/thread-self/fd/3", "/proc/7/fd/3"),
            ("/dev/fd/4", "/proc/7/fd/4"),
            ("/dev/stderr", "/proc/7/fd/2"),
            ("/proc/selfish", "/proc/selfish"),
            ("/dev/null", "/dev/null"),
        ] {
            assert_eq!(as_seen(Path::new(path), 7), Path::new(seen));
        }
    }
}
