//! Walls of real processes. What tools see of them is in `tests/e2e/test_sandbox.py`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Access, Layer, Own, Walls};
use crate::config::Environment;
use crate::config::recorder::{Record, Recorder};
use crate::config::sandbox::Network;
use crate::process::{Finished, Launch, run};

/// A folder that may be read, one that may be written, and one that may not be reached.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in ["read", "write", "closed"] {
            fs::create_dir(place.at(name)).unwrap();
            fs::write(place.at(name).join("file"), name).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    async fn shell(&self, access: Access, script: &str) -> Finished {
        let walls = Walls { access: vec![access], ..Walls::default() };
        self.within(walls, script).await
    }

    async fn within(&self, walls: Walls, script: &str) -> Finished {
        self.started(walls, "", script).await
    }

    async fn within_directory(&self, access: Access, directory: &str, script: &str) -> Finished {
        self.started(Walls { access: vec![access], ..Walls::default() }, directory, script).await
    }

    async fn started(&self, walls: Walls, directory: &str, script: &str) -> Finished {
        let launch = Launch::new("/bin/sh").args(["-c", script]).within(self.at(directory));
        run(&launch.with_walls(Some(Arc::new(walls))), Duration::from_secs(20), |_| {}).await.unwrap()
    }

    fn pure(&self) -> Access {
        Access { read: Some(vec![self.at("read")]), write: Some(vec![self.at("write")]), network: Network::Off }
    }
}

/// Whether this system has those that need no namespaces.
fn has_walls() -> bool {
    [Layer::Files, Layer::SystemCalls, Layer::Signals].into_iter().all(Layer::is_here)
}

#[tokio::test]
async fn files_are_read_and_written_where_that_is_allowed() {
    let place = Place::new();
    if !has_walls() {
        return;
    }
    for (script, works) in [
        ("cat read/file", true),
        ("cat write/file", true),
        ("cat closed/file", false),
        ("cat write/../closed/file", false),
        ("ls closed", false),
        ("echo x > read/file", false),
        ("echo x > write/file", true),
        ("echo x > write/other && rm write/other", true),
        ("echo x > closed/file", false),
        ("rm closed/file", false),
        ("mv closed/file write/file2", false),
        ("ln closed/file write/file2", false),
        ("ln -s ../closed/file write/link; cat write/link", false),
        ("cat /proc/self/root$PWD/closed/file", false),
        ("echo x > $TMPDIR/x && cat $TMPDIR/x", true),
        ("[ $(stat -c %a $TMPDIR) = 700 ]", true),
        ("echo x > /tmp/hostler-walls-test", false),
        ("cat /etc/shadow", false),
        ("exec 3<>/dev/null", true),
    ] {
        let done = place.shell(place.pure(), script).await;
        assert_eq!(done.succeeded(), works, "{script}: {}", done.stderr);
    }
    let reader = || Access { read: None, ..place.pure() };
    assert!(place.shell(reader(), "cat closed/file").await.succeeded());
    assert!(!place.shell(reader(), "echo x > closed/file").await.succeeded());
}

#[tokio::test]
async fn each_of_several_has_to_allow() {
    let place = Place::new();
    if !has_walls() {
        return;
    }
    let both = |names: [&str; 2]| Access { read: Some(names.map(|name| place.at(name)).to_vec()), ..Access::FULL };
    let walls = Walls { access: vec![both(["read", "closed"]), both(["read", "write"])], ..Walls::default() };
    for (name, works) in [("read", true), ("closed", false), ("write", false)] {
        let done = place.within(walls.clone(), &format!("cat {name}/file")).await;
        assert_eq!(done.succeeded(), works, "{name}: {}", done.stderr);
    }
}

#[tokio::test]
async fn attributes_change_only_where_files_may() {
    let place = Place::new();
    if !has_walls() {
        return;
    }
    let nowhere = Access { write: Some(Vec::new()), ..Access::FULL };
    let unchanged = "chmod 777 closed/file && [ $(stat -c %a closed/file) != 777 ]";
    assert!(place.shell(nowhere.clone(), unchanged).await.succeeded(), "it is ignored");
    assert!(!place.shell(nowhere, "truncate -s 0 closed/file").await.succeeded());
    assert!(place.shell(place.pure(), "chmod 600 write/file && touch write/file").await.succeeded());
    if Layer::Hiding.is_here() {
        let writes = || Access { write: Some(vec![place.at("write")]), ..Access::FULL };
        for change in
            ["chmod 777 closed/file", "touch -d 2001-01-01 closed/file", "chmod 777 read", "ln closed/file closed/link"]
        {
            let done = place.shell(writes(), change).await;
            assert!(
                !done.succeeded() && (done.stderr.contains("Read-only") || done.stderr.contains("denied")),
                "{change}: {done:?}"
            );
        }
        let inside =
            "cd write && chmod 600 file && echo x > file && mkdir d && chmod 700 d && rmdir d && chmod 700 $TMPDIR";
        let done = place.shell(writes(), inside).await;
        assert!(done.succeeded(), "{done:?}");
        let done = place.within_directory(writes(), "write", "chmod 600 file && echo x > file").await;
        assert!(done.succeeded(), "it begins in the folder that it may write to: {done:?}");
    }
}

