//! The catalogue against folders that change.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::RoleKind;
use super::last_good::LastGood;
use super::{NotFound, Registry};
use crate::config::origin::Diagnosis;
use crate::config::{Config, ConfigOptions};
use crate::discovery::{Answer, Cache};

const TOOL: &str = "def hello(name: str) -> str:\n    \"\"\"Say hello.\"\"\"\n    return name\n";

fn open(folder: &Path) -> Registry {
    let wanted = ConfigOptions { tools: vec![folder.to_owned()], ..ConfigOptions::default() };
    Registry::open(Arc::new(Config::load(&wanted, folder).unwrap()))
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn both_names_find_a_tool_and_others_are_answered_with_similar_ones() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    assert_eq!(registry.find("greet.hello").unwrap().name, "greet.hello");
    assert_eq!(registry.find("greet_hello").unwrap().name, "greet.hello");
    assert_eq!(
        registry.find("greet.helo").unwrap_err(),
        NotFound::Unknown { near: vec!["greet.hello".to_owned()], advice: "did you mean greet.hello?".to_owned() }
    );
    assert_eq!(
        registry.find("hello").unwrap_err(),
        NotFound::Unknown { near: vec!["greet.hello".to_owned()], advice: "did you mean greet.hello?".to_owned() }
    );
}

#[test]
fn the_nearest_that_says_what_a_file_needs_counts() {
    let folder = tempfile::tempdir().unwrap();
    let tool = format!("import six\n{TOOL}");
    write(folder.path(), "plain.py", TOOL);
    write(folder.path(), "greet.py", &tool);
    write(folder.path(), "own.py", &format!("# /// script\n# dependencies = [\"of-header\"]\n# ///\n{tool}"));
    write(folder.path(), "helped.py", &format!("import _helper\n{TOOL}"));
    write(folder.path(), "_helper.py", "import six\n");
    write(folder.path(), "named.py", &tool);
    write(folder.path(), "hostler.toml", "[tool.named]\ndependencies = [\"of-table\"]\n");
    write(folder.path(), "requirements.txt", "of-folder\n");
    let needs = |registry: &Registry, pack: &str| {
        let catalogue = registry.catalogue();
        let entry = catalogue.files.iter().find(|entry| entry.file.pack == pack).unwrap();
        entry.file.header.as_ref().map(|header| header.dependencies.join(" "))
    };
    let all = |registry: &Registry| {
        ["plain", "greet", "own", "helped", "named"].map(|pack| needs(registry, pack).unwrap_or_default())
    };
    let registry = open(folder.path());
    assert_eq!(all(&registry), ["", "of-folder", "of-header", "of-folder", "of-table"]);
    write(folder.path(), "requirements.txt", "of-folder\nand-more\n");
    assert!(registry.refresh_if_changed(), "its change is one of the file");
    assert_eq!(needs(&registry, "greet").unwrap(), "of-folder and-more");
    std::fs::remove_file(folder.path().join("requirements.txt")).unwrap();
    write(folder.path(), "pyproject.toml", "[tool.ruff]\n");
    assert!(registry.refresh_if_changed());
    assert_eq!(all(&registry)[1], "", "it says nothing yet, and is followed");
    write(
        folder.path(),
        "pyproject.toml",
        "[project]\nrequires-python = \">=3.10\"\ndependencies = [\"of-project\"]\n",
    );
    assert!(registry.refresh_if_changed());
    assert_eq!(all(&registry), ["", "of-project", "of-header", "of-project", "of-table"]);
    write(
        folder.path(),
        "hostler.toml",
        "[tool]\ndependencies = [\"of-every\"]\n[tool.named]\ndependencies = [\"of-table\"]\n",
    );
    let registry = open(folder.path());
    assert_eq!(all(&registry), ["", "of-every", "of-header", "of-every", "of-table"]);
    let catalogue = registry.catalogue();
    let reach = |pack: &str| catalogue.files.iter().find(|entry| entry.file.pack == pack).unwrap().settings.reach();
    assert!(reach("greet").contains("of-every") && !reach("plain").contains("of-every"), "an approval is bound to it");
}

