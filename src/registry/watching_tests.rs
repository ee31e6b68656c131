//! The watching thread against every way in which editors and people change files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::watching::{StartWatcher, Watching, begin, is_change};
use super::{Catalogue, Registry};
use crate::config::{Config, ConfigOptions};

/// Until something that must happen counts as never happening.
const PATIENCE: Duration = Duration::from_secs(20);

struct Kept {
    registry: Arc<Registry>,
    catalogues: Receiver<Vec<String>>,
    _watching: Watching,
}

impl Kept {
    fn by(means: StartWatcher, folder: &Path) -> Self {
        let wanted = ConfigOptions { tools: vec![folder.to_owned()], ..ConfigOptions::default() };
        let registry = Arc::new(Registry::open(Arc::new(Config::load(&wanted, Path::new("/")).unwrap())));
        let (sender, catalogues) = channel();
        let tell = move |catalogue: &Catalogue| {
            let _ = sender.send(names(catalogue));
        };
        let watching = Watching::by(means, &registry, Box::new(tell));
        let kept = Self { registry, catalogues, _watching: watching };
        kept.catalogues.recv_timeout(PATIENCE).unwrap();
        kept
    }

    /// Waits until the tools are these, and whatever comes next is seen by watching alone.
    fn until(&self, wanted: &[&str]) {
        let mut seen = Vec::new();
        while seen != wanted {
            let next = self.catalogues.recv_timeout(PATIENCE);
            seen = next.unwrap_or_else(|_| panic!("never seen: {wanted:?}; there is {seen:?}"));
        }
    }
}

fn names(catalogue: &Catalogue) -> Vec<String> {
    catalogue.ready().map(|tool| tool.name.clone()).collect()
}

fn tool(name: &str) -> String {
    format!("def {name}(): ...\n")
}

fn both(test: impl Fn(StartWatcher)) {
    test(begin);
    test(|_, _| Err(notify::Error::generic("the limit is reached")));
}

#[test]
fn every_way_of_saving_a_file_is_seen() {
    both(|means| {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("tools");
        fs::create_dir(&folder).unwrap();
        let (file, aside) = (folder.join("greet.py"), folder.join(".greet.py.swp"));
        fs::write(&file, tool("first")).unwrap();
        let kept = Kept::by(means, &folder);
        fs::write(&file, tool("in_place")).unwrap();
        kept.until(&["greet.in_place"]);
        fs::write(&aside, tool("renamed_over")).unwrap();
        fs::rename(&aside, &file).unwrap();
        kept.until(&["greet.renamed_over"]);
        fs::remove_file(&file).unwrap();
        fs::write(&file, tool("made_anew")).unwrap();
        kept.until(&["greet.made_anew"]);
        fs::rename(&file, folder.join("salute.py")).unwrap();
        kept.until(&["salute.made_anew"]);
        fs::remove_file(folder.join("salute.py")).unwrap();
        kept.until(&[]);
    });
}

#[test]
fn links_may_change_their_target() {
    both(|means| {
        let home = tempfile::tempdir().unwrap();
        let (folder, first, second) = (home.path().join("tools"), home.path().join("v1"), home.path().join("v2"));
        for (place, name) in [(&first, "one"), (&second, "two")] {
            fs::create_dir(place).unwrap();
            fs::write(place.join("greet.py"), tool(name)).unwrap();
        }
        fs::create_dir(&folder).unwrap();
        symlink(first.join("greet.py"), folder.join("greet.py")).unwrap();
        let kept = Kept::by(means, &folder);
        fs::write(first.join("greet.py"), tool("where_it_leads")).unwrap();
        kept.until(&["greet.where_it_leads"]);
        symlink(second.join("greet.py"), folder.join("fresh")).unwrap();
        fs::rename(folder.join("fresh"), folder.join("greet.py")).unwrap();
        kept.until(&["greet.two"]);
        fs::write(second.join("greet.py"), tool("where_it_leads_now")).unwrap();
        kept.until(&["greet.where_it_leads_now"]);
    });
}

