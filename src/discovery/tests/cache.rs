//! The cache against tool files that change.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::super::cache::{Cache, line};
use super::super::reader::to_json;
use super::super::scan::scan_at;
use super::super::{Scan, Stamp, ToolFile, read_file, resolve_collisions, scan};
use super::broken;

pub(super) const TOOL: &str = "# /// script\n# dependencies = []\n# [tool.hostler]\n# timeout = \"3s\"\n# ///\n\"\"\"Greets.\"\"\"\n\
    def hello(name: str, *rest) -> str:\n    \"\"\"Say hello.\"\"\"\n    return name\n";

/// A tool folder and a cache.
pub(super) struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let ground = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(ground.tools()).unwrap();
        for (name, text) in files {
            ground.write(name, text);
        }
        ground
    }

    pub fn tools(&self) -> PathBuf {
        self.folder.path().join("tools")
    }

    pub fn cache(&self) -> Cache {
        Cache::written_by(&self.folder.path().join("cache"), "this build")
    }

    /// The file that holds what is kept.
    pub fn place(&self) -> PathBuf {
        self.cache().place(&[self.tools()])
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.tools().join(name), text).unwrap();
    }

    /// A scan long after everything was written, and whether it read anything anew. What it read is kept.
    pub fn scan(&self) -> (Scan, bool) {
        let mut scan = scan_at(&[self.tools()], Some(&self.cache()), None, SystemTime::now() + Duration::from_hours(1));
        let unsaved = scan.unsaved.take();
        let read_anew = unsaved.is_some();
        unsaved.into_iter().for_each(super::super::PendingWrite::save);
        (scan, read_anew)
    }

    /// Whether what a scan makes of the folder with the cache is what it makes without, and whether it read anything.
    pub fn is_true(&self) -> bool {
        let (found, read_anew) = self.scan();
        assert_eq!(described(&found), described(&scan(&[self.tools()])));
        read_anew
    }

    /// Keeps a file with another description than it has, to be recognised by.
    fn plant(&self, name: &str) {
        let path = self.tools().join(name);
        let planted = ToolFile { description: Some("planted".to_owned()), ..read_file(&path) };
        let line = line(&planted.path, Stamp::of(&path).unwrap(), &to_json(&planted).unwrap()).unwrap();
        self.cache().unsaved(&[self.tools()], std::iter::once(line.as_str())).save();
    }

    fn description(&self) -> Option<String> {
        self.scan().0.files[0].description.clone()
    }
}

/// Everything a scan says.
pub(super) fn described(scan: &Scan) -> String {
    format!("{:#?} {:?}", scan.files, scan.problems)
}

#[test]
fn a_file_that_looks_the_same_is_not_read_again() {
    let ground = Ground::new(&[("greet.py", TOOL), ("broken.py", "def f(:\n"), ("bad.py", "# /// script\n")]);
    assert!(ground.is_true(), "the first time everything is new");
    assert!(!ground.is_true(), "broken files are kept with their reason too");
    ground.plant("greet.py");
    fs::remove_file(ground.tools().join("broken.py")).unwrap();
    fs::remove_file(ground.tools().join("bad.py")).unwrap();
    assert_eq!(ground.description().as_deref(), Some("planted"));
}

