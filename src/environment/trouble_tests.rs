use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::environment::failure::reason;
use crate::environment::in_force::quiet;

const HEADER: &str = "requires-python = \">=3.11,<3.11.0\"\ndependencies = [\n  \"rich==99\",\n  \"httpx==0.27.0\",\n  \
                      \"httpcore==0.9\",\n  \"x @ https://e.org/x.whl\",\n  \"pywin32\",\n  \
                      \"six>2,<1\",\n  \"httpx==0.28\",\n  \"BeautifulSoup\",\n  \"sklearn\",\n  \"psycopg2\",\n]\n[tool.uv]\nindexx = 3\n";

fn told(stderr: &str) -> String {
    told_with(stderr, &[])
}

fn told_with(stderr: &str, variables: &[(&str, &str)]) -> String {
    let file = PathBuf::from("a.py");
    let header = Metadata::from_toml(HEADER, 2, &Arc::new(file.clone())).unwrap();
    let settings = quiet(variables);
    let trouble = Trouble {
        file: &file,
        is_locked: false,
        header: Some(&header),
        settings: &settings,
        pythons: &[],
        reason: &reason(stderr),
        stderr,
    };
    trouble.told().unwrap_or_else(|| "nothing".to_owned())
}

#[test]
fn each_trouble_names_the_dependency_its_line_and_the_next_step() {
    let cases = [
        "error: Because rich was not found in the package registry and you require rich, we can conclude …",
        "error: Because cv2 was not found in the package registry and y depends on cv2, we can conclude …",
        "error: Because there is no version of rich==99 and you require rich==99, we can conclude …",
        "error: Because only rich<=14.0 is available and you require rich>=99, we can conclude …",
        "error: Because only the following versions of rich are available:\n          rich<=14.0\n          rich==14.1\n      and you \
         require rich>=99, we can conclude …",
        "error: Because httpx==0.27.0 depends on httpcore==1.* and you require httpx==0.27.0, we can conclude that you \
         require httpcore==1.*. And because you require httpcore==0.9, we can conclude …",
        "error: Because the requested Python version (>=3.9) does not satisfy Python>=3.11 and rich==99 depends on \
         Python>=3.11, we can conclude …",
        "error: No solution found\n  cause: Because you require httpx==0.27.0 and httpx==0.28, we can conclude …",
        "  × No solution found when resolving dependencies:\n  ╰─▶ you require six ∅\n",
        "error: No solution found\n  cause: you require six<1 and six>2, which are incompatible",
        "error: Failed to build `rich==99`\n  cause: Call to `x` failed\n[stderr]\n  a.h:1:2: fatal error: lber.h: No such file or \
         directory\n  error: Command '['gcc']' returned non-zero exit status 1.\n",
        "error: Failed to parse `uv.lock`\n  cause: TOML parse error at line 7, column 9\n   |\n 7 | <<<<<<< HEAD\n   |         ^\n\
         key with no value, expected `=`\n",
        "error: Failed to parse `uv.lock`\n  cause: TOML parse error at line 1, column 1\n   |\n 1 |\n   | ^\nmissing field `version`\n",
        "error: failed to read from file `/s/script.py.lock`: stream did not contain valid UTF-8\n",
        "error: The lockfile at `uv.lock` uses an unsupported schema version (v99, but only v1 is supported).\n",
        "error: Failed to build `rich==99`\n  cause: Call to `x` failed\n[stderr]\nTraceback\nRuntimeError: no compiler\n",
        "error: Failed to download `x @ https://e.org/x.whl`",
        "error: Failed to download `x @ https://e.org/x.whl`\n  cause: HTTP status client error (401 Unauthorized) for url \
         (https://e.org/x.whl)",
        "error: Failed to download `x @ https://e.org/x.whl`\n  cause: HTTP status client error (403 Forbidden) for url \
         (https://e.org/x.whl)",
        "error: Failed to inspect Python interpreter from search path at `/shims/python3.10`\n  cause: not found",
        "error: TOML parse error at line 4, column 1\n  |\n4 | [tool.uv]\n  | ^^^^^^^^^\nunknown field `indexx`\n",
        "error: Something new",
    ];
    insta::assert_snapshot!(cases.map(told).join("\n"));
}

