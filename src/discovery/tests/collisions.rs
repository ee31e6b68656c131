use super::super::{ToolFile, resolve_collisions};
use super::{broken, file_at};

#[test]
fn of_conflicting_packs_the_later_by_path_is_broken() {
    let mut files = vec![
        file_at("z.py", "pack = 'brave'\ndef search(): ...\n"),
        file_at("brave.py", "def search(): ...\n"),
        file_at("a.py", "def b_c(): ...\n"),
        file_at("a_b.py", "def fine(): ...\ndef c(): ...\n"),
        file_at("long.py", &format!("def {}(): ...\n", "x".repeat(60))),
        file_at("tööl.py", ""),
    ];
    resolve_collisions(&mut files);
    for (file, words) in files.iter().zip([
        "the pack `brave` is already taken by brave.py",
        "ready",
        "ready",
        "ready",
        "line 1: the MCP name of `long.x",
        "`tööl` is not a valid pack name",
    ]) {
        assert!(broken(file).starts_with(words), "{}: {}", file.path.display(), broken(file));
    }
}

#[test]
fn a_name_by_substitution_comes_after_one_that_is_written() {
    let mut files = vec![file_at("my-tool.py", "def f(): ...\n"), file_at("my_tool.py", "def f(): ...\n")];
    resolve_collisions(&mut files);
    assert!(broken(&files[0]).contains("already taken by my_tool.py"), "{}", broken(&files[0]));
    assert_eq!(broken(&files[1]), "ready");
}

#[test]
fn a_function_with_an_impossible_name_hides_no_other() {
    let long = format!("def short(): ...\ndef {}(): ...\n", "x".repeat(60));
    let mut files = vec![
        file_at("a.py", "def b_c(): ...\n"),
        file_at("a_b.py", "def fine(): ...\ndef c(): ...\n"),
        file_at("long.py", &long),
    ];
    resolve_collisions(&mut files);
    let served = |file: &ToolFile| file.functions.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let left_out = |file: &ToolFile| file.left_out.iter().map(|one| (one.name.len(), one.line)).collect::<Vec<_>>();
    assert!(files.iter().all(ToolFile::is_ready));
    assert_eq!((served(&files[1]), left_out(&files[1])), (vec!["fine".to_owned()], vec![("a_b.c".len(), 2)]));
    assert_eq!((served(&files[2]), left_out(&files[2])), (vec!["short".to_owned()], vec![(65, 2)]));
}

#[test]
fn a_broken_file_takes_no_name_from_one_that_works() {
    let mut files = vec![
        file_at("a.py", "def b_c(: ...\ndef b_c(): ...\n"),
        file_at("a_b.py", "def c(): ...\n"),
        file_at("brave.py", "def search(:\n"),
        file_at("z.py", "pack = 'brave'\ndef search(): ...\n"),
    ];
    resolve_collisions(&mut files);
    let ready: Vec<bool> = files.iter().map(ToolFile::is_ready).collect();
    assert_eq!(ready, [false, true, false, true]);
    assert!(files[1].left_out.is_empty());
}
