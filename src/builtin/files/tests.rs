use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::add;
use crate::builtin::testing::{Bench, at};
use crate::outcome::Code;

#[tokio::test]
async fn a_file_is_read_whole_or_by_lines() {
    let bench = Bench::of(add);
    bench.put("a.txt", "one\ntwo\nthree");
    let whole = json!({"content": "one\ntwo\nthree", "lines": 3, "size": 13, "total_lines": 3});
    assert_eq!(bench.call("read_file", at("a.txt")).await.unwrap(), whole);
    let part = bench.call("read_file", json!({"path": "a.txt", "offset": 2, "limit": 1})).await.unwrap();
    assert_eq!(part, json!({"content": "two\n", "lines": 1, "size": 13, "next_offset": 3}));
    let absolute = bench.folder.path().join("root/a.txt").display().to_string();
    assert_eq!(bench.call("read_file", at(&absolute)).await.unwrap(), whole);
    bench.fails("read_file", json!({"path": "a.txt", "offset": 9}), Code::ToolError, "has 3 lines").await;
    bench.put("empty", "");
    assert_eq!(bench.call("read_file", at("empty")).await.unwrap()["total_lines"], 0);
}

#[tokio::test]
async fn a_long_file_is_returned_in_parts() {
    let bench = Bench::of(add);
    // A line ends exactly at the limit.
    let line = "x".repeat(1023) + "\n";
    bench.put("long", line.repeat(1000));
    let part = bench.call("read_file", at("long")).await.unwrap();
    assert_eq!((&part["lines"], &part["next_offset"]), (&json!(256), &json!(257)));
    let last = bench.call("read_file", json!({"path": "long", "offset": 900})).await.unwrap();
    assert_eq!((&last["lines"], &last["total_lines"]), (&json!(101), &json!(1000)));
    bench.put("uneven", "abc\n".to_owned() + &line.repeat(300));
    let part = bench.call("read_file", at("uneven")).await.unwrap();
    assert_eq!((&part["lines"], &part["next_offset"]), (&json!(256), &json!(257)), "no line is cut");
    assert_eq!(part["content"].as_str().unwrap(), "abc\n".to_owned() + &line.repeat(255));
    bench.put("one-line", "y".repeat(300_000));
    bench.fails("read_file", at("one-line"), Code::ToolError, "line 1 of …/root/one-line").await;
}

#[tokio::test]
async fn other_encodings_are_read_and_binary_files_are_refused() {
    let bench = Bench::of(add);
    bench.put("latin", b"na\xefve");
    bench.fails("read_file", at("latin"), Code::ToolError, "`encoding`").await;
    let read = bench.call("read_file", json!({"path": "latin", "encoding": "latin1"})).await.unwrap();
    assert_eq!(read["content"], "naïve");
    bench.put("wide", b"\xff\xfeh\0i\0");
    assert_eq!(bench.call("read_file", at("wide")).await.unwrap()["content"], "hi");
    bench.put("picture", b"\x89PNG\r\n\x1a\n\0\0");
    bench.fails("read_file", at("picture"), Code::ToolError, "is binary (10 bytes)").await;
    let odd = json!({"path": "latin", "encoding": "klingon"});
    bench.fails("read_file", odd, Code::InvalidParams, "`klingon`").await;
}

#[tokio::test]
async fn no_path_leads_outside_the_roots() {
    let bench = Bench::of(add);
    let outside = bench.folder.path().join("secret");
    std::fs::write(&outside, "s3cret").unwrap();
    let root = bench.folder.path().join("root");
    symlink(&outside, root.join("link")).unwrap();
    symlink("../secret", root.join("relative")).unwrap();
    symlink("..", root.join("up")).unwrap();
    std::fs::create_dir(root.join("sub")).unwrap();
    let names = ["link", "relative", "up/secret", "../secret", "sub/../../secret", "/etc/passwd"];
    for name in names.into_iter().chain([outside.to_str().unwrap()]) {
        for (tool, mut arguments) in [
            ("read_file", at(name)),
            ("write_file", json!({"content": "x", "mode": "overwrite"})),
            ("write_file", json!({"content": "x", "mode": "append"})),
            ("file_edit", json!({"old_text": "s", "new_text": "x"})),
            ("list_directory", at(name)),
        ] {
            arguments["path"] = name.into();
            let (code, message) = bench.fault(tool, arguments).await;
            assert!(code == Code::PermissionDenied, "{tool} {name}: {code} {message}");
            assert!(message.contains("(…/root)"), "{tool}: {message}");
        }
    }
    bench.fails("delete_file", at("up/secret"), Code::PermissionDenied, "outside").await;
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "s3cret");
    // The link itself is inside, so it may be deleted.
    bench.call("delete_file", at("link")).await.unwrap();
    assert!(outside.exists());
}

