//! Damaged cache files, and whether the cache loses anything.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::super::cache::{Cache, check};
use super::super::reader::{from_json, to_json};
use super::super::{ToolFile, read_bytes, read_file};
use super::cache::{Ground, TOOL};

fn survives(file: &ToolFile) {
    let alone = ToolFile { helpers: Vec::new(), ..file.clone() };
    let json = to_json(&alone).expect("a file that was read can be stored");
    assert!(!json.contains('\n'));
    let again = from_json(&file.path, &json).expect("what was stored can be read");
    assert_eq!(format!("{again:#?}"), format!("{alone:#?}"));
}

#[test]
fn every_tool_file_here_survives_being_stored() {
    let mut count = 0;
    for folder in ["examples/tools", "tests/tools", "tests/oracle", "worker-shims/python/hostler_worker"] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "py") {
                survives(&read_file(&path));
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_tool_file_survives_being_stored(
        head in "(# /// script\n(# (requires-python = \">=3.(9|11)\"|dependencies = \\[(\"httpx\"|\"a @ ./b\"|1)?\\]|\\[tool.(hostler|uv|other)\\]|timeout = \"[0-9]s\"|pack = \"[a-z-]{1,3}\"|effects = \"pure\"|secrets = \\[\"KEY\"\\]|x = [0-9]|\\[)\n){0,6}# ///\n)?",
        body in "('''[a-zé\u{2028}\"\\\\\n\t]{0,9}'''\n)?(pack = ('[a-z-]{0,3}'|x)\n)?(__all__ = \\[('f'|'g'|x)\\]\n)?(import (json|httpx|_near)\n)?",
        functions in "((async )?def (f|g|_h|list)\\((x(: (int|str|list\\[str\\]|Literal\\['é', 1\\]))?( ?= ?(1|'\"'|None|1e300))?)?(, \\*(rest|, y))?\\)( -> (int|str|Unknown))?:\n    ('''[A-Za-z\\\\é :\n]{0,20}'''|pass)\n|def \\(:\n){0,3}",
    ) {
        let text = format!("{head}{body}{functions}");
        survives(&read_bytes(Path::new("tools/brave.py"), text.as_bytes()));
    }

    #[test]
    fn arbitrary_text_is_not_a_cache(text in "(hostler catalogue [0-9] by this build|\t|\n|\\{|\\}|[0-9a-f]{16}|\\[|,|é|greet.py){0,20}") {
        let ground = Ground::new(&[("greet.py", TOOL)]);
        fs::create_dir_all(ground.place().parent().unwrap()).unwrap();
        fs::write(ground.place(), &text).unwrap();
        assert!(ground.is_true(), "{text}");
    }
}

#[test]
fn a_damaged_cache_is_ignored() {
    let ground = Ground::new(&[("a.py", TOOL), ("b.py", "import _c\ndef f(x: int): ...\n"), ("_c.py", "")]);
    assert!(ground.is_true());
    let whole = fs::read(ground.place()).unwrap();
    for at in (0..whole.len()).step_by(7) {
        fs::write(ground.place(), &whole[..at]).unwrap();
        assert!(ground.is_true(), "cut at {at}");
        assert_eq!(fs::read(ground.place()).unwrap(), whole, "it is written anew");
    }
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(ground.place(), &damaged).unwrap();
        assert!(ground.is_true(), "damaged at {at}");
        assert_eq!(fs::read(ground.place()).unwrap(), whole, "it is written anew");
    }
}

#[test]
fn the_cache_of_another_build_is_ignored() {
    let ground = Ground::new(&[("a.py", TOOL)]);
    assert!(ground.is_true());
    let text = fs::read_to_string(ground.place()).unwrap();
    let first = text.lines().next().unwrap();
    for other in [first.replace("this build", "that build"), first.replace("catalogue ", "catalogue 9"), String::new()]
    {
        fs::write(ground.place(), text.replace(first, &other)).unwrap();
        assert!(ground.is_true(), "{other}");
        assert!(!ground.is_true(), "and it is replaced");
    }
    let folder = ground.place().parent().unwrap().to_owned();
    let below = Cache::below(&folder).unwrap();
    assert!(format!("{below:?}").contains(env!("CARGO_PKG_VERSION")), "a build says which it is");
}

/// Fields that this reader does not know, or that it misses, as other builds that forgot to count up would have them.
#[test]
fn fields_of_another_format_are_not_guessed() {
    let ground = Ground::new(&[("a.py", TOOL)]);
    assert!(ground.is_true());
    let text = fs::read_to_string(ground.place()).unwrap();
    let (first, line) = text.split_once('\n').unwrap();
    let rest = line.trim_end().split_once('\t').unwrap().1;
    let changes = [
        ("\"kind\":", "\"later\":1,\"kind\":"),
        ("\"kind\":\"Python\",", ""),
        ("\"Ready\"", "\"Later\""),
        ("timeout = ", "later = "),
    ];
    for (from, to) in changes {
        assert!(rest.contains(from), "{rest}");
        let rest = rest.replace(from, to);
        fs::write(ground.place(), format!("{first}\n{}\t{rest}\n", check(&rest))).unwrap();
        assert!(ground.is_true(), "{to}");
    }
}

#[test]
fn other_things_than_files_are_left_alone() {
    let ground = Ground::new(&[("a.py", TOOL)]);
    fs::create_dir_all(ground.place()).unwrap();
    assert!(ground.is_true());
    assert!(ground.is_true(), "a folder cannot be replaced, and the tool files are read each time");
    fs::remove_dir(ground.place()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, ground.place(), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    assert!(ground.is_true(), "nobody waits for a pipe");
    assert!(!ground.is_true(), "a pipe is replaced");
    let nowhere = Ground::new(&[("a.py", TOOL)]);
    fs::write(nowhere.place().parent().unwrap(), "where the folder should be").unwrap();
    assert!(nowhere.is_true() && nowhere.is_true());
}

#[test]
fn half_written_caches_and_other_writers_do_not_block() {
    let ground = Ground::new(&[("a.py", TOOL)]);
    let folder = ground.place().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("new"), "half of it").unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    assert!(ground.is_true() && ground.is_true(), "while another writes, nothing is written");
    assert!(!ground.place().exists());
    lock.unlock().unwrap();
    assert!(ground.is_true());
    assert!(!ground.is_true());
    assert!(!folder.join("new").exists());
}

#[test]
fn caches_are_private_and_expire() {
    use std::os::unix::fs::PermissionsExt;

    let ground = Ground::new(&[("a.py", TOOL)]);
    assert!(ground.is_true());
    let folder = ground.place().parent().unwrap().to_owned();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&ground.place())), (0o700, 0o600));
    let aged = |name: &str, days: u64| -> PathBuf {
        let file = File::create(folder.join(name)).unwrap();
        let then = SystemTime::now() - Duration::from_hours(24 * days);
        file.set_times(FileTimes::new().set_modified(then)).unwrap();
        folder.join(name)
    };
    let (old, young) = (aged("old", 31), aged("young", 29));
    ground.write("b.py", TOOL);
    assert!(ground.is_true());
    assert_eq!((old.exists(), young.exists()), (false, true));
}
