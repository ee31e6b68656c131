use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::environment::failure::reason;

const HEADER: &str = "requires-python = \">=3.11,<3.11.0\"\ndependencies = [\n  \"rich==99\",\n  \"httpx==0.27.0\",\n  \
                      \"httpcore==0.9\",\n  \"x @ https://e.org/x.whl\",\n  \"pywin32\",\n]\n[tool.uv]\nindexx = 3\n";

fn told(stderr: &str) -> String {
    let file = PathBuf::from("a.py");
    let header = Metadata::from_toml(HEADER, 2, &Arc::new(file.clone())).unwrap();
    let trouble = Trouble { file: &file, header: Some(&header), reason: &reason(stderr), stderr };
    trouble.told().unwrap_or_else(|| "nothing".to_owned())
}

#[test]
fn each_trouble_names_the_dependency_its_line_and_the_next_step() {
    let cases = [
        "error: Because rich was not found in the package registry and you require rich, we can conclude …",
        "error: Because cv2 was not found in the package registry and y depends on cv2, we can conclude …",
        "error: Because there is no version of rich==99 and you require rich==99, we can conclude …",
        "error: Because only rich<=14.0 is available and you require rich>=99, we can conclude …",
        "error: Because httpx==0.27.0 depends on httpcore==1.* and you require httpx==0.27.0, we can conclude that you \
         require httpcore==1.*. And because you require httpcore==0.9, we can conclude …",
        "error: Because the requested Python version (>=3.9) does not satisfy Python>=3.11 and rich==99 depends on \
         Python>=3.11, we can conclude …",
        "error: Failed to build `rich==99`\n  cause: Call to `x` failed\n[stderr]\nTraceback\nRuntimeError: no compiler\n",
        "error: Failed to download `x @ https://e.org/x.whl`",
        "error: Failed to inspect Python interpreter from search path at `/shims/python3.10`\n  cause: not found",
        "error: TOML parse error at line 4, column 1\n  |\n4 | [tool.uv]\n  | ^^^^^^^^^\nunknown field `indexx`\n",
        "error: Something new",
    ];
    insta::assert_snapshot!(cases.map(told).join("\n"));
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
             mark it: \"pywin32; sys_platform == 'win32'\""
        )
    );
}

#[test]
fn a_password_in_an_address_is_not_told() {
    assert_eq!(without_password("x @ https://me:pw@e.org/x@1.whl"), "x @ https://****@e.org/x@1.whl");
    assert_eq!(without_password("x @ https://e.org/x@1.whl"), "x @ https://e.org/x@1.whl");
    assert_eq!(without_password("rich==1"), "rich==1");
}

#[test]
fn a_range_that_no_python_is_in() {
    assert!(!some_python_fits(">=3.11,<3.11.0") && !some_python_fits(">3.12,<3.11"));
    assert!(some_python_fits(">=3.9") && some_python_fits(">=4.0") && some_python_fits("==3.11.4"));
}
