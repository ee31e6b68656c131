use super::super::resolve_collisions;
use super::{broken, file_at};

#[test]
fn the_later_file_by_path_gives_way() {
    let mut files = [
        file_at("z.py", "pack = 'brave'\ndef search(): ...\n"),
        file_at("brave.py", "def search(): ...\n"),
        file_at("a.py", "def b_c(): ...\n"),
        file_at("a_b.py", "def fine(): ...\ndef c(): ...\n"),
        file_at("long.py", &format!("def {}(): ...\n", "x".repeat(60))),
        file_at("my-tool.py", ""),
    ];
    resolve_collisions(&mut files);
    let told: Vec<String> = files.iter().map(|file| format!("{}: {}", file.path.display(), broken(file))).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    z.py: the pack `brave` is already taken by brave.py; give this file another name or `pack = "…"`
    brave.py: ready
    a.py: ready
    a_b.py: line 2: `a_b.c` and `a.b_c` of a.py are both `a_b_c` to MCP clients; rename one of them
    long.py: line 1: `long.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` is `long_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` to MCP clients, 65 characters where 64 are allowed; shorten the pack or the function
    my-tool.py: `my-tool` cannot be a pack's name (letters, digits and _ only, and no digit first); rename the file, or write `pack = "my_tool"` in it
    "#);
}
