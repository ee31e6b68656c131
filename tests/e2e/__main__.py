"""Runs the end-to-end tests: `scripts/test e2e`, `scripts/test e2e test_pool`, `scripts/test e2e test_pool.Limits -v`.

`scripts/test shared` runs them with one hostler for all clients (shared_mode.py).

Test files run side by side, each in a process of its own, except those that measure how long an end takes.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import shared_mode

HERE = Path(__file__).resolve().parent
# They compare times with limits that people rely on.
ALONE = ["test_exits", "test_orphans", "test_interrupted", "test_terminal", "test_container"]
# The longest begin first, so that none is left running by itself.
LONG = ["test_table", "test_author", "test_storm", "test_kinds", "test_examples"]
# Tests mostly wait: for interpreters, for limits to pass.
AT_ONCE = 3


def run(name, extra=()):
    began = time.monotonic()
    words = [sys.executable, "-m", "unittest", *extra, *([name] if name else [])]
    done = subprocess.run(words, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "PYTHONPATH": str(HERE)}, timeout=900)
    return name, done.returncode, done.stdout, time.monotonic() - began


def tell(result):
    name, status, output, seconds = result
    if status:
        print(output, file=sys.stderr)
    last = [line for line in output.splitlines() if line.startswith(("Ran ", "OK", "FAILED"))]
    print(f"   {name:26} {seconds:5.1f} s  {'; '.join(last)}", file=sys.stderr)
    return status


def is_concerned(path):
    """Whether a file has tests that differ in this mode: those that start hostler as a server."""
    if not shared_mode.IS_ON:
        return True
    return path.stem not in shared_mode.STANDALONE and any(word in path.read_text() for word in ("Wire(", "connected("))


def main(arguments):
    names = [word for word in arguments if not word.startswith("-")]
    if names:  # as unittest understands it, told as it goes
        return subprocess.run([sys.executable, "-m", "unittest", *arguments], cwd=HERE, env={**os.environ, "PYTHONPATH": str(HERE)}).returncode
    files = sorted(path.stem for path in HERE.glob("test_*.py") if is_concerned(path))
    together = [name for name in LONG if name in files] + [name for name in files if name not in ALONE + LONG]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = [tell(result) for result in pool.map(lambda name: run(name, arguments), together)]
    statuses += [tell(run(name, arguments)) for name in ALONE if name in files]
    return 1 if any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