#[test]
fn a_linked_folder_may_change_its_target() {
    both(|means| {
        let home = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            fs::create_dir(home.path().join(name)).unwrap();
            fs::write(home.path().join(name).join("greet.py"), tool(name)).unwrap();
        }
        let folder = home.path().join("tools");
        symlink(home.path().join("one"), &folder).unwrap();
        let kept = Kept::by(means, &folder);
        symlink(home.path().join("two"), home.path().join("fresh")).unwrap();
        fs::rename(home.path().join("fresh"), &folder).unwrap();
        kept.until(&["greet.two"]);
        fs::write(home.path().join("two/greet.py"), tool("three")).unwrap();
        kept.until(&["greet.three"]);
    });
}

#[test]
fn each_link_on_the_way_may_change_its_target() {
    both(|means| {
        let home = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            fs::create_dir_all(home.path().join(name).join("tools")).unwrap();
            fs::write(home.path().join(name).join("tools/greet.py"), tool(name)).unwrap();
        }
        // The layout of a mounted ConfigMap: what is swapped is the link in the middle.
        fs::create_dir(home.path().join("links")).unwrap();
        let (folder, data) = (home.path().join("tools"), home.path().join("links/data"));
        symlink("../one", &data).unwrap();
        symlink("links/data/tools", &folder).unwrap();
        let kept = Kept::by(means, &folder);
        let fresh = home.path().join("links/fresh");
        symlink("./../two", &fresh).unwrap();
        fs::rename(&fresh, &data).unwrap();
        kept.until(&["greet.two"]);
        fs::write(home.path().join("two/tools/greet.py"), tool("three")).unwrap();
        kept.until(&["greet.three"]);
    });
}

#[test]
fn folders_may_be_removed_and_created_again() {
    both(|means| {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("not/yet/tools");
        let kept = Kept::by(means, &folder);
        for name in ["once", "again"] {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("greet.py"), tool(name)).unwrap();
            kept.until(&[&format!("greet.{name}")]);
            fs::create_dir(folder.join("own")).unwrap();
            kept.until(&[&format!("greet.{name}")]);
            fs::write(folder.join("own/own.py"), tool(name)).unwrap();
            kept.until(&[&format!("greet.{name}"), &format!("own.{name}")]);
            fs::write(folder.join("own/own.py"), tool("later")).unwrap();
            kept.until(&[&format!("greet.{name}"), "own.later"]);
            fs::remove_dir_all(home.path().join("not")).unwrap();
            kept.until(&[]);
        }
    });
}

#[test]
fn helpers_are_watched_in_any_folder() {
    both(|means| {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("own/words");
        fs::create_dir_all(&inner).unwrap();
        fs::write(folder.path().join("own/own.py"), format!("from words.deep import X\n{}", tool("f"))).unwrap();
        fs::write(inner.join("deep.py"), "X = 1\n").unwrap();
        let kept = Kept::by(means, folder.path());
        let before = kept.registry.catalogue().files[0].version;
        fs::write(inner.join("deep.py"), "X = 2\n").unwrap();
        while kept.registry.catalogue().files[0].version == before {
            kept.catalogues.recv_timeout(PATIENCE).unwrap();
        }
    });
}

#[test]
fn files_are_read_after_a_pause_and_during_long_changes() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::by(begin, folder.path());
    for count in 0..100 {
        fs::write(folder.path().join(format!("tool_{count}.py")), tool("f")).unwrap();
        // The pace of a slow checkout, without a pause.
        std::thread::sleep(Duration::from_millis(12));
    }
    let mut seen = Vec::new();
    while seen.last() != Some(&100) {
        seen.push(kept.catalogues.recv_timeout(PATIENCE).unwrap().len());
    }
    assert!((2..30).contains(&seen.len()), "{seen:?}");
}

#[test]
fn reading_a_file_is_not_a_change() {
    use notify::EventKind::{Access, Any, Modify};
    use notify::event::{AccessKind, AccessMode, ModifyKind};
    let opened = [AccessKind::Open(AccessMode::Any), AccessKind::Read, AccessKind::Close(AccessMode::Read)];
    assert!(!opened.into_iter().any(|kind| is_change(Access(kind))), "hostler reads, and would never be done");
    assert!(
        is_change(Access(AccessKind::Close(AccessMode::Write))) && is_change(Modify(ModifyKind::Any)) && is_change(Any)
    );
}
