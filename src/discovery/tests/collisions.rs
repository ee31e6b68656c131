use super::super::resolve_collisions;
use super::{broken, file_at};

#[test]
fn of_conflicting_files_the_later_by_path_is_broken() {
    let mut files = vec![
        file_at("z.py", "pack = 'brave'\ndef search(): ...\n"),
        file_at("brave.py", "def search(): ...\n"),
        file_at("a.py", "def b_c(): ...\n"),
        file_at("a_b.py", "def fine(): ...\ndef c(): ...\n"),
        file_at("long.py", &format!("def {}(): ...\n", "x".repeat(60))),
        file_at("my-tool.py", ""),
    ];
    resolve_collisions(&mut files);
    for (file, words) in files.iter().zip([
        "the pack `brave` is already taken by brave.py",
        "ready",
        "ready",
        "line 2: `a_b.c` and `a.b_c` of a.py",
        "line 1: the MCP name of `long.x",
        "`my-tool` is not a valid pack name",
    ]) {
        assert!(broken(file).starts_with(words), "{}: {}", file.path.display(), broken(file));
    }
}