#[tokio::test]
async fn amounts_are_limited() {
    let place = Place::new();
    let walls = |open_files, file_size| Walls { open_files, file_size, ..Walls::default() };
    let done =
        place.within(walls(Some(20), Some(4096)), "ulimit -n; head -c 9000 /dev/zero > big; stat -c %s big").await;
    assert_eq!(done.stdout.split_whitespace().collect::<Vec<_>>(), ["20", "4096"]);
}

#[tokio::test]
async fn the_private_folder_is_gone_with_its_process() {
    let place = Place::new();
    if !has_walls() {
        return;
    }
    let done = place.shell(place.pure(), "mkdir -p $TMPDIR/a/b; echo x > $TMPDIR/a/b/c; echo $TMPDIR").await;
    let folder = Path::new(done.stdout.trim());
    assert!(folder.is_absolute(), "{done:?}");
    let gone = async {
        while folder.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it is removed");
}

#[tokio::test]
async fn root_within_walls_is_no_more_than_a_user() {
    let place = Place::new();
    if !has_walls() {
        return;
    }
    let done = place.shell(place.pure(), "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status").await;
    let values: Vec<&str> = done.stdout.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(values, ["0000000000000000", "1", "2"]);
}

#[tokio::test]
async fn a_file_that_does_not_answer_keeps_only_its_own_process_waiting() {
    let place = Place::new();
    let silent = place.at("silent");
    rustix::fs::mkfifoat(rustix::fs::CWD, &silent, rustix::fs::Mode::RWXU).unwrap();
    let walls = Walls { access: vec![place.pure()], own: vec![Own::Program(silent.clone())], ..Walls::default() };
    let launch = Launch::new("/bin/true").with_walls(Some(Arc::new(walls)));
    let mut starting = Box::pin(run(&launch, Duration::from_secs(20), |_| {}));
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut starting).await.is_err(), "it waits");
    // Now it answers, with nothing.
    drop(fs::OpenOptions::new().write(true).open(&silent).unwrap());
    assert!(starting.await.unwrap().succeeded());
}

#[tokio::test]
async fn chosen_hosts_are_reached_through_the_proxy_alone() {
    if !has_walls() || !Layer::Hosts.is_here() {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"hello\n");
        }
    });
    let script = format!(
        "import os, socket\n\
         def said(to, line):\n    s = socket.create_connection(to, 5); s.sendall(line.encode()); return s.makefile().read()\n\
         def tried(to):\n    try: return said(to, '')\n    except OSError as e: return type(e).__name__\n\
         print(os.getuid(), os.getgid(), os.environ['https_proxy'], tried(('127.0.0.1', {port})))\n\
         print(sorted(i[1] for i in socket.if_nameindex()))\n\
         print(said(('127.0.0.1', 3128), 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n').split()[-1])\n\
         print(said(('127.0.0.1', 3128), 'CONNECT 127.0.0.1:1 HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n').split()[1])\n",
        port = address.port()
    );
    let access = |host: &str| Access { network: Network::Hosts(vec![host.parse().unwrap()]), ..Access::FULL };
    let walls = Walls { access: vec![access(&address.to_string()), access("127.0.0.1")], ..Walls::default() };
    let launch =
        Launch::new("/usr/bin/env").args(["python3", "-c", &script]).env("PATH", std::env::var_os("PATH").unwrap());
    let done = run(&launch.with_walls(Some(Arc::new(walls))), Duration::from_secs(20), |_| {}).await.unwrap();
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let expected = format!("{user} {group} http://127.0.0.1:3128 ConnectionRefusedError\n['lo']\nhello\n403\n");
    assert_eq!(done.stdout, expected, "{}", done.stderr);
}

