"""What hostler does where the system gives it no more: processes, threads."""

import contextlib
import os
import subprocess
import time
import unittest
from pathlib import Path

from harness import HEADER, META, config_file, eventually
from unprivileged import Account
from wire import OPENING, Wire, call, request

# A user without other processes: the limit counts all of a user's.
LONELY = 64_731


def processes():
    """What the limit counts: zombies, too, until init has taken note of them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines = (folder / "status").read_text().splitlines()
            if any(line.split()[:2] == ["Uid:", str(LONELY)] for line in lines):
                found.append(int(folder.name))
    return found


class Processes(unittest.TestCase):
    """`ulimit -u`: each thread counts."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root may become a user without other processes")
        eventually(lambda: not processes(), "the processes of earlier tests are gone, zombies too", limit=60)
        self.account = Account(self, LONELY)
        self.account.tool("plain.py", HEADER + "def echo(text: str) -> str:\n    return text\n")
        program = '#!/bin/sh\nif [ "$1" = --schema ]; then echo \'{"name": "say", "description": "Says.", "inputSchema": {"type": "object"}}\'; else echo 7; fi\n'
        self.account.tool("say", program, 0o755)
        (self.account.home / "file").write_text("content")
        self.config = config_file(self.account.folder, f'[builtin]\nenable = ["read_file", "bash"]\nroots = ["{self.account.home}"]\n')
        self.config.chmod(0o644)

    def serve(self, limit):
        words = ["prlimit", f"--nproc={limit}:{limit}", "--", *self.account.become, self.account.hostler]
        # The pipes belong to root: hostler cannot open them again.
        return Wire(self.account.tools, env=self.account.env, arguments=["--config", str(self.config)],
                    cwd=self.account.folder, program=words)

    def outcome(self, hostler, number, name, **arguments):
        hostler.send(call(number, name, **arguments))
        result = hostler.answer(number)["result"]
        return "" if not result.get("isError") else result["_meta"][META]["error"]["code"]

    def test_every_request_is_answered_at_once_whatever_the_limit(self):
        seen = set()
        # From where hostler just starts to where everything works.
        for limit in [*range(2, 17), 32]:
            with self.subTest(limit), self.serve(limit) as hostler:
                hostler.open()
                began = time.monotonic()
                hostler.send(request(1, "tools/list"))
                names = {tool["name"] for tool in hostler.answer(1)["result"]["tools"]}
                self.assertLessEqual({"plain_echo", "read_file", "bash"}, names)
                calls = {"read_file": {"path": "file"}, "bash": {"command": "true"}, "say": {}, "plain_echo": {"text": "a"}}
                for number, (name, arguments) in enumerate(calls.items(), 10):
                    code = self.outcome(hostler, number, name, **arguments)
                    seen.add((name, code))
                    self.assertIn(code, ("", "RESOURCE_EXHAUSTED"), name)
                self.assertLess(time.monotonic() - began, 30)
                hostler.end_input()
                self.assertEqual(hostler.ended(5), 0)
                self.assertNotIn("panicked", hostler.stderr())
        for name in ("read_file", "bash", "say", "plain_echo"):
            self.assertIn((name, ""), seen, "and with enough of them it works")
            self.assertIn((name, "RESOURCE_EXHAUSTED"), seen)

    def call(self, *limits, tool="plain.echo", arguments=("text=a",)):
        before = ["prlimit", *limits, "--"] if limits else []
        words = [*before, *self.account.become, self.account.hostler, "call", tool, *arguments, "--tools", str(self.account.tools)]
        return subprocess.run(words, env=self.account.env, cwd=self.account.folder, capture_output=True, text=True, timeout=60)

    def test_few_open_files_are_named(self):
        for limit in (5, 6, 8, 10, 12, 16, 20, 24):
            with self.subTest(limit):
                done = self.call(f"--nofile={limit}:{limit}")
                self.assertIn(done.returncode, (70,) if limit < 16 else (6,), done.stderr)
                self.assertIn("ulimit -n", done.stderr)
                self.assertNotIn("panicked at src/", done.stderr)  # uv panics too, in its own files
        self.assertEqual(self.call().stdout, "a\n")

    def test_a_server_with_few_open_files_names_the_limit(self):
        self.assertEqual(self.call().returncode, 0)  # the environment is built
        said = set()
        for limit in range(17, 41):
            words = ["prlimit", f"--nofile={limit}:{limit}", "--", *self.account.become, self.account.hostler]
            with self.subTest(limit), Wire(self.account.tools, env=self.account.env, cwd=self.account.folder, program=words) as hostler:
                hostler.send(OPENING + call(1, "plain_echo", text="a"))
                try:
                    hostler.answer(0)
                    result = hostler.answer(1).get("result", {})
                except EOFError:
                    self.assertIn("ulimit -n", hostler.stderr())
                    continue
                error = result.get("_meta", {}).get(META, {}).get("error") or {}
                said.add(error.get("code"))
                self.assertIn(error.get("code"), (None, "RESOURCE_EXHAUSTED"), error)
                self.assertIn("ulimit -n", error.get("message", "ulimit -n"))
        self.assertIn("RESOURCE_EXHAUSTED", said)

    def test_small_files_are_named(self):
        for limit in (0, 1000):
            with self.subTest(limit):
                done = self.call(f"--fsize={limit}:{limit}")
                self.assertEqual(done.returncode, 6, done.stderr)
                self.assertIn("RESOURCE_EXHAUSTED: ", done.stderr)
                self.assertIn("ulimit -f", done.stderr)

    def test_a_home_folder_that_is_read_only(self):
        self.account.home.chmod(0o555)
        beside = self.account.folder / "tmp"
        beside.mkdir()
        self.account.own(beside)
        self.account.env["TMPDIR"] = str(beside)
        done = self.call()
        self.assertEqual((done.returncode, done.stdout), (0, "a\n"), done.stderr)
        self.assertTrue((beside / f"hostler-{LONELY}").is_dir())
        self.assertEqual(list(self.account.home.iterdir()), [self.account.home / "file"])


if __name__ == "__main__":
    unittest.main()
