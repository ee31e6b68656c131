use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use regex::Regex;

use super::{HeaderError, Metadata, blocks, decode, package_of};

fn read(source: &str) -> Result<Option<Metadata>, HeaderError> {
    super::read(source, &Arc::new(PathBuf::from("brave.py")))
}

fn header(toml: &str) -> Result<Metadata, HeaderError> {
    let lines = toml.lines().map(|line| if line.is_empty() { "#\n".to_owned() } else { format!("# {line}\n") });
    let source = format!("#!/usr/bin/env python\n# /// script\n{}# ///\nimport os\n", lines.collect::<String>());
    read(&source).map(Option::unwrap)
}

fn complaint(source: &str) -> String {
    read(source).unwrap_err().to_string()
}

#[test]
fn a_requirement_begins_with_a_packages_name() {
    for text in [
        "httpx",
        " httpx [http2] >= 0.27",
        "httpx[http2]>=0.27; python_version > '3.9'",
        "httpx @ https://x.y/z.whl",
        "httpx~=1",
    ] {
        assert_eq!(package_of(text), "httpx", "{text}");
    }
    assert_eq!((package_of("ruamel.yaml-x_1!"), package_of(""), package_of("é")), ("ruamel.yaml-x_1", "", ""));
}

#[test]
fn a_whole_header_is_read() {
    let metadata = header(
        "requires-python = \">=3.11\"\ndependencies = [\"httpx>=0.27\", \"rich\"]\n\n\
         [tool.hostler]\npack = \"brave\"\ntimeout = \"30s\"\n\n[tool.uv]\nexclude-newer = \"2026-01-01T00:00:00Z\"",
    )
    .unwrap();
    assert_eq!(metadata.requires_python.as_deref(), Some(">=3.11"));
    assert_eq!(metadata.dependencies, ["httpx>=0.27", "rich"]);
    assert_eq!(metadata.first_line, 3);
    assert_eq!(metadata.layer.timeout.unwrap().origin.to_string(), "header brave.py:8");
    assert_eq!(metadata.pack.unwrap().value, "brave");
    assert_eq!(metadata.other_tools.keys().collect::<Vec<_>>(), ["uv"]);
    assert!(!metadata.relative_sources);
    assert!(metadata.toml.starts_with("requires-python"));
}

#[test]
fn files_without_a_header_and_blocks_of_other_types_are_no_header() {
    assert!(read("").unwrap().is_none());
    assert!(read("import os\n# a comment\n").unwrap().is_none());
    assert!(read("# /// pyproject\n# x = \n# ///\n").unwrap().is_none());
}

