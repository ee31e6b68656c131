# /// script
# requires-python = ">=3.10"
# dependencies = ["ruff>=0.8", "mypy>=1.13", "pytest>=8"]
#
# [tool.hostler]
# timeout = "10m"
# ///
"""Look after Python code: lint it, check its types, run its tests."""
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal


def _run(words: list[str], folder: Path, limit: int) -> subprocess.CompletedProcess:
    """Run a program of this environment. Nothing is handed to a shell, and no path can be taken for an option."""
    return subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, timeout=limit)


def _folder_and_name(path: str) -> tuple[Path, str]:
    whole = Path(path).expanduser().absolute()
    if not whole.exists():
        raise FileNotFoundError(f"{whole} does not exist")
    return (whole, ".") if whole.is_dir() else (whole.parent, f".{os.sep}{whole.name}")


def run_linter(path: str, checker: Literal["ruff", "mypy"] = "ruff") -> dict:
    """Lint Python code, or check its types.

    Args:
        path: A file, or a folder of code.
        checker: ruff for mistakes and style, mypy for types.
    """
    folder, name = _folder_and_name(path)
    if checker == "mypy":
        done = _run(["mypy", "--output=json", "--no-error-summary", "--", name], folder, 300)
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        problems = [
            {"file": each["file"], "line": each["line"], "rule": each.get("code"), "message": each["message"]} for each in found
        ]
    else:
        done = _run(["ruff", "check", "--output-format=json", "--no-cache", "--", name], folder, 300)
        found = json.loads(done.stdout or "[]")
        problems = [
            {
                "file": os.path.relpath(each["filename"], folder),
                "line": each["location"]["row"],
                "rule": each.get("code"),
                "message": each["message"],
            }
            for each in found
        ]
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{checker} could not run: {(done.stderr or done.stdout).strip()[-2000:]}")
    return {"clean": not problems, "problems": problems}


def run_tests(path: str, keyword: str = "", limit: int = 300) -> dict:
    """Run the tests of Python code with pytest.

    Args:
        path: A file of tests, or a folder.
        keyword: Only tests whose names fit, such as `parse and not slow`.
        limit: How many seconds they may take.
    """
    folder, name = _folder_and_name(path)
    words = ["pytest", "-q", "--color=no", "-p", "no:cacheprovider", "-rfE", "--tb=short"]
    words += [f"-k={keyword}"] if keyword else []
    try:
        done = _run([*words, "--", name], folder, limit)
    except subprocess.TimeoutExpired:
        return {"passed": False, "exit_code": -1, "output": f"the tests did not end within {limit} s"}
    output = (done.stdout + done.stderr)[-20_000:]
    return {"passed": done.returncode == 0, "exit_code": done.returncode, "output": output}