#[test]
fn an_edit_of_the_same_size_with_its_time_set_back_is_seen() {
    let ground = Ground::new(&[("greet.py", TOOL)]);
    let path = ground.tools().join("greet.py");
    ground.plant("greet.py");
    ground.write("greet.py", &TOOL.replace("Greets.", "Greets!!"));
    assert_eq!(ground.description().as_deref(), Some("Greets!!"));
    ground.plant("greet.py");
    let times = FileTimes::new().set_modified(fs::metadata(&path).unwrap().modified().unwrap());
    // Until the clock of the file system has ticked, nobody can see an edit; that case is the next test.
    let before = Stamp::of(&path);
    for _ in 0..100 {
        if Stamp::of(&path) != before {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        ground.write("greet.py", &TOOL.replace("Greets.", "Greets??"));
        File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    }
    assert_eq!(ground.description().as_deref(), Some("Greets??"));
}

#[test]
fn recently_written_files_are_not_cached() {
    let ground = Ground::new(&[("greet.py", TOOL)]);
    let found = scan_at(&[ground.tools()], Some(&ground.cache()), None, SystemTime::now());
    assert_eq!(found.files.len(), 1);
    assert!(found.unsaved.is_none(), "an edit in the same tick would look the same");
    let changed = fs::metadata(ground.tools().join("greet.py")).unwrap().modified().unwrap();
    let is_kept = |seconds: u64| {
        let now = changed + Duration::from_secs(seconds);
        scan_at(&[ground.tools()], Some(&ground.cache()), None, now).unsaved.is_some()
    };
    assert!(!is_kept(1) && is_kept(4));
}

#[test]
fn renamed_and_removed_files_are_updated() {
    let ground = Ground::new(&[("greet.py", TOOL), ("other.py", TOOL)]);
    assert!(ground.is_true());
    fs::rename(ground.tools().join("greet.py"), ground.tools().join("salute.py")).unwrap();
    assert!(ground.is_true());
    assert_eq!(ground.scan().0.files[1].pack, "salute");
    fs::remove_file(ground.tools().join("salute.py")).unwrap();
    fs::rename(ground.tools().join("other.py"), ground.tools().join("salute.py")).unwrap();
    assert!(ground.is_true());
    assert!(!ground.is_true());
}

#[test]
fn a_helper_that_changes_changes_what_it_helps() {
    let ground = Ground::new(&[
        ("greet.py", &format!("import words\nimport _more\n{TOOL}")),
        ("words.py", "HELLO = 'hello'\n"),
        ("_more.py", "import _last\n"),
        ("_last.py", ""),
    ]);
    assert!(ground.is_true());
    assert!(!ground.is_true(), "those beside the tool files are kept too");
    assert_eq!(ground.scan().0.files[0].helpers.len(), 3);
    ground.write("_more.py", "import json\n");
    assert!(ground.is_true());
    assert_eq!(ground.scan().0.files[0].helpers.len(), 2);
    ground.write("words.py", TOOL);
    assert!(ground.is_true());
    assert_eq!(ground.scan().0.files.len(), 2, "it is a tool file now");
    fs::remove_file(ground.tools().join("_more.py")).unwrap();
    assert!(!ground.is_true(), "nothing needs to be read to see that a file is gone");
}

#[test]
fn conflicts_are_resolved_at_every_reading() {
    let pack = format!("{TOOL}pack = 'greet'\n");
    let ground = Ground::new(&[("a.py", &pack), ("b.py", &pack)]);
    let reason = || {
        let mut files = ground.scan().0.files;
        resolve_collisions(&mut files);
        files.last().map(broken)
    };
    assert!(reason().unwrap().contains("already taken"));
    assert!(reason().unwrap().contains("already taken"));
    fs::remove_file(ground.tools().join("a.py")).unwrap();
    assert_eq!(reason().as_deref(), Some("ready"));
}

#[test]
fn paths_that_do_not_fit_on_a_line_are_not_cached() {
    let ground = Ground::new(&[("greet.py", TOOL), ("two\nlines.py", TOOL), ("ta\tb.py", TOOL)]);
    assert!(ground.is_true());
    assert!(!ground.is_true(), "it is nothing new to keep");
    assert_eq!(fs::read_to_string(ground.place()).unwrap().lines().count(), 2);
}

#[test]
fn a_file_that_could_not_be_read_is_tried_again() {
    let ground = Ground::new(&[]);
    std::os::unix::fs::symlink("/no/such/file", ground.tools().join("gone.py")).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, ground.tools().join("pipe.py"), mode).unwrap();
    assert!(!ground.is_true());
    assert!(!Path::new(&ground.place()).exists());
}

#[test]
fn schemas_of_neighbours_are_kept_until_one_of_them_changes() {
    let ground = Ground::new(&[
        (
            "tools.py",
            "from models import Item, SIZE\nfrom far import Far\ndef f(a: Item, b: Far, size: int = SIZE): ...\n",
        ),
        (
            "models.py",
            "from _parts import Part\nfrom dataclasses import dataclass\nSIZE = 3\n@dataclass\nclass Item:\n    part: Part\n",
        ),
        ("_parts.py", "from enum import Enum\nclass Part(Enum):\n    A = 'a'\n"),
    ]);
    let schema = || ground.scan().0.files[0].functions[0].input_schema.raw().get().to_owned();
    assert!(ground.is_true(), "the first time everything is new");
    assert!(!ground.is_true(), "what was read with neighbours is kept, too");
    assert!(schema().contains(r#""enum":["a"]"#));
    // What is kept is what is used.
    let text = fs::read_to_string(ground.place()).unwrap();
    let (kept, other): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains("tools.py/linked\t"));
    let [kept] = &kept[..] else { panic!("{text}") };
    let planted = kept.split_once('\t').unwrap().1.replace(r#"["a"]"#, r#"["planted"]"#);
    let planted = format!("{}\t{planted}", super::super::cache::check(&planted));
    let lines: Vec<&str> = other.into_iter().chain([planted.as_str()]).collect();
    fs::write(ground.place(), lines.join("\n") + "\n").unwrap();
    assert!(schema().contains(r#""enum":["planted"]"#));
    ground.write("_parts.py", "from enum import Enum\nclass Part(Enum):\n    B = 'bb'\n");
    assert!(ground.is_true());
    assert!(schema().contains(r#""enum":["bb"]"#));
    assert!(!ground.is_true());
    fs::remove_file(ground.tools().join("models.py")).unwrap();
    assert!(!ground.is_true(), "nothing is new");
    assert!(!schema().contains("bb"));
}