#[test]
fn a_file_name_is_answered_with_the_names_of_its_tools() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    write(folder.path(), "client.py", "class Client:\n    def hello(self): ...\n");
    let registry = open(folder.path());
    let advice_for = |name: &str| match registry.find(name).unwrap_err() {
        NotFound::Unknown { advice, .. } => advice,
        NotFound::Broken(..) => panic!("nothing is broken"),
    };
    for name in ["client", "client.py"] {
        assert!(advice_for(name).ends_with("shows every tool"), "{name}");
    }
    for name in ["greet", "greet.py", "tools/greet.py"] {
        assert_eq!(advice_for(name), "did you mean greet.hello?", "{name}");
    }
    assert_eq!(advice_for("client_well.hello"), "did you mean greet.hello?", "another file may be meant");
}

#[test]
fn changed_new_and_removed_files_are_seen_at_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    let old = registry.find("greet.hello").unwrap().entry.version;
    write(folder.path(), "greet.py", &TOOL.replace("name\n", "name + '!'\n"));
    let new = registry.find("greet.hello").unwrap().entry.version;
    assert_ne!(old, new);
    write(folder.path(), "later.py", TOOL);
    assert!(registry.find("later.hello").is_ok());
    std::fs::remove_file(folder.path().join("greet.py")).unwrap();
    assert!(registry.find("greet.hello").is_err());
}

#[test]
fn a_neighbour_that_is_imported_is_part_of_the_version() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", &format!("import words\n{TOOL}"));
    write(folder.path(), "words.py", "HELLO = 'hello'\n");
    let registry = open(folder.path());
    assert_eq!(registry.catalogue().files.len(), 1, "a helper is no tool file");
    let old = registry.find("greet.hello").unwrap().entry.version;
    write(folder.path(), "words.py", "HELLO = 'good day'\n");
    assert_ne!(registry.find("greet.hello").unwrap().entry.version, old);
}

#[test]
fn a_broken_file_says_why_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", "# /// script\n# dependencies = []\ndef hello(): ...\n");
    let registry = open(folder.path());
    let reason = match registry.find("greet.hello") {
        Ok(tool) => tool.entry.broken().unwrap(),
        Err(NotFound::Broken(_, reason)) => reason,
        Err(NotFound::Unknown { .. }) => panic!("the pack is there"),
    };
    assert!(reason.starts_with("line 3: "), "{reason}");
    write(folder.path(), "greet.py", TOOL);
    assert!(registry.find("greet.hello").unwrap().entry.broken().is_none());
}

#[test]
fn without_changes_nothing_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    let before = registry.catalogue();
    assert!(!registry.refresh_if_changed());
    registry.find("greet.hello").unwrap();
    assert!(Arc::ptr_eq(&before, &registry.catalogue()));
}

#[test]
fn a_function_of_a_broken_file_is_reported_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", "# /// script\n# dependencies = []\n# ///\ndef kept(): ...\ndef hello(:\n");
    write(folder.path(), "greet_well.py", TOOL);
    let registry = open(folder.path());
    for name in ["greet.lost", "greet_lost"] {
        assert!(matches!(registry.find(name).unwrap_err(), NotFound::Broken(..)), "{name}");
    }
    assert!(matches!(registry.find("greet_well_lost").unwrap_err(), NotFound::Unknown { .. }), "that pack is whole");
}

#[test]
fn a_name_belongs_to_the_longer_of_two_matching_packs() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    write(folder.path(), "greet_well.py", "# /// script\n# dependencies = []\n# ///\ndef kept(): ...\ndef hello(:\n");
    let registry = open(folder.path());
    assert!(matches!(registry.find("greet_well_lost").unwrap_err(), NotFound::Broken(..)));
    assert!(matches!(registry.find("greet_lost").unwrap_err(), NotFound::Unknown { .. }));
}