#[tokio::test]
async fn a_link_within_the_roots_is_followed() {
    let bench = Bench::of(add);
    bench.put("real/a.txt", "one\n");
    symlink("real", bench.folder.path().join("root/way")).unwrap();
    symlink("real/a.txt", bench.folder.path().join("root/name")).unwrap();
    assert_eq!(bench.call("read_file", at("way/a.txt")).await.unwrap()["content"], "one\n");
    bench.call("file_edit", json!({"path": "name", "old_text": "one", "new_text": "two"})).await.unwrap();
    assert_eq!(bench.text("real/a.txt"), "two\n");
    assert!(bench.folder.path().join("root/name").symlink_metadata().unwrap().is_symlink(), "it is still a link");
}

#[tokio::test]
async fn a_pipe_is_refused_without_blocking() {
    let bench = Bench::of(add);
    let pipe = bench.folder.path().join("root/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    bench.fails("read_file", at("pipe"), Code::ToolError, "not a regular file").await;
    let append = json!({"path": "pipe", "content": "x", "mode": "append"});
    let (code, _) = bench.fault("write_file", append).await;
    assert_eq!(code, Code::ToolError);
    bench.fails("read_file", at("."), Code::ToolError, "is a folder").await;
    bench.fails("read_file", at("absent"), Code::ToolError, "does not exist").await;
    bench.fails("read_file", at("a\0b"), Code::InvalidParams, "NUL").await;
}

#[tokio::test]
async fn a_file_is_written_whole_and_never_lost() {
    let bench = Bench::of(add);
    let write = |mode: &str, content: &str| json!({"path": "new/a.txt", "content": content, "mode": mode});
    let made = bench.call("write_file", write("create", "one")).await.unwrap();
    assert_eq!((&made["bytes"], &made["created"]), (&json!(3), &json!(true)));
    bench.fails("write_file", write("create", "two"), Code::ToolError, "exists already").await;
    assert_eq!(bench.text("new/a.txt"), "one");
    let path = bench.folder.path().join("root/new/a.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(bench.call("write_file", write("overwrite", "two")).await.unwrap()["created"], false);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "its mode stays");
    bench.call("write_file", write("append", " three")).await.unwrap();
    assert_eq!(bench.text("new/a.txt"), "two three");
    for mode in ["create", "overwrite", "append"] {
        let folder = json!({"path": "new", "content": "x", "mode": mode});
        bench.fails("write_file", folder, Code::ToolError, "new is a folder").await;
    }
    symlink("nowhere", bench.folder.path().join("root/gone")).unwrap();
    for mode in ["create", "overwrite", "append"] {
        let below = json!({"path": "gone/a", "content": "x", "mode": mode});
        bench.fails("write_file", below, Code::ToolError, "gone/a: ").await;
    }
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no draft is left: {left:?}");
}

#[tokio::test]
async fn an_edit_is_exact_and_returns_a_diff() {
    let bench = Bench::of(add);
    bench.put("a.py", "def a():\n    return 1\n\ndef b():\n    return 1\n");
    let edit =
        |old: &str, new: &str, all: bool| json!({"path": "a.py", "old_text": old, "new_text": new, "replace_all": all});
    let done = bench.call("file_edit", edit("def b", "def c", false)).await.unwrap();
    let diff =
        "--- a.py\n+++ a.py\n@@ -1,5 +1,5 @@\n def a():\n     return 1\n \n-def b():\n+def c():\n     return 1\n";
    assert_eq!((&done["replacements"], &done["diff"]), (&json!(1), &json!(diff)));
    let wrong = Code::ToolError;
    bench.fails("file_edit", edit("return 1", "return 2", false), wrong, "2 times, in lines 2, 5").await;
    bench.fails("file_edit", edit("return 7", "x", false), wrong, "read the file again").await;
    bench.fails("file_edit", edit("def a():\n\treturn 1", "x", false), wrong, "with its white space").await;
    bench.fails("file_edit", edit("", "x", false), wrong, "is empty").await;
    bench.fails("file_edit", edit("def a", "def a", false), wrong, "are the same").await;
    assert_eq!(bench.call("file_edit", edit("return 1", "return 2", true)).await.unwrap()["replacements"], 2);
    assert_eq!(bench.text("a.py"), "def a():\n    return 2\n\ndef c():\n    return 2\n");
    bench.put("dos.txt", "one\r\ntwo\r\n");
    let dos = json!({"path": "dos.txt", "old_text": "one\ntwo", "new_text": "1\n2"});
    bench.call("file_edit", dos).await.unwrap();
    assert_eq!(bench.text("dos.txt"), "1\r\n2\r\n", "ends of lines stay what they are");
}

#[tokio::test]
async fn a_folder_is_listed_to_the_given_depth() {
    let bench = Bench::of(add);
    bench.put("b.txt", "12345");
    bench.put("a/c/d.txt", "");
    symlink("b.txt", bench.folder.path().join("root/l")).unwrap();
    let names = |listed: &Value| -> Vec<String> {
        let entry = |entry: &Value| format!("{}:{}", entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap());
        listed["entries"].as_array().unwrap().iter().map(entry).collect()
    };
    let flat = bench.call("list_directory", json!({})).await.unwrap();
    assert_eq!(names(&flat), ["a:directory", "b.txt:file", "l:link"]);
    assert_eq!(flat["entries"][1]["size"], 5);
    let deep = bench.call("list_directory", json!({"depth": 3})).await.unwrap();
    assert_eq!(names(&deep), ["a:directory", "a/c:directory", "a/c/d.txt:file", "b.txt:file", "l:link"]);
    let part = bench.call("list_directory", json!({"limit": 2})).await.unwrap();
    assert_eq!((names(&part).len(), &part["more"]), (2, &json!(true)));
    bench.fails("list_directory", at("b.txt"), Code::ToolError, "is a file").await;
    bench.fails("delete_file", at("a"), Code::ToolError, "is a folder").await;
}

#[tokio::test]
async fn concurrent_edits_are_all_made() {
    let bench = Bench::of(add);
    let lines = (0..24).map(|number| format!("line {number}.\n")).collect::<Vec<_>>().concat();
    bench.put("a", &lines);
    symlink("a", bench.folder.path().join("root/other")).unwrap();
    let edit = |number: u32| {
        let path = if number.is_multiple_of(2) { "a" } else { "other" };
        let edit = json!({"path": path, "old_text": format!("line {number}."), "new_text": format!("done {number}.")});
        bench.call("file_edit", edit)
    };
    let mut made = 0;
    let mut edits: Vec<_> = (0..24).map(|number| Box::pin(edit(number))).collect();
    std::future::poll_fn(|context| {
        edits.retain_mut(|edit| match edit.as_mut().poll(context) {
            std::task::Poll::Ready(done) => {
                made += usize::from(done.is_ok());
                false
            }
            std::task::Poll::Pending => true,
        });
        if edits.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!((made, bench.text("a")), (24, lines.replace("line", "done")));
}

#[tokio::test]
async fn a_read_only_file_is_not_replaced() {
    let bench = Bench::of(add);
    bench.put("a", "one");
    let root = bench.folder.path().join("root");
    std::fs::set_permissions(root.join("a"), std::fs::Permissions::from_mode(0o444)).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let write = |path: &str| json!({"path": path, "content": "x", "mode": "overwrite"});
    bench.fails("write_file", write("a"), Code::PermissionDenied, "`chmod`").await;
    bench.fails("write_file", write("pipe"), Code::ToolError, "not a regular file").await;
    let append = json!({"path": "pipe", "content": "x", "mode": "append"});
    bench.fails("write_file", append, Code::ToolError, "not a regular file").await;
    let edit = json!({"path": "a", "old_text": "one", "new_text": "two"});
    bench.fails("file_edit", edit, Code::PermissionDenied, "chmod").await;
    assert_eq!(bench.text("a"), "one");
    assert_eq!(std::fs::read_dir(root).unwrap().count(), 2, "no draft is left");
}

#[tokio::test]
async fn other_changes_do_not_wait_for_a_diff() {
    let bench = Bench::of(add);
    bench.put("large", (0..30_000).map(|number| format!("x{number}\n")).collect::<Vec<_>>().concat());
    let edit = bench.call("file_edit", json!({"path": "large", "old_text": "x", "new_text": "y", "replace_all": true}));
    let other = async {
        while !bench.text("large").starts_with('y') {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let begun = std::time::Instant::now();
        bench.call("write_file", json!({"path": "other", "content": "z", "mode": "append"})).await.unwrap();
        begun.elapsed()
    };
    // The diff takes its whole limit of two seconds.
    let (edited, waited) = tokio::join!(edit, other);
    assert_eq!(edited.unwrap()["replacements"], 30_000);
    assert!(waited < std::time::Duration::from_secs(1), "{waited:?}");
}