#[tokio::test]
async fn what_is_hidden_is_empty_from_wherever_it_is_looked_at() {
    let place = Place::new();
    if !has_walls() || !Layer::Hiding.is_here() {
        return;
    }
    fs::write(place.at("read/.env"), "secret").unwrap();
    fs::create_dir(place.at("closed/deep")).unwrap();
    std::os::unix::fs::symlink(place.at("closed"), place.at("link")).unwrap();
    let walls = |access: Access| Walls {
        access: vec![access],
        hidden: vec![place.at("closed"), place.at("closed/deep"), place.at("read/.env"), place.at("absent")],
        ..Walls::default()
    };
    for (script, said) in [
        ("ls -A closed link; cat read/.env read/file", "closed:\n\nlink:\nread"),
        ("cd closed && ls -A; cat ../closed/file", ""),
        ("cat /proc/self/root$PWD/closed/file", ""),
        ("cat /proc/self/cwd/read/.env", ""),
        ("mv closed other; cat other/file; rmdir closed", ""),
        ("umount closed; umount read/.env; cat read/.env", ""),
        ("unshare -Urm umount closed; cat closed/file", ""),
        ("echo x > closed/new || echo no", "no\n"),
        ("mv read other; cat other/.env; mv $PWD ../renamed; cat ../renamed/read/.env", ""),
        ("chmod 640 read/.env || echo no; stat -c %a read/.env /dev/null", "no\n666\n666\n"),
        ("mv read/file read/moved && mv read/moved read/file && cat read/file", "read"),
    ] {
        for access in [Access::FULL, Access { write: Some(vec![place.at("")]), ..Access::FULL }] {
            let done = place.within(walls(access), script).await;
            assert_eq!(done.stdout, said, "{script}: {}", done.stderr);
        }
        assert_eq!(fs::read_to_string(place.at("closed/file")).unwrap(), "closed");
        assert_eq!(fs::read_to_string(place.at("read/.env")).unwrap(), "secret");
    }
    let done = place.started(walls(Access::FULL), "closed", "ls -A; cat file; pwd").await;
    assert_eq!(
        done.stdout.trim_end(),
        place.at("closed").display().to_string(),
        "it begins in a hidden folder: {done:?}"
    );
    // A mark of this process's mounts: nothing of it is seen outside.
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains("hidden"));
}

#[tokio::test]
async fn what_a_program_needs_cannot_be_hidden() {
    let place = Place::new();
    if !has_walls() || !Layer::Hiding.is_here() {
        return;
    }
    let walls = Walls {
        access: vec![place.pure()],
        own: vec![Own::Path(place.at("read/file"))],
        hidden: vec![place.at("")],
        ..Walls::default()
    };
    let launch = Launch::new("/bin/true").with_walls(Some(Arc::new(walls)));
    let error = run(&launch, Duration::from_secs(20), |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("which it needs to run"), "{error}");
}

#[tokio::test]
async fn a_place_is_hidden_by_no_link_that_can_be_changed() {
    let place = Place::new();
    if !has_walls() || !Layer::Hiding.is_here() {
        return;
    }
    std::os::unix::fs::symlink(place.at("closed"), place.at("write/link")).unwrap();
    let walls = |access| Walls { access: vec![access], hidden: vec![place.at("write/link")], ..Walls::default() };
    let reader = Access { write: Some(Vec::new()), ..Access::FULL };
    assert_eq!(place.within(walls(reader), "ls -A closed").await.stdout, "");
    let launch = Launch::new("/bin/true").with_walls(Some(Arc::new(walls(place.pure()))));
    let error = run(&launch, Duration::from_secs(20), |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("name the place itself"), "{error}");
}

#[tokio::test]
async fn what_a_process_reaches_is_recorded() {
    if super::can_record().is_err() {
        return;
    }
    let place = Place::new();
    let recorder = Arc::new(Recorder::default());
    let seen_of = async |script: &str| {
        let walls = Walls::recording(&recorder, Vec::new(), &Environment::default());
        let launch = Launch::new("/bin/sh").args(["-c", script]).within(place.at("write")).with_walls(Some(walls));
        let done = run(&launch, Duration::from_secs(20), |_| {}).await.unwrap();
        let mut record = recorder.record();
        recorder.add(|record| *record = Record::default());
        let names = |paths: BTreeSet<PathBuf>| -> Vec<String> {
            let base = place.at("");
            let names = paths.iter().filter_map(|path| path.strip_prefix(&base).ok());
            names.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(record.unread, 0);
        assert!(record.proxies.len() == 1 && done.succeeded(), "{script}: {done:?}");
        (names(std::mem::take(&mut record.reads)), names(std::mem::take(&mut record.writes)), record)
    };
    let (reads, writes, _) = seen_of("cat ../read/file; ls ../closed; cat absent; echo x >../closed/new").await;
    assert_eq!((reads, writes), (vec!["closed".to_owned(), "read/file".to_owned()], vec!["closed".to_owned()]));
    // Also what is started by what it starts, in a session of its own.
    let (reads, writes, _) = seen_of("(setsid sh -c 'cat ../read/file & wait'; mv file ../read/moved)").await;
    assert_eq!((reads, writes), (vec!["read/file".to_owned()], vec!["read".to_owned(), "write".to_owned()]));
    let (reads, writes, record) = seen_of("echo x >$TMPDIR/x; cat $TMPDIR/x; cat /dev/null /proc/self/stat").await;
    assert!(reads.is_empty() && writes.is_empty(), "{record:?}");
    assert!(record.reads.is_empty() && record.writes.is_empty() && record.addresses.is_empty(), "{record:?}");
    let (reads, ..) = seen_of("exec 3<../read/file; (cd /; cat /dev/fd/3)").await;
    assert_eq!(reads, ["read/file"]);
}