#[test]
fn a_ready_file_wins_over_a_broken_one_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let header =
        |pack: &str| format!("# /// script\n# dependencies = []\n# [tool.hostler]\n# pack = \"{pack}\"\n# ///\n");
    write(folder.path(), "a.py", &(header("greet_well") + TOOL));
    // The later file is the broken one, and by the names of its tools it comes first.
    write(folder.path(), "b.py", &(header("greet") + "def well_hello(): ...\n"));
    let registry = open(folder.path());
    assert_eq!(registry.find("greet_well_hello").unwrap().name, "greet_well.hello");
    let ready: Vec<String> = registry.catalogue().ready().map(|tool| tool.name.clone()).collect();
    assert_eq!(ready, ["greet_well.hello"], "a broken file has no tools that could be called");
}

#[test]
fn a_new_tool_in_a_subfolder_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("greet");
    std::fs::create_dir(&own).unwrap();
    let registry = open(folder.path());
    assert!(registry.find("greet.hello").is_err());
    write(&own, "greet.py", TOOL);
    assert!(registry.find("greet.hello").is_ok());
}

#[test]
fn similar_names_are_ordered_and_at_most_five() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", &format!("{TOOL}{}", "def a(): ...\ndef b(): ...\ndef c(): ...\ndef d(): ...\n"));
    write(folder.path(), "other.py", "def help(): ...\n");
    let registry = open(folder.path());
    let NotFound::Unknown { near, .. } = registry.find("greet.help").unwrap_err() else { panic!("nothing is broken") };
    assert_eq!(near, ["greet.hello", "other.help", "greet.a", "greet.b", "greet.c"]);
}

#[test]
fn a_model_reads_the_whole_description() {
    let folder = tempfile::tempdir().unwrap();
    let long = TOOL.replace("Say hello.", "Say hello.\n\n    To anybody.\n    ");
    write(folder.path(), "greet.py", &long);
    let registry = open(folder.path());
    let tool = registry.find("greet.hello").unwrap();
    assert_eq!(tool.function().summary.as_deref(), Some("Say hello."));
    assert_eq!(tool.description(), Some("Say hello.\n\nTo anybody."));
}

#[test]
fn a_second_start_reads_only_what_changed() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(folder.path(), "greet.py", TOOL);
    write(folder.path(), "later.py", TOOL);
    let wanted = ConfigOptions { tools: vec![folder.path().to_owned()], ..ConfigOptions::default() };
    let config = Arc::new(Config::load(&wanted, folder.path()).unwrap());
    let start = || Registry::with(Arc::clone(&config), Cache::below(cache.path()), Vec::new());
    let kept = || std::fs::read_dir(cache.path().join("catalogue")).is_ok_and(|mut files| files.next().is_some());
    drop(start());
    assert!(!kept(), "what was only just written is not kept");
    // Files must look old before they are kept, and no one can make them.
    std::thread::sleep(std::time::Duration::from_millis(3100));
    let first = start();
    let old = first.find("greet.hello").unwrap().entry.version;
    drop(first);
    assert!(kept());
    let second = start();
    assert_eq!(second.find("greet.hello").unwrap().entry.version, old);
    write(folder.path(), "greet.py", &TOOL.replace("hello", "salut"));
    assert_eq!(second.find("greet.salut").unwrap().name, "greet.salut");
    assert_eq!(start().find("greet.salut").unwrap().name, "greet.salut");
    assert!(start().find("greet.hello").is_err() && start().find("later.hello").is_ok());
}

