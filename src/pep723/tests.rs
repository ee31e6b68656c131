use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use regex::Regex;

use super::requirement::{problem_of_python, problem_of_requirement};
use super::{HeaderError, Metadata, UnsupportedPython, blocks, decode, package_of};

fn read(source: &str) -> Result<Option<Metadata>, HeaderError> {
    super::read(source, &Arc::new(PathBuf::from("brave.py")))
}

fn header(toml: &str) -> Result<Metadata, HeaderError> {
    let lines = toml.lines().map(|line| if line.is_empty() { "#\n".to_owned() } else { format!("# {line}\n") });
    let source = format!("#!/usr/bin/env python\n# /// script\n{}# ///\nimport os\n", lines.collect::<String>());
    read(&source).map(Option::unwrap)
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
fn an_opening_without_a_block_is_an_error_at_its_line() {
    for (source, line, fix) in [
        ("# /// script\n# dependencies = []\n\nimport os\n", 3, "end it with"),
        ("# /// script\n# dependencies = []", 2, "end it with"),
        ("# /// script \n# dependencies = []\n# ///\n", 1, "write exactly `# /// script`"),
        ("#/// script\n# dependencies = []\n# ///\n", 1, "write exactly `# /// script`"),
        ("# /// Script\n# dependencies = []\n# ///\n", 1, "write exactly `# /// script`"),
        ("# /// script 3.11\n# dependencies = []\n# ///\n", 1, "write exactly `# /// script`"),
        ("#!/usr/bin/python\n# // script\n# dependencies = []\n# ///\n", 2, "write exactly `# /// script`"),
        ("# /// scirpt\n# requires-python = \">=3.9\"\n# ///\n", 1, "write exactly `# /// script`"),
        ("## /// script\n## dependencies = []\n## ///\n", 1, "write exactly `# /// script`"),
        ("# /// script\n#dependencies = []\n# ///\n", 2, "begin each line"),
        ("# /// script\n# dependencies = [\n\n# ]\n# ///\n", 3, "begin each line"),
        ("# /// script\n# dependencies = []\n#///\nimport os\n", 3, "a line `# ///`"),
        ("# /// script\n# dependencies = []\n# /// \nimport os\n", 4, "a line `# ///`"),
        ("# /// script\n# ///\nimport os\n", 1, "`# dependencies = []`"),
        ("# /// script\n# x\n# ///\n\n# /// script\n# x\n# ///\n", 5, "keep one of them"),
        ("# /// notes\n# /// script\n# dependencies = []\n# ///\n", 2, "an empty line above it"),
    ] {
        let error = read(source).unwrap_err();
        assert_eq!(error.line, line, "{source}");
        assert!(error.fix.contains(fix), "{source}: {}", error.fix);
    }
}

#[test]
fn a_block_that_goes_on_too_far_is_an_error_of_its_toml() {
    for source in [
        "# /// script\n# dependencies = []\n# ///\n# What it is for.\n# ///\n",
        "# /// script\n# dependencies = []\n# ///\n# ///\n",
    ] {
        assert_eq!(read(source).unwrap_err().line, 3, "{source}");
    }
    assert_eq!(read("# /// script\n# /// script\n# dependencies = []\n# ///\n").unwrap_err().line, 2);
}

#[test]
fn comments_that_mention_headers_break_no_file() {
    for comment in [
        "# /// script is the opening line of PEP 723",
        "# /// script blocks: see PEP 723",
        "#/// script section",
        "# // script\n# what it is for",
        "# /////////\n# The script.\n# /////////",
        "# Dependencies: none. See [tool.hostler].",
        "    # /// script\n    # dependencies = []\n    # ///",
        "# /// scripts\n# build = \"make\"\n# ///",
    ] {
        assert!(read(&format!("{comment}\nx = 1\n")).unwrap().is_none(), "{comment}");
        let header = format!("# /// script\n# dependencies = []\n# ///\n\n{comment}\n# /// script\n");
        assert!(read(&header).unwrap().is_some(), "{comment}");
    }
}

#[test]
fn errors_inside_a_header_name_line_and_key() {
    for (toml, line, words) in [
        ("dependencies = [\n\"httpx\"", 4, "unclosed array"),
        ("dependencies = \"httpx\"", 3, "`dependencies`: expected a list, got \"httpx\""),
        ("dependencies = [\"httpx\", 3]", 3, "`dependencies`: item 2: expected a string, got 3"),
        ("dependencies = [\n  \"httpx\",\n  \"git+https://example.org/x\",\n]", 5, "git+https://example.org/x"),
        ("requires-python = 3.11", 3, "`requires-python`: expected a string, got 3.11"),
        ("requires-python = \"3.11\"", 3, "requires-python = \">=3.11\""),
        ("dependancies = []", 3, "did you mean `dependencies`?"),
        ("[tool.hosteler]\npack = \"x\"", 3, "[tool.hostler]"),
        ("tool = 3", 3, "`tool`: expected a table, got a number"),
        ("timeout = \"3s\"", 3, "[tool.hostler]"),
        ("[tool]\ntimeout = \"3s\"", 4, "[tool.hostler]"),
        ("[hostler]\ntimeout = \"3s\"", 3, "[tool.hostler]"),
        ("[tool.hostler]\ndependencies = []", 4, "above its first [table]"),
        ("[tool.hostler]\nlauncher = \"direct\"", 4, "hostler.toml"),
        ("requires-python = \">=3.10\",", 3, "not valid TOML"),
    ] {
        let error = header(toml).unwrap_err();
        assert_eq!(error.line, line, "{toml}");
        assert!(error.to_string().contains(words), "{toml}: {error}");
    }
    let error = header("[tool.hostler]\npack = \"my-pack\"\ntimeot = \"3s\"\ntimeout = true").unwrap_err();
    let lines: Vec<usize> = error.others.iter().map(|other| other.line).collect();
    assert_eq!((error.line, lines), (4, vec![5, 6]), "every problem is reported");
}

#[test]
fn requirements_are_checked_as_far_as_uv_accepts_them() {
    for text in [
        "httpx",
        "httpx[http2] >= 0.27",
        "httpx[http2,brotli]>=0.27,<1; python_version > '3.9' and sys_platform != 'win32'",
        "httpx @ https://x.y/z.whl",
        "httpx[http2] @ https://x.y/z.whl ; python_version >= '3.9'",
        "httpx @ ./x.whl",
        "markdown (>=3)",
        "markdown>3,<4,",
        "markdown==3.5.*",
        "markdown===3.5",
        "markdown==v3.5",
        "markdown==1!3",
        "markdown[]",
    ] {
        assert_eq!(problem_of_requirement(text), None, "{text}");
    }
    for text in ["", "-x", "markdown=3.5", "markdown 3.5", "markdown^3.5", "markdown[extra", "markdown>=", "rich, six"]
    {
        assert!(problem_of_requirement(text).is_some(), "{text}");
    }
    for text in [">=3.9", ">=3.9,<4", "~=3.11", "==3.12.*", ""] {
        assert_eq!(problem_of_python(text), None, "{text}");
    }
    for text in ["3.11", "=3.11", "^3.11", "python>=3.10", "3.10+", "latest"] {
        assert!(problem_of_python(text).is_some(), "{text}");
    }
}

#[test]
fn packages_and_their_modules() {
    for (name, module) in [
        ("httpx", "httpx"),
        ("Pillow", "PIL"),
        ("beautifulsoup4", "bs4"),
        ("python-telegram-bot", "telegram"),
        ("google-cloud-storage", "google"),
        ("ruamel.yaml", "ruamel"),
        ("typing_extensions", "typing_extensions"),
        ("Jinja2", "jinja2"),
        ("pymongo", "bson"),
        ("matplotlib", "mpl_toolkits"),
    ] {
        assert!(super::brings(name, module), "{name} provides {module}");
    }
    assert!(super::brings("pydantic", "typing_extensions") && super::brings("mcp", "typing_extensions"));
    assert!(!super::brings("httpx", "requests") && !super::brings("requests-oauthlib", "requests"));
    assert_eq!(super::requirement::distribution_of("yaml"), Some("pyyaml"));
    assert_eq!(super::modules_of("requests"), ["requests"]);
    assert!(super::is_well_known("requests") && super::is_well_known("cv2") && !super::is_well_known("helpers"));
}

#[test]
fn ranges_that_no_worker_can_run_on() {
    for (text, expected) in [
        (">=3.9", None),
        ("==3.11.4", None),
        (">=3.11,<3.11.0", Some(UnsupportedPython::NoVersion)),
        (">3.12,<3.11", Some(UnsupportedPython::NoVersion)),
        ("==3.7.*", Some(UnsupportedPython::TooOld)),
        ("<3", Some(UnsupportedPython::TooOld)),
        (">=4.0", Some(UnsupportedPython::NoVersion)),
    ] {
        assert_eq!(UnsupportedPython::of(text), expected, "{text}");
    }
    let range = ">=3.8,<3.11".parse().unwrap();
    assert_eq!(super::oldest_minor(&range), Some((3, 9)));
}

#[test]
fn a_package_is_declared_on_the_line_of_dependencies() {
    let declaring = |toml: &str| metadata(toml).declaring("pyyaml");
    assert_eq!(declaring("dependencies = []\n"), "add \"pyyaml\" to `dependencies` on line 2");
    assert_eq!(
        declaring("requires-python = \">=3.9\"\n"),
        "write the line `# dependencies = [\"pyyaml\"]` after line 1"
    );
}

#[test]
fn a_secret_is_declared_in_the_table_of_hostler() {
    let declaring = |toml: &str| metadata(toml).declaring_secret("KEY");
    let table = "dependencies = []\n[tool.hostler]\n";
    assert_eq!(declaring(table), "write the line `# secrets = [\"KEY\"]` after line 3");
    assert_eq!(declaring(&format!("{table}secrets = [\"A\"]\n")), "add \"KEY\" to `secrets` on line 4");
    assert_eq!(
        declaring("dependencies = []\n"),
        "write the two lines `# [tool.hostler]` and `# secrets = [\"KEY\"]` before line 3"
    );
}

fn metadata(toml: &str) -> Metadata {
    Metadata::from_toml(toml, 2, &Arc::new(PathBuf::from("a.py"))).unwrap()
}

#[test]
fn suggested_names_are_valid() {
    let near = |name: &str| super::nearest_identifier(name);
    assert_eq!(
        (near("1x"), near("my-tool"), near("_x"), near("ünï"), near("_")),
        ("tool_1x".to_owned(), "my_tool".to_owned(), "x".to_owned(), "n_".to_owned(), "tool__".to_owned(),)
    );
}

#[test]
fn tables_of_other_tools_are_not_read() {
    for name in ["poster", "roster", "holster", "hostile", "hustler", "hostlr"] {
        assert!(header(&format!("[tool.{name}]\nname = \"x\"")).is_ok(), "{name}");
    }
    for name in ["hostlr", "hostler_", "Hostler"] {
        let error = header(&format!("[tool.{name}]\ntimeout = \"3s\"")).unwrap_err();
        assert!(error.fix.contains("[tool.hostler]"), "{error}");
    }
}

#[test]
fn a_file_does_not_choose_the_cache_that_all_share() {
    let error = header("[tool.uv]\nexclude-newer = \"2026-01-01T00:00:00Z\"\ncache-dir = \"/tmp/x\"\n").unwrap_err();
    assert!(error.to_string().contains("cache-dir") && error.fix.contains("UV_CACHE_DIR"), "{error}");
    assert!(header("[tool.uv]\nexclude-newer = \"2026-01-01T00:00:00Z\"\n").is_ok());
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
    assert_eq!(decode(b"# coding: koi8-r\n# \xC1").unwrap().lines().last(), Some("# а"));
    for (bytes, line) in [
        (&b"x\n\ny = '\xE9'"[..], 3),
        (b"# coding: ascii\r\n\xE9", 2),
        (b"# coding: klingon\n", 1),
        (b"# coding: utf-16\n", 1),
        (b"\xEF\xBB\xBF# coding: latin-1\n", 1),
        (b"\xFF\xFEx\0", 1),
        (b"i\0m\0p\0", 1),
        (b"\0i\0m\0p", 1),
    ] {
        assert_eq!(decode(bytes).unwrap_err().line, line, "{bytes:?}");
    }
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
    fn any_bytes_can_be_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = decode(&bytes) {
            let _ = read(&text);
        }
    }
}
