use super::super::{ToolFile, resolve_collisions, scan};
use super::folders::folder;
use super::{broken, file_at};
use crate::config::{Config, ConfigOptions};

#[test]
fn of_conflicting_packs_the_later_by_path_is_broken() {
    let mut files = vec![
        file_at("z.py", "pack = 'brave'\ndef search(): ...\n"),
        file_at("brave.py", "def search(): ...\n"),
        file_at("a.py", "def b_c(): ...\n"),
        file_at("a_b.py", "def fine(): ...\ndef c(): ...\n"),
        file_at("tööl.py", ""),
    ];
    resolve_collisions(&mut files);
    for (file, words) in files.iter().zip([
        "the pack `brave` is already taken by brave.py",
        "ready",
        "ready",
        "ready",
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
    let both = format!("def {0}_1(): ...\ndef {0}_2(): ...\n", "x".repeat(60));
    let mut files = vec![
        file_at("a.py", "def b_c(): ...\n"),
        file_at("a_b.py", "def fine(): ...\ndef c(): ...\n"),
        file_at("long.py", &long),
        file_at("both.py", &both),
    ];
    resolve_collisions(&mut files);
    let served = |file: &ToolFile| file.functions.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let left_out = |file: &ToolFile| file.left_out.iter().map(|one| (one.name.len(), one.line)).collect::<Vec<_>>();
    assert!(files.iter().all(ToolFile::is_ready));
    assert_eq!((served(&files[1]), left_out(&files[1])), (vec!["fine".to_owned()], vec![("a_b.c".len(), 2)]));
    assert_eq!((served(&files[2]), left_out(&files[2])), (vec!["short".to_owned()], vec![(65, 2)]));
    assert_eq!((served(&files[3]), left_out(&files[3])), (vec![], vec![(67, 1), (67, 2)]));
}

#[test]
fn of_tools_with_one_name_in_a_file_the_operator_names_the_second() {
    let source = "from server import mcp\n@mcp.tool('find')\ndef one(): ...\n@mcp.tool('find')\ndef two(): ...\n\
                  @mcp.tool('find')\ndef find(): ...\n@mcp.tool()\ndef two_2(): ...\n";
    let left_out = |config: &str| {
        let mut files = vec![file_at("a.py", source)];
        let folder = folder(&[("hostler.toml", config)]);
        let config = Config::load(&ConfigOptions::default(), folder.path()).unwrap();
        files[0].rename(&config);
        resolve_collisions(&mut files);
        let found = files[0].left_out.iter().map(|one| (one.key.clone(), one.name.clone(), one.line));
        let served = files[0].functions.iter().map(|one| files[0].names_of(one).1).collect::<Vec<_>>();
        (found.collect::<Vec<_>>(), served)
    };
    let row = |key: &str, line: usize| (key.to_owned(), "a.find".to_owned(), line);
    let (found, served) = left_out("");
    assert_eq!(found, [row("a.two", 5), row("a.find_2", 7)]);
    assert_eq!(served, ["a_find", "a_two_2"]);
    let (found, served) = left_out("[tool.\"a.two\"]\nas = \"search\"\n");
    assert_eq!((found, served), (vec![row("a.find_2", 7)], vec!["a_find".into(), "a_search".into(), "a_two_2".into()]));
}

#[test]
fn a_tool_of_a_helper_that_has_the_name_of_another_is_left_out_with_its_place() {
    let folder = folder(&[
        (
            "s.py",
            "from fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\ndef f(): ...\nfrom notes import register\nregister(mcp)\n",
        ),
        ("notes.py", "def register(mcp):\n    @mcp.tool()\n    def f(): ...\n"),
    ]);
    let mut files = scan(&[folder.path().to_owned()]).files;
    resolve_collisions(&mut files);
    let [one] = &files[0].left_out[..] else { panic!("{files:?}") };
    assert_eq!((one.key.as_str(), one.line), ("s.notes_f", 0));
    assert!(one.reason.what.starts_with("notes.py, line 3: "), "{:?}", one.reason);
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