#[test]
fn only_changes_of_the_list_are_announced() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    let mut heard = registry.announcements(RoleKind::Tool);
    let mut announces = |name: &str, text: &str| {
        write(folder.path(), name, text);
        assert!(registry.refresh_if_changed(), "{text}");
        let is_heard = heard.has_changed().unwrap();
        heard.mark_unchanged();
        is_heard
    };
    let mut text = TOOL.replace("return name", "return name * 2");
    assert!(!announces("greet.py", &text), "a body is nobody's to see");
    text.insert_str(0, "\n\n_LATER = 1\n");
    assert!(!announces("greet.py", &text), "nor is the line a function stands on");
    for (old, new) in [("Say hello.", "Say it."), ("name: str", "name: int"), ("-> str", "-> int"), ("hello", "salut")]
    {
        text = text.replace(old, new);
        assert!(announces("greet.py", &text), "{new}");
    }
    for effects in ["pure", "idempotent"] {
        let header = format!("# /// script\n# [tool.hostler]\n# effects = \"{effects}\"\n# ///\n");
        assert!(announces("greet.py", &(header + &text)), "{effects}");
    }
    assert!(announces("later.py", TOOL), "another file");
    assert!(!announces("broken.py", "def f(:\n"), "a file that never worked lists nothing");
    assert!(!registry.refresh_if_changed() && !heard.has_changed().unwrap());
}

#[test]
fn of_two_concurrent_readings_the_later_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let text = |count: usize| TOOL.replace("name: str", &format!("name: int = {count}"));
    write(folder.path(), "greet.py", &text(0));
    // So that reading takes long enough for another to overtake it.
    (0..60).for_each(|count| write(folder.path(), &format!("other_{count}.py"), TOOL));
    let registry = open(folder.path());
    let shown = || {
        let schema = registry.catalogue().tools[0].input_schema().clone();
        schema["properties"]["name"]["default"].as_u64().unwrap()
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    registry.refresh_if_changed();
                }
            });
        }
        let watching = scope.spawn(|| {
            let mut seen = 0;
            while !over.load(Relaxed) {
                let now = shown();
                assert!(now >= seen, "an older reading replaced a later one: {now} after {seen}");
                seen = now;
            }
        });
        for count in 1..=100 {
            write(folder.path(), ".fresh", &text(count));
            std::fs::rename(folder.path().join(".fresh"), folder.path().join("greet.py")).unwrap();
            // The pace of edits; whoever reads meanwhile has read too early.
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        over.store(true, Relaxed);
        watching.join().unwrap();
    });
    registry.refresh_if_changed();
    assert_eq!(shown(), 100);
}

#[test]
fn who_waits_for_a_configuration_sees_its_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    let before = registry.catalogue().tools.len();
    write(folder.path(), "other.py", TOOL);
    std::thread::scope(|scope| {
        let (said, heard) = std::sync::mpsc::channel();
        let registry = &registry;
        registry.reconfigure(registry.config(), Vec::new(), |put_in_force| {
            scope.spawn(move || {
                registry.settled();
                said.send(registry.catalogue().tools.len()).unwrap();
            });
            assert!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "it is not in force yet");
            put_in_force();
        });
        assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok(2 * before));
    });
}

#[test]
fn a_version_that_did_not_start_is_tried_again_with_growing_pauses() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", TOOL);
    let registry = open(folder.path());
    let old = registry.find("greet.hello").unwrap();
    write(folder.path(), "greet.py", &format!("{TOOL}\n1 / 0\n"));
    let new = registry.find("greet.hello").unwrap();
    let (mut known, now) = (LastGood::default(), Instant::now());
    let after = |seconds| now + Duration::from_secs(seconds);
    assert!(!known.failed(&new.entry, "why", now), "nothing can stand in for it");
    known.answered(&old.entry);
    let stale = |known: &LastGood, seconds| {
        let mut files = vec![new.entry.file.clone()];
        let stand_ins = known.stand_in(&mut files, &registry.catalogue(), after(seconds));
        assert_eq!(files[0].fingerprint == old.entry.file.fingerprint, stand_ins.len() == 1);
        stand_ins.into_values().next().map(|stand_in| (stand_in.version == old.entry.version, stand_in.stale.reason))
    };
    assert_eq!(stale(&known, 0), None, "it was not tried yet");
    assert!(known.failed(&new.entry, "why", now));
    assert!(!known.failed(&new.entry, "another call of the same start", after(1)));
    assert_eq!(stale(&known, 14), Some((true, "why".to_owned())));
    assert_eq!(stale(&known, 15), None, "what it lacked may have come");
    assert!(known.failed(&new.entry, "still", after(15)));
    assert_eq!(stale(&known, 44), Some((true, "still".to_owned())));
    assert_eq!(stale(&known, 45), None);
    known.answered(&new.entry);
    assert!(!known.failed(&new.entry, "why", after(50)), "it is the last good one itself");
    assert_eq!(stale(&known, 20), None);
    write(folder.path(), "greet.py", "def hello(:\n");
    let mut files = crate::discovery::scan(&[folder.path().to_owned()]).files;
    let stand_ins = known.stand_in(&mut files, &registry.catalogue(), after(20));
    assert_eq!(stand_ins[&files[0].source()].version, new.entry.version, "it has answered since it failed");
}