#[test]
fn a_package_that_builds_nowhere_any_more_needs_no_compiler() {
    let failed =
        |what: &str, why: &str| told(&format!("error: Failed to build `{what}`\n  cause: x\n[stderr]\n{why}\n"));
    let told = [
        failed("httpx==0.1", "SyntaxError: invalid syntax"),
        failed("beautifulsoup==3.2.2", "SyntaxError: invalid syntax"),
        failed("sklearn==0.0.post12", "The 'sklearn' PyPI package is deprecated"),
        failed("pil==1", "SyntaxError: invalid syntax"),
        failed("psycopg2==2.9", "x.c:1:2: fatal error: libpq-fe.h: No such file or directory"),
        failed("rich==99", "error in rich setup command: use_2to3 is invalid."),
        failed("rich==99", "ModuleNotFoundError: No module named 'ConfigParser'"),
        failed("rich==99", "ModuleNotFoundError: No module named 'numpy'"),
    ];
    insta::assert_snapshot!(told.join("\n"));
    for gone in ["commands", "urllib2", "__builtin__", "StringIO", "cPickle", "HTMLParser"] {
        let told = failed("rich==99", &format!("ModuleNotFoundError: No module named '{gone}'"));
        assert!(told.contains("is most likely for Python 2"), "{told}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn whatever_part_of_pyobjc_fails_first_it_is_for_macos() {
    let file = PathBuf::from("a.py");
    let header = "dependencies = [\n  \"pyobjc-framework-Cocoa\",\n]\n";
    let header = Metadata::from_toml(header, 2, &Arc::new(file.clone())).unwrap();
    for part in ["pyobjc-core==13.0", "pyobjc-framework-cocoa==13.0"] {
        let stderr =
            format!("error: Failed to build `{part}`\n[stderr]\nFileNotFoundError: [Errno 2] No: '/usr/bin/sw_vers'\n");
        let settings = quiet(&[]);
        let (reason, header) = (&reason(&stderr), Some(&header));
        let trouble = Trouble {
            file: &file,
            is_locked: false,
            header,
            settings: &settings,
            pythons: &[],
            reason,
            stderr: &stderr,
        };
        let told = trouble.told().unwrap().to_lowercase();
        assert!(told.starts_with("pyobjc-framework-cocoa (a.py:3) is for macos only, not for linux"), "{told}");
        assert!(told.contains("\"pyobjc-framework-cocoa; sys_platform == 'darwin'\""), "{told}");
    }
}

#[test]
fn an_index_that_is_not_the_usual_one_is_named_first() {
    let reasons = [
        "error: No solution found\n  cause: Because rich was not found in the package registry and you require rich==99, …",
        "error: No solution found\n  cause: Because there is no version of rich==99 and you require rich==99, …",
        "error: No solution found\n  cause: Because there are no versions of rich and you require rich, …",
    ];
    let index = ("UV_DEFAULT_INDEX", "https://me:pw@i.org/simple");
    let all = reasons.map(|stderr| told_with(stderr, &[index])).join("\n");
    insta::assert_snapshot!(format!("{all}\n{}", told(reasons[2])));
}

#[test]
#[cfg(target_os = "linux")]
fn a_package_for_another_system_is_told_in_one_sentence() {
    let stderr = "error: No solution found\n  cause: Because …\n\nhint: You require CPython 3.11 (`cp311`), but …\n\nhint: Wheels \
                  are available for `pywin32` (v312) on the following platforms: `win32`, `win_amd64`\n";
    let arch = std::env::consts::ARCH;
    assert_eq!(
        told(stderr),
        format!(
            "pywin32 (a.py:8) has packages for Windows only, not for Linux {arch} (Python 3.11). Take another package, or \
             mark it: \"pywin32; sys_platform == 'win32'\", and import it only there, below `if sys.platform == \"win32\":`"
        )
    );
}

#[test]
#[cfg(target_os = "linux")]
fn lines_that_are_broken_anywhere_say_the_same() {
    let stderr = "  × No solution found when resolving dependencies:\n  ╰─▶ Because only the following versions of pywin32 are\n      \
                  available:\n\n      hint: Wheels are available for `pywin32` (v312) on the following\n      platforms: `win32`, \
                  `win_amd64`\n";
    assert!(
        told(stderr).starts_with("pywin32 (a.py:8) has packages for Windows only, not for Linux"),
        "{}",
        told(stderr)
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_package_that_only_another_system_builds_needs_no_compiler() {
    let stderr = "error: Failed to build `pywin32==13.0`\n  cause: The build backend returned an error\n[stderr]\n  error: this \
                  requires Windows to build\n";
    let unnamed = told(&stderr.replace("pywin32", "winstuff"));
    assert!(unnamed.starts_with("winstuff, which one of the dependencies needs, is for Windows only"), "{unnamed}");
    assert!(unnamed.contains("Take another version of the dependency that needs it, or do without"), "{unnamed}");
    let told = told(stderr);
    assert!(told.starts_with("pywin32 (a.py:8) is for Windows only, not for Linux"), "{told}");
    assert!(told.ends_with("and import it only there, below `if sys.platform == \"win32\":`"), "{told}");
}

#[test]
fn a_password_in_an_address_is_not_told() {
    assert_eq!(without_password("x @ https://me:pw@e.org/x@1.whl"), "x @ https://****@e.org/x@1.whl");
    assert_eq!(without_password("x @ https://e.org/x@1.whl"), "x @ https://e.org/x@1.whl");
    assert_eq!(without_password("rich==1"), "rich==1");
}
