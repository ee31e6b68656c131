use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::git::read;
use super::{Walk, add};
use crate::builtin::testing::Bench;
use crate::builtin::{Roots, Stop};
use crate::outcome::Code;

fn tree() -> Bench {
    let bench = Bench::of(add);
    bench.put(".git/HEAD", "ref: refs/heads/main\n");
    bench.put(".gitignore", "built/\n*.log\n");
    bench.put("src/a.rs", "fn one() {}\nfn two() {}\n// end\n");
    bench.put("src/deep/b.rs", "fn three() {}\n");
    bench.put("built/c.rs", "fn four() {}\n");
    bench.put("x.log", "fn five() {}\n");
    bench.put(".hidden/d.rs", "fn six() {}\n");
    bench.put("data.bin", b"fn seven\0");
    bench
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

#[tokio::test]
async fn glob_matches_names_or_paths() {
    let bench = tree();
    let find = async |arguments: Value| bench.call("glob", arguments).await.unwrap();
    assert_eq!(texts(&find(json!({"pattern": "*.rs"})).await["files"]), ["src/a.rs", "src/deep/b.rs"]);
    assert_eq!(texts(&find(json!({"pattern": "src/*.rs"})).await["files"]), ["src/a.rs"], "by the path");
    assert_eq!(texts(&find(json!({"pattern": "**/{a,b}.rs"})).await["files"]), ["src/a.rs", "src/deep/b.rs"]);
    assert_eq!(texts(&find(json!({"pattern": "*.rs", "path": "src/deep"})).await["files"]), ["src/deep/b.rs"]);
    let all = find(json!({"pattern": "*.rs", "hidden": true, "ignored": true})).await;
    assert_eq!(texts(&all["files"]), [".hidden/d.rs", "built/c.rs", "src/a.rs", "src/deep/b.rs"]);
    let part = find(json!({"pattern": "*.rs", "limit": 1})).await;
    assert_eq!((texts(&part["files"]), &part["total"]), (vec!["src/a.rs"], &json!(2)));
    for outside in ["/etc/*.conf", "../*", "src/../../*"] {
        bench.fails("glob", json!({"pattern": outside}), Code::InvalidParams, "`path`").await;
    }
    bench.fails("glob", json!({"pattern": "a{b"}), Code::InvalidParams, "`a{b`").await;
}

#[tokio::test]
async fn grep_returns_lines_with_context() {
    let bench = tree();
    let found = bench.call("grep", json!({"pattern": r"fn \w+"})).await.unwrap();
    assert_eq!((&found["total"], &found["total_files"]), (&json!(3), &json!(2)));
    assert_eq!(texts(&found["files"][0]["lines"]), ["1: fn one() {}", "2: fn two() {}"]);
    let around = bench.call("grep", json!({"pattern": "TWO", "ignore_case": true, "context": 1})).await.unwrap();
    assert_eq!(texts(&around["files"][0]["lines"]), ["1- fn one() {}", "2: fn two() {}", "3- // end"]);
    let files = bench.call("grep", json!({"pattern": "fn", "output": "files", "glob": "*a.rs"})).await.unwrap();
    assert_eq!(files["files"], json!([{"path": "src/a.rs", "count": 2}]));
    let literal = bench.call("grep", json!({"pattern": "one()", "literal": true})).await.unwrap();
    assert_eq!(literal["total"], 1);
    let dotted = bench.call("grep", json!({"pattern": "o.e", "literal": true})).await.unwrap();
    assert_eq!(dotted["total"], 0, "a dot is a dot");
    bench.put("dos.txt", "one\r\ntwo\r\n");
    let dos = bench.call("grep", json!({"pattern": "two$", "path": "dos.txt"})).await.unwrap();
    assert_eq!(texts(&dos["files"][0]["lines"]), ["2: two"], "a line ends where people see it end");
    let one = bench.call("grep", json!({"pattern": "fn", "path": "x.log"})).await.unwrap();
    assert_eq!(
        (&one["files"][0]["path"], &one["total"]),
        (&json!("x.log"), &json!(1)),
        "a file that is named is searched"
    );
}

#[tokio::test]
async fn the_first_matches_are_returned_and_all_are_counted() {
    let bench = Bench::of(add);
    for file in 0..20 {
        bench.put(&format!("f{file:02}"), "hit\n".repeat(10));
    }
    let found = bench.call("grep", json!({"pattern": "hit", "limit": 25})).await.unwrap();
    assert_eq!((&found["total"], &found["total_files"]), (&json!(200), &json!(20)));
    let shown: Vec<usize> = found["files"].as_array().unwrap().iter().map(|file| texts(&file["lines"]).len()).collect();
    assert_eq!((shown, &found["files"][0]["path"]), (vec![10, 10, 5], &json!("f00")));
    bench.put("much", ("hit ".to_owned() + &"x".repeat(400) + "\n").repeat(5000));
    let much = bench.call("grep", json!({"pattern": "hit", "path": "much", "limit": 10_000})).await.unwrap();
    assert_eq!(much["total"], 5000);
    assert!((2000..2700).contains(&texts(&much["files"][0]["lines"]).len()), "a megabyte is shown");
    bench.put("late", "hit\n".repeat(100_000) + "\0");
    let late = bench.call("grep", json!({"pattern": "hit", "path": "late"})).await.unwrap();
    assert_eq!(late["total"], 0, "what turns out to be binary is left out");
    bench.put("wide", "hit ".repeat(1000));
    let wide = bench.call("grep", json!({"pattern": "hit", "path": "wide"})).await.unwrap();
    assert!(texts(&wide["files"][0]["lines"])[0].ends_with(" … (3500 bytes more)"), "{wide}");
}

#[tokio::test]
async fn no_pattern_takes_long() {
    let bench = Bench::of(add);
    bench.put("a", "a".repeat(100_000));
    let slow_elsewhere = bench.call("grep", json!({"pattern": "(a+)+$b", "output": "files"})).await.unwrap();
    assert_eq!(slow_elsewhere["total"], 0);
    bench.fails("grep", json!({"pattern": "((a{100}){100}){100}"}), Code::InvalidParams, "not a valid pattern").await;
    bench.fails("grep", json!({"pattern": "a("}), Code::InvalidParams, "`literal`").await;
}

#[tokio::test]
async fn a_search_stays_beneath_its_root() {
    let bench = tree();
    std::fs::write(bench.folder.path().join("secret.rs"), "fn secret() {}\n").unwrap();
    symlink("..", bench.folder.path().join("root/up")).unwrap();
    symlink("../../secret.rs", bench.folder.path().join("root/src/z.rs")).unwrap();
    assert_eq!(bench.call("grep", json!({"pattern": "secret"})).await.unwrap()["total"], 0);
    for path in ["up", "..", "/etc", "src/z.rs"] {
        for tool in ["grep", "glob", "git_status"] {
            let mut arguments = json!({"path": path});
            if tool != "git_status" {
                arguments["pattern"] = "root".into();
            }
            bench.fails(tool, arguments, Code::PermissionDenied, "outside the folders").await;
        }
    }
    bench.fails("glob", json!({"pattern": "*", "path": "nowhere"}), Code::ToolError, "does not exist").await;
}

#[test]
fn the_output_of_git_is_parsed() {
    let printed = "# branch.oid abc\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0\
        1 M. N... 100644 100644 100644 1 2 src/a b.rs\0\
        1 .D N... 100644 100644 100644 1 2 gone\0\
        2 R. N... 100644 100644 100644 1 2 R100 new\0old\0\
        u UU N... 1 2 3 4 5 6 7 both\0? extra\0! ignored\0";
    let status = serde_json::to_value(read(printed)).unwrap();
    let expected = json!({
        "branch": "main", "commit": "abc", "upstream": "origin/main", "ahead": 2, "behind": 1, "clean": false,
        "staged": [{"path": "src/a b.rs", "change": "modified"}, {"path": "new", "change": "renamed", "from": "old"}],
        "unstaged": [{"path": "gone", "change": "deleted"}],
        "untracked": ["extra"], "conflicts": ["both"],
    });
    assert_eq!(status, expected);
    let fresh = serde_json::to_value(read("# branch.oid (initial)\0# branch.head (detached)\0")).unwrap();
    assert_eq!(fresh, json!({"clean": true, "staged": [], "unstaged": [], "untracked": [], "conflicts": []}));
}

#[tokio::test]
async fn a_repository_above_the_roots_is_not_found() {
    let bench = Bench::of(add);
    git(bench.folder.path(), &["init", "-q"]).await;
    bench.fails("git_status", json!({}), Code::ToolError, "not a git repository").await;
    bench.put("inner/a", "");
    git(&bench.folder.path().join("root/inner"), &["init", "-q", "-b", "trunk"]).await;
    let status = bench.call("git_status", json!({"path": "inner"})).await.unwrap();
    assert_eq!((&status["branch"], &status["untracked"]), (&json!("trunk"), &json!(["a"])));
}

async fn git(folder: &std::path::Path, words: &[&str]) {
    let own = ["-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always"];
    let done = tokio::process::Command::new("git").args(own).args(words).current_dir(folder).status();
    assert!(done.await.unwrap().success(), "{words:?}");
}

/// A repository outside of the roots, with one file.
async fn elsewhere(bench: &Bench) -> std::path::PathBuf {
    let there = bench.folder.path().join("elsewhere");
    std::fs::create_dir(&there).unwrap();
    std::fs::write(there.join("private"), "").unwrap();
    git(&there, &["init", "-q", "-b", "trunk"]).await;
    git(&there, &["add", "."]).await;
    git(&there, &["commit", "-q", "-m", "m"]).await;
    there
}

#[tokio::test]
async fn a_repository_with_files_outside_the_roots_is_refused() {
    let bench = Bench::of(add);
    let there = elsewhere(&bench).await;
    let (root, shown) = (bench.folder.path().join("root"), there.display());
    git(&root, &["init", "-q", "tree"]).await;
    git(&root.join("tree"), &["config", "core.worktree", &there.display().to_string()]).await;
    bench.put("store/.git", format!("gitdir: {shown}/.git\n"));
    git(&root, &["init", "-q", "common"]).await;
    bench.put("common/.git/commondir", format!("{shown}/.git\n"));
    for path in ["tree", "store", "common"] {
        bench.fails("git_status", json!({"path": path}), Code::PermissionDenied, "outside the folders").await;
    }
}

#[tokio::test]
async fn linked_work_trees_and_submodules_are_accepted() {
    let bench = Bench::of(add);
    let there = elsewhere(&bench).await;
    let root = bench.folder.path().join("root");
    let linked = root.join("linked").display().to_string();
    git(&there, &["worktree", "add", "-q", "-b", "other", &linked]).await;
    bench.put("linked/new", "");
    let status = bench.call("git_status", json!({"path": "linked"})).await.unwrap();
    assert_eq!((&status["branch"], &status["untracked"]), (&json!("other"), &json!(["new"])));

    let above = bench.folder.path().to_owned();
    git(&above, &["init", "-q"]).await;
    git(&above, &["submodule", "--quiet", "add", &there.display().to_string(), "root/part"]).await;
    bench.put("part/private", "changed");
    let status = bench.call("git_status", json!({"path": "part"})).await.unwrap();
    assert_eq!(status["unstaged"], json!([{"path": "private", "change": "modified"}]));
}

#[tokio::test]
async fn no_program_that_a_repository_names_is_run() {
    let bench = Bench::of(add);
    let root = bench.folder.path().join("root");
    git(&root, &["init", "-q"]).await;
    bench.put("a", "one\n");
    git(&root, &["add", "a"]).await;
    let run = bench.folder.path().join("run");
    for (name, key) in [("x", "clean"), ("y=z", "process")] {
        git(&root, &["config", &format!("filter.{name}.{key}"), &format!("touch {}; cat", run.display())]).await;
        git(&root, &["config", &format!("filter.{name}.required"), "true"]).await;
    }
    bench.put(".gitattributes", "a filter=x\nb filter=y=z\n");
    bench.put("a", "two\n");
    let status = bench.call("git_status", json!({})).await.unwrap();
    assert_eq!(status["unstaged"], json!([{"path": "a", "change": "modified"}]));
    assert!(!run.exists(), "a filter of the repository was run");
}

#[tokio::test]
async fn an_endless_line_is_not_held_in_memory() {
    let bench = Bench::of(add);
    bench.put("a", "hit\n");
    bench.put("endless", "hit ".repeat(4 << 20));
    let found = bench.call("grep", json!({"pattern": "hit"})).await.unwrap();
    assert_eq!((&found["total_files"], &found["unsearched"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn names_that_are_not_text_are_handled() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::of(add);
    let odd = bench.folder.path().join("root").join(std::ffi::OsStr::from_bytes(b"d\xff"));
    let run = bench.folder.path().join("run");
    std::fs::create_dir(&odd).unwrap();
    std::os::unix::fs::symlink(odd.file_name().unwrap(), bench.folder.path().join("root/odd")).unwrap();
    git(&odd, &["init", "-q", "-b", "trunk"]).await;
    std::fs::write(odd.join("a"), "x").unwrap();
    git(&odd, &["add", "a"]).await;
    let config = [b"[filter \"\xff\"]\n\tclean = touch ", run.as_os_str().as_bytes(), b"; cat\n"].concat();
    let before = std::fs::read(odd.join(".git/config")).unwrap();
    std::fs::write(odd.join(".git/config"), [before, config].concat()).unwrap();
    std::fs::write(odd.join(".gitattributes"), b"a filter=\xff\n").unwrap();
    std::fs::write(odd.join("a"), "y").unwrap();
    let status = bench.call("git_status", json!({"path": "odd"})).await.unwrap();
    assert_eq!(status["branch"], "trunk");
    assert!(!run.exists(), "it was run");
}

#[test]
fn a_walk_ends_when_its_call_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "").unwrap();
    let roots = Roots::new(vec![folder.path().to_owned()]);
    let walk = Walk::at(&roots, roots.locate(".").unwrap()).unwrap();
    let visited = |stop: &Stop| {
        let count = AtomicUsize::new(0);
        walk.each(stop, || |_: &Path, _: &OsStr| _ = count.fetch_add(1, Ordering::Relaxed));
        count.into_inner()
    };
    let stop = Stop::default();
    assert_eq!(visited(&stop), 1);
    stop.set();
    assert_eq!(visited(&stop), 0);
}