#[test]
fn a_broken_edit_leaves_the_last_good_version_in_force() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "greet.py", &format!("import words\n{TOOL}"));
    write(folder.path(), "words.py", "X = 1\n");
    let registry = open(folder.path());
    let heard = registry.announcements(RoleKind::Tool);
    let good = registry.find("greet.hello").unwrap();
    for broken in ["def hello(:\n", "# /// script\n", "def hello(name: \n    return\n"] {
        write(folder.path(), "greet.py", broken);
        let tool = registry.find("greet.hello").unwrap();
        assert_eq!(tool.entry.version, good.entry.version);
        assert!(tool.entry.stale.as_ref().unwrap().reason.starts_with("line "), "{:?}", tool.entry.stale);
        assert_eq!((tool.entry.broken(), tool.entry.status()), (None, "stale"));
        assert!(tool.entry.trouble().is_some());
        assert!(matches!(registry.find("greet.lost").unwrap_err(), NotFound::Broken(..)));
    }
    assert!(!heard.has_changed().unwrap(), "what a list shows is what it was");
    write(folder.path(), "greet.py", &TOOL.replace("hello", "salut"));
    assert!(registry.find("greet.salut").unwrap().entry.stale.is_none());
    assert!(registry.find("greet.hello").is_err() && heard.has_changed().unwrap());
    std::fs::remove_file(folder.path().join("greet.py")).unwrap();
    assert!(registry.find("greet.salut").is_err(), "what was removed is not kept");
}

#[test]
fn the_address_of_a_resource_is_parsed_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = "import hostler\n@hostler.resource('a://{id}')\ndef r(id: str): ...\n";
    write(folder.path(), "a.py", text);
    let catalogue = open(folder.path()).catalogue();
    let resource = catalogue.ready_resources().next().unwrap();
    assert!(std::ptr::eq(resource.template().unwrap(), resource.template().unwrap()));
}

#[cfg(unix)]
#[test]
fn answers_that_were_given_within_another_time_limit_are_asked_for_again() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "slow", "#!/bin/sh\n# --schema\n");
    std::fs::set_permissions(folder.path().join("slow"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let registry = open(folder.path());
    let before = registry.config();
    let late = || {
        let late = Answer::Late(Diagnosis::new("`--schema` did not end within 5s", "raise `schema_timeout`"));
        registry.unasked().into_iter().map(|one| (one.path, one.stamp, late.clone())).collect::<Vec<_>>()
    };
    let (asked, limit) = (late(), before.executables.schema_timeout);
    assert_eq!(asked.len(), 1);

    let mut longer = Config::clone(&before);
    longer.executables.schema_timeout = limit * 4;
    registry.reconfigure(Arc::new(longer), Vec::new(), |put_in_force| put_in_force());
    registry.take_answers(asked, limit);
    assert_eq!(registry.unasked().len(), 1, "an answer of the earlier limit was taken");
    registry.take_answers(late(), limit * 4);
    assert_eq!((registry.unasked().len(), registry.late().len()), (0, 1));
    let answers = registry.late().into_iter().map(|one| (one.path, one.stamp, Answer::Said(b"{}".to_vec()))).collect();
    registry.take_answers(answers, limit * 4);
    assert_eq!(registry.late().len(), 0);
}
