use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::super::{Scan, scan};
use super::broken;
use crate::config::origin::Origin;

pub(super) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn relative<'p>(path: &'p Path, folder: &Path) -> &'p str {
    path.strip_prefix(folder).unwrap().to_str().unwrap()
}

fn listed<'s>(scan: &'s Scan, folder: &Path) -> Vec<&'s str> {
    scan.files.iter().map(|file| relative(&file.path, folder)).collect()
}

const TOOL: &str = "# /// script\n# dependencies = [\"Mark-Down>=1\"]\n# ///\n";

#[test]
fn tool_files_are_in_the_folder_or_one_level_below() {
    let folder = folder(&[
        ("brave.py", ""),
        ("_private.py", ""),
        (".hidden.py", ""),
        ("test_brave.py", ""),
        ("conftest.py", ""),
        ("notes.txt", ""),
        ("web/web.py", ""),
        ("web/other.py", ""),
        ("_web/_web.py", ""),
        ("deep/deep/deep.py", ""),
        ("folder.py/x", ""),
    ]);
    let at = folder.path().to_owned();
    let found = scan(&[at.clone(), at.clone()]);
    assert_eq!(listed(&found, &at), ["brave.py", "web/web.py"]);
}

#[test]
fn a_file_without_a_header_that_a_tool_file_imports_is_a_helper() {
    let folder = folder(&[
        ("brave.py", &format!("{TOOL}import helper\nimport mark_down\ndef f():\n    from calendar import x\n")),
        ("helper.py", "from _common import z\nimport second\n"),
        ("_common.py", "import third\n"),
        ("second.py", ""),
        ("third.py", ""),
        ("mark_down.py", ""),
        ("calendar.py", ""),
        ("lone.py", "import brave, lone\n"),
        ("circle_a.py", "import circle_b\n"),
        ("circle_b.py", "import circle_a\n"),
        ("pkg/pkg.py", ""),
        ("user.py", "from pkg import pkg\n"),
    ]);
    let found = scan(&[folder.path().to_owned()]);
    assert_eq!(
        listed(&found, folder.path()),
        ["brave.py", "calendar.py", "circle_a.py", "lone.py", "mark_down.py", "user.py"]
    );
    let helpers: Vec<&str> = found.files[0].helpers.iter().map(|path| relative(path, folder.path())).collect();
    assert_eq!(helpers, ["_common.py", "helper.py", "second.py", "third.py"]);
}

#[test]
fn unreadable_files_are_listed_as_broken_without_blocking() {
    let folder = folder(&[("real.py", "def f(): ...")]);
    let at = |name: &str| folder.path().join(name);
    symlink(at("real.py"), at("link.py")).unwrap();
    symlink(at("nowhere"), at("lost.py")).unwrap();
    symlink(at("loop.py"), at("loop.py")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(at("pipe.py")).status().unwrap();
    assert!(pipe.success());
    fs::write(at("huge.py"), vec![b'\n'; 3 << 20]).unwrap();
    let found = scan(&[folder.path().to_owned()]);
    for (file, (name, words)) in found.files.iter().zip([
        ("huge.py", "the file is larger than 2 MB"),
        ("link.py", "ready"),
        ("loop.py", "the file cannot be read: Too many levels of symbolic links"),
        ("lost.py", "the file cannot be read: No such file or directory"),
        ("pipe.py", "this is not a regular file"),
        ("real.py", "ready"),
    ]) {
        assert_eq!(relative(&file.path, folder.path()), name);
        assert!(broken(file).starts_with(words), "{name}: {}", broken(file));
    }
}

#[test]
fn a_missing_folder_is_named() {
    let folder = folder(&[("real.py", "")]);
    let problems = scan(&[PathBuf::from("/no/such/folder"), folder.path().join("real.py")]).problems;
    assert_eq!(
        problems[0].to_string(),
        "/no/such/folder: this tools folder does not exist; create it or correct the path"
    );
    assert!(problems[1].reason.what.contains("this is a file"));
}

#[test]
fn missing_default_folders_are_not_reported() {
    let folder = folder(&[("tools", "#!/bin/sh\n")]);
    let tools = folder.path().join("tools");
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    for place in [tools.clone(), tools.join("below"), folder.path().join("loop"), folder.path().join("none")] {
        let problems = scan(std::slice::from_ref(&place)).problems;
        assert!(problems[0].matters(&Origin::Flag("--tools")) && !problems[0].matters(&Origin::Default), "{place:?}");
    }
}

#[test]
fn a_server_below_the_folder_is_named() {
    let server = "from fastmcp import FastMCP\nclass Own(FastMCP[int]): ...\nmcp = Own()\n";
    let low = "from mcp.server import Server\nserver = Server('x')\n@server.list_tools()\nasync def all(): return []\n@server.call_tool()\nasync def call(name, arguments): ...\n";
    for (files, wanted) in [
        (vec![("src/pack/other.py", server), ("src/pack/server.py", server)], vec!["src/pack/server.py"]),
        (
            vec![("README.md", ""), ("run.sh", "#!/bin/sh\n"), ("a/low.py", low), ("b/c/d/main.py", server)],
            vec!["a/low.py", "b/c/d/main.py"],
        ),
        (
            vec![
                ("tests/server.py", server),
                (".venv/lib/server.py", server),
                ("a/notes.py", "import mcp\ndef f(): ...\n"),
            ],
            vec![],
        ),
        (vec![("tool.py", "def f(): ...\n"), ("src/server.py", server)], vec![]),
        (vec![("helper.py", "X = 1\n"), ("src/server.py", server)], vec!["src/server.py"]),
        (vec![("a/b/c/d/e/f/g/server.py", server)], vec![]),
        (vec![("run.py", "import deep.server\n"), ("deep/server.py", server)], vec![]),
    ] {
        let folder = folder(&files);
        let found = scan(&[folder.path().to_owned()]);
        let below: Vec<&str> = found.below.iter().map(|path| relative(path, folder.path())).collect();
        assert_eq!(below, wanted, "{files:?}");
    }
}