#[test]
fn what_was_meant_as_a_header_is_answered_with_the_right_line() {
    let cases = [
        "# /// script\n# dependencies = []\n\nimport os\n",
        "# /// script\n# dependencies = []",
        "# /// script\n# dependencies = []\n#\n# This tool looks for things.\n\nimport os\n",
        "# /// script \n# dependencies = []\n# ///\n",
        "#/// script\n# dependencies = []\n# ///\n",
        "# /// Script\n# dependencies = []\n# ///\n",
        "# /// script 3.11\n# dependencies = []\n# ///\n",
        "# /// script\n#dependencies = []\n# ///\n",
        "# /// script\n# dependencies = [\n\n# ]\n# ///\n",
        "# /// script\n# dependencies = []\n#///\nimport os\n",
        "# /// script\n# dependencies = []\n# /// \nimport os\n",
        "# /// script\n# ///\nimport os\n",
        "# /// script\n# x\n# ///\n\n# /// script\n# x\n# ///\n",
        "# /// script\n# /// script\n# dependencies = []\n# ///\n",
        "# /// script\n# dependencies = []\n# ///\n# ///\n",
        "# /// script\n# dependencies = []\n# ///\n# What it is for.\n# ///\n",
        "# /// script\n<<<<<<< HEAD\n# dependencies = []\n=======\n# dependencies = [\"six\"]\n>>>>>>> x\n# ///\n",
        "# /// notes\n# /// script\n# dependencies = []\n# ///\n",
    ];
    let answers: Vec<String> = cases.iter().map(|source| complaint(source)).collect();
    insta::assert_snapshot!(answers.join("\n"), @r"
    line 1: this header is never closed; write `# ///` on a line of its own before line 3
    line 1: this header is never closed; write `# ///` on a line of its own before the end of the file
    line 1: this header is never closed; write `# ///` on a line of its own after line 2, the last that is TOML
    line 1: this looks like a header and has white space at its end; write exactly `# /// script`
    line 1: this looks like a header and is spaced differently; write exactly `# /// script`
    line 1: `Script` is not the block type `script`; write exactly `# /// script`
    line 1: this looks like a header and has more after the word `script`; write exactly `# /// script`
    line 2: the header of line 1 holds a line that is neither `#` nor `# …`; begin it with `# `: write exactly `# dependencies = []`
    line 3: the header of line 1 holds a line that is neither `#` nor `# …`; write `#` there, or delete the line
    line 3: this is not quite the end of the header of line 1; write exactly `# ///`
    line 3: this is not quite the end of the header of line 1; write exactly `# ///`
    line 1: this header is empty, so it counts as none; put at least one line into it: `# dependencies = []`
    line 5: a second `script` block; the first begins on line 1; keep one of them
    line 2: the line that opens the header stands twice; delete line 2
    line 3: the line that closes the header stands twice; delete line 3
    line 3: only comments follow up to another `# ///`, on line 5, so the header goes on; put an empty line after line 3, or delete line 5
    line 2: here begins a conflict of a merge; keep one of the two sides, and delete the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`
    line 2: a header begins inside the `notes` block of line 1; close that block with `# ///` and put an empty line between the two
    ");
}

#[test]
fn all_lines_of_a_header_without_blanks_are_told_at_once() {
    for (source, fix) in [
        (
            "#/// script\n#dependencies = []\n#///\n",
            "write exactly `# /// script`, put a blank after the `#` of line 2, and write line 3 as `# ///`",
        ),
        (
            "#/// script\n#dependencies = [\n#]\n#\n# [tool.uv]\n#x = 1\n# ///\n",
            "write exactly `# /// script`, put a blank after the `#` of lines 2, 3 and 6",
        ),
        (
            "# /// script\n#dependencies = []\n#x = 1\n#///\n",
            "begin it with `# `: write exactly `# dependencies = []`, put a blank after the `#` of line 3, and write line 4 as `# ///`",
        ),
        (
            "# // script\n#dependencies = []\n# //\n",
            "write exactly `# /// script`, put a blank after the `#` of line 2, and write line 3 as `# ///`",
        ),
        ("#/// script\n# dependencies = []\nimport os\n#///\n", "write exactly `# /// script`"),
    ] {
        assert_eq!(read(source).unwrap_err().fix, fix, "{source}");
    }
}

#[test]
fn what_is_wrong_inside_is_told_with_its_line_in_the_file() {
    let cases = [
        "dependencies = [\n\"httpx\"",
        "dependencies = \"httpx\"",
        "dependencies = [\"httpx\", 3]",
        "dependencies = [\n  \"httpx\",\n  \"git+https://example.org/x\",\n]",
        "requires-python = 3.11",
        "requires-python = \"3.11\"",
        "dependancies = []",
        "[tool.hostler]\npack = \"my-pack\"\ntimeot = \"3s\"\ntimeout = true",
        "[tool.hosteler]\npack = \"x\"",
        "tool = 3",
        "timeout = \"3s\"",
        "[tool]\ntimeout = \"3s\"",
        "[hostler]\ntimeout = \"3s\"",
        "[tool.hostler]\ndependencies = []",
        "[tool.hostler]\nlauncher = \"direct\"",
        "[project]\ndependencies = []",
        "requires = [\"six\"]",
        "install_requires = [\"six\"]",
        "python_requires = \">=3.9\"",
        "python = \">=3.9\"",
        "requires-python = \">=3.10\",",
        "requires-python = \">=3.10\";",
        "requires-python >= \"3.10\"",
        "[dependencies]\nsix = \"*\"\nhttpx = \"^0.27\"\nrich = \">=13\"",
    ];
    let answers: Vec<String> = cases.iter().map(|toml| header(toml).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(answers.join("\n"), @r#"
    line 3: not valid TOML: the list that begins on this line is never closed; write `# ]` on a line of its own after line 4
    line 3: `dependencies`: the string "httpx" does not fit here; write a list: ["httpx"]
    line 3: `dependencies`: an item of this list does not fit here; that item is the number 3: write it in quotes: "3"
    line 5: `dependencies`: "git+https://example.org/x" is not a requirement: a package's name is followed by something that is no version, extra, marker or URL; write the package's name before its address: "NAME @ git+https://example.org/x"
    line 3: `requires-python`: the number 3.11 does not fit here; write it in quotes and with a comparison: requires-python = ">=3.11"
    line 3: `requires-python`: "3.11" is not a version specifier: begin every clause with an operator; write exactly `# requires-python = ">=3.11"`
    line 3: `dependancies`: unknown key; did you mean `dependencies`?
    line 4: `tool.hostler.pack`: "my-pack" cannot be a pack's name; use letters, digits and _ only, and no digit first: "my_pack"; line 5: `tool.hostler.timeot`: unknown key; did you mean `timeout`?; line 6: `tool.hostler.timeout`: true does not fit here; write a duration like "30s", "5m" or "1h 30m" (a bare number is seconds)
    line 3: `tool.hosteler`: unknown tool; did you mean [tool.hostler]?
    line 3: `tool`: the number 3 does not fit here; write it as a table: [tool]
    line 3: `timeout`: this table has no such key; it belongs under [tool.hostler]
    line 4: `tool.timeout`: this table has no such key; it belongs under [tool.hostler]
    line 3: `hostler`: this table has no such key; the table is called [tool.hostler]
    line 4: `tool.hostler.dependencies`: this table has no such key; it belongs above the first [table] of the header
    line 4: `tool.hostler.launcher`: this table has no such key; a header cannot set it: it belongs under [tool.NAME] in hostler.toml
    line 3: `project`: this table has no such key; a header has no [project]: `dependencies` and `requires-python` stand at its top
    line 3: `requires`: unknown key; here it is called `dependencies`: write exactly `# dependencies = ["six"]`
    line 3: `install_requires`: unknown key; here it is called `dependencies`: write exactly `# dependencies = ["six"]`
    line 3: `python_requires`: unknown key; here it is called `requires-python`: write exactly `# requires-python = ">=3.9"`
    line 3: `python`: unknown key; here it is called `requires-python`: write exactly `# requires-python = ">=3.9"`
    line 3: not valid TOML: nothing may follow a value; write exactly `# requires-python = ">=3.10"`
    line 3: not valid TOML: nothing may follow a value; write exactly `# requires-python = ">=3.10"`
    line 3: not valid TOML: the comparison stands within the quotes; write exactly `# requires-python = ">=3.10"`
    line 3: `dependencies`: a table does not fit here; in place of the table, write above the first [table] `# dependencies = ["httpx>=0.27", "rich>=13", "six"]`
    "#);
}

#[test]
fn a_name_that_is_suggested_is_one_that_is_served() {
    let near = |name: &str| super::nearest_identifier(name);
    assert_eq!(
        (near("1x"), near("my-tool"), near("_x"), near("ünï"), near("_")),
        ("tool_1x".to_owned(), "my_tool".to_owned(), "x".to_owned(), "n_".to_owned(), "tool__".to_owned(),)
    );
}

#[test]
fn tables_of_other_tools_are_theirs() {
    let told = |toml: &str| header(toml).map(|header| header.doubt().map(|doubt| doubt.to_string()));
    for name in ["poster", "roster", "holster", "hostile", "hustler", "hostlr"] {
        assert!(told(&format!("[tool.{name}]\nname = \"x\"")).is_ok(), "{name}");
    }
    assert_eq!(told("[tool.roster]\nname = \"x\""), Ok(None));
    for toml in ["[tool.holster]\ntimeout = \"3s\"", "[tool.hostlr]\nx = 1"] {
        let doubt = told(toml).unwrap().unwrap();
        assert!(doubt.contains("another tool") && doubt.starts_with("line 3: "), "{doubt}");
        assert!(doubt.ends_with("; if it was meant for hostler, write [tool.hostler]"), "{doubt}");
    }
    for name in ["hostlr", "hostler_", "Hostler"] {
        let error = told(&format!("[tool.{name}]\ntimeout = \"3s\"")).unwrap_err().to_string();
        assert!(error.ends_with("unknown tool; did you mean [tool.hostler]?"), "{error}");
    }
}

#[test]
fn relative_places_are_noticed() {
    let relative = [
        "[tool.uv.sources]\nx = { path = \"../x\" }",
        "[tool.uv.sources]\nx = [{ git = \"https://e.org/x\" }, { path = \"x\" }]",
        "[[tool.uv.index]]\nurl = \"./packages\"",
        "[tool.uv]\nfind-links = [\"wheels\"]",
        "dependencies = [\"x @ ./x.whl\"]",
    ];
    let absolute = [
        "[tool.uv.sources]\nx = { path = \"/opt/x\" }",
        "[[tool.uv.index]]\nurl = \"https://e.org/simple\"",
        "dependencies = [\"x @ https://e.org/x.whl\"]",
        "[tool.uv.sources]\nx = { index = \"own\" }",
    ];
    assert!(relative.iter().all(|toml| header(toml).unwrap().relative_sources));
    assert!(!absolute.iter().any(|toml| header(toml).unwrap().relative_sources));
}

#[test]
fn bytes_become_text_as_cpython_reads_them() {
    assert_eq!(decode(b"\xEF\xBB\xBF# a\r\nb\rc\n").unwrap(), "# a\nb\nc\n");
    assert_eq!(decode(b"# -*- coding: latin-1 -*-\nx = '\xE9'").unwrap(), "# -*- coding: latin-1 -*-\nx = 'é'");
    assert_eq!(
        decode(b"#!/bin/py\r\n# vim: set fileencoding=cp1252 :\n# \x80\x9C").unwrap().lines().last(),
        Some("# €œ")
    );
    assert_eq!(decode(b"# coding: iso-8859-15\n\xA4").unwrap().lines().last(), Some("€"));
    assert_eq!(decode(b"x = 1\n# coding: latin-1\n# ok").unwrap().lines().count(), 3);
    let failures = [
        &b"x\n\ny = '\xE9'"[..],
        b"x = '\x93\xE9\x94'\n",
        b"# coding: ascii\r\n\xE9",
        b"# coding: koi8-r\n",
        b"\xEF\xBB\xBF# coding: latin-1\n",
        b"\xFF\xFEx\0",
        b"i\0m\0p\0",
        b"\0i\0m\0p",
        b"# coding: cp1252\n\n\x81",
    ];
    let answers: Vec<String> = failures.iter().map(|bytes| decode(bytes).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(answers.join("\n"), @r"
    line 3: this line is not UTF-8; save the file as UTF-8, or, if it is in latin-1, insert as line 1 `# -*- coding: latin-1 -*-`
    line 1: this line is not UTF-8; save the file as UTF-8, or, if it is in cp1252, insert as line 1 `# -*- coding: cp1252 -*-`
    line 2: the byte 0xe9 does not exist in ascii; save the file as UTF-8
    line 1: the encoding koi8-r is not read here; delete line 1: the file is UTF-8, which needs no such line
    line 1: a UTF-8 file that calls itself latin-1; remove the encoding line
    line 1: the file is UTF-16; save the file as UTF-8
    line 1: the file is UTF-16; save the file as UTF-8
    line 1: the file is UTF-16; save the file as UTF-8
    line 3: the byte 0x81 does not exist in cp1252; save the file as UTF-8
    ");
}

static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$").unwrap());
static MEANT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^#[^\S\n]*///[^\S\n]*script[^\S\n]*$").unwrap());

fn by_reference(source: &str) -> Vec<(String, String)> {
    REFERENCE.captures_iter(source).map(|found| (found["type"].to_owned(), found["content"].to_owned())).collect()
}

/// Lines that are, or nearly are, parts of a block.
fn texts() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => Just("# /// script"), 5 => Just("# ///"), 2 => Just("#"), 4 => Just("# x = 1"), 1 => Just("# /// a-1"),
        1 => Just(""), 1 => Just("x = 1"), 1 => Just("# /// script "), 1 => Just("#///"), 1 => Just("# /// "),
        1 => Just("#\t"), 1 => Just("# \u{2028}é"), 1 => Just("# /// a b"), 1 => Just(" # ///"), 1 => Just("# x\r"),
        1 => Just("#\u{a0}/// script"), 1 => Just("# ////"),
    ];
    let end = prop_oneof![8 => Just("\n"), 1 => Just("\n\n"), 1 => Just("\r\n"), 1 => Just("\r"), 1 => Just("")];
    let pieces = prop::collection::vec((line, end), 0..14);
    pieces.prop_map(|pieces| pieces.into_iter().flat_map(|(line, end)| [line, end]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_are_what_the_reference_expression_matches(source in texts()) {
        let found: Vec<(String, String)> =
            blocks(&source).iter().map(|block| (block.kind.to_owned(), block.content.to_owned())).collect();
        prop_assert_eq!(found, by_reference(&source));
    }

    #[test]
    fn a_text_that_looks_like_a_header_is_one_or_is_an_error(source in texts()) {
        let meant = MEANT.is_match(&source);
        let outcome = read(&source);
        prop_assert!(!meant || !matches!(outcome, Ok(None)), "{source:?} was silently no header");
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = decode(&bytes) {
            let _ = read(&text);
        }
    }
}
