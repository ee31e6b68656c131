"""Tools whose processes are started by a command of the operator's: in containers, in namespaces, by wrappers."""

import json
import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from families import below
from harness import config_file, eventually, gone, run, write_tool
from launched import Launched
from wire import Wire, call

ELSEWHERE = Path(__file__).resolve().parent / "elsewhere.py"
class Elsewhere(Launched):
    """Behind a launcher whose program is not below it."""

    def setUp(self):
        super().setUp()
        self.socket = self.folder / "socket"
        server = subprocess.Popen([sys.executable, str(ELSEWHERE), str(self.socket)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertEqual(server.stdout.readline(), "ready\n")
        self.server = server.pid
        self.start()

    def start(self, more=""):
        self.config = self.set([sys.executable, str(ELSEWHERE), "run", str(self.socket), "--name={name}", "--at={directory}", ["--path={path}"],
                                ["--env={variable}"], "--"], more)

    def serve(self):
        return Wire(self.tools, env=self.env, arguments=["--config", str(self.config)], cwd=self.folder)

    def test_a_python_tool_is_started_there(self):
        seen = self.value("far.look")
        self.assertEqual(seen["parent"], self.server)
        self.assertEqual(seen["helper"], "beside")
        self.assertIn("KEY", seen["env"])
        self.assertNotIn("HOME", seen["env"], "what the launcher itself needs stays with it")

    def test_executables_and_commands_are_started_there(self):
        self.assertEqual(self.value("program"), {"parent": self.server, "key": "value", "home": ""})
        done = self.value("bash", "command=echo $PPID")
        self.assertEqual(done["stdout"], f"{self.server}\n", done)

    def test_its_words_name_what_the_program_needs(self):
        with self.serve() as hostler:
            hostler.open()
            hostler.value(1, "far_pid")
            launcher = next(pid for pid in below(hostler.supervisor) if b"--name=far" in words_of(pid))
            words = words_of(launcher).decode().split("\0")
        paths = [Path(word.partition("=")[2]) for word in words if word.startswith("--path=")]
        command = words[words.index("--") + 1:]
        for needed in [self.tools, *(Path(word) for word in command if word.startswith("/"))]:
            self.assertTrue(any(needed.is_relative_to(path) for path in paths), f"{needed} is not below any of {paths}")
        self.assertIn("--name=far", words)
        self.assertIn(f"--at={self.folder}", words)
        self.assertIn("--env=KEY", words)
        self.assertNotIn("value", " ".join(words), "other users can read arguments")
        for path in paths:
            self.assertFalse((self.folder / "home").is_relative_to(path), path)

    def test_a_call_that_is_out_of_time_ends_there_too(self):
        self.start('timeout = "1s"\n')
        with self.serve() as hostler:
            hostler.open()
            error = hostler.fault(1, "far_spin", path=str(self.folder / "pid"))
            self.assertTrue(error.startswith("TOOL_TIMEOUT"), error)
            pid = int((self.folder / "pid").read_text())
            eventually(gone(pid), "the program has ended")
            self.assertNotEqual(hostler.value(2, "far_pid"), pid)

    def test_how_it_died_is_told(self):
        error = self.error("far.die", "signal=11")
        self.assertEqual((error["code"], error["details"]["signal"]), ("TOOL_CRASHED", "SIGSEGV"))

    def test_a_busy_program_is_ended_before_its_launcher(self):
        for how in ("the end of its input", signal.SIGTERM):
            with self.subTest(how), self.serve() as hostler:
                hostler.open()
                note = self.folder / "pid"
                note.unlink(missing_ok=True)
                hostler.send(call(1, "far_spin", path=str(note)))
                eventually(lambda: note.exists() and note.read_text(), "it runs")
                if how == signal.SIGTERM:
                    hostler.process.send_signal(how)
                else:
                    hostler.input.close()
                eventually(gone(int(note.read_text())), "the program has ended")

    def test_executables_are_asked_again_once_the_launcher_works(self):
        stuck = self.folder / "stuck"
        stuck.write_text("#!/bin/sh\nexec sleep 600\n")
        stuck.chmod(0o755)
        self.set(["./stuck"])
        self.assertIn("(timeout)", run("list", env=self.env, cwd=self.folder).stderr)
        self.start()
        self.assertNotIn("(timeout)", run("list", env=self.env, cwd=self.folder).stderr)
        self.assertEqual(self.value("program")["key"], "value")

    def test_nothing_is_left_when_hostler_is_killed(self):
        with self.serve() as hostler:
            hostler.open()
            pid = hostler.value(1, "far_pid")
            os.kill(hostler.supervisor, 9)
            eventually(gone(pid), "the program has ended")


class Faults(Launched):
    def test_a_launcher_that_is_not_there_is_named_with_its_line(self):
        config = self.set(["no-such-launcher", "--"])
        for tool, line in (("far.pid", 6), ("bash", 12)):
            error = self.error(tool, *(["command=true"] if tool == "bash" else []))
            self.assertEqual(error["code"], "COMMAND_NOT_FOUND")
            self.assertIn("no-such-launcher", error["message"])
            self.assertIn(f"({config}:{line})", error["message"])
        listed = run("list", env=self.env, cwd=self.folder)
        self.assertIn("no-such-launcher", listed.stdout + listed.stderr, "an executable is not even asked for its schema")
        found = json.loads(run("doctor", "--offline", "--json", env=self.env, cwd=self.folder).stdout)
        missing = [check["found"] for check in found if check["about"] == "launcher"]
        self.assertEqual(sorted(line.split(":")[0] for line in missing), ["bash", "far", "program"], missing)
        self.set(["/bin/sh", "-c"])
        found = json.loads(run("doctor", "--offline", "--json", env=self.env, cwd=self.folder).stdout)
        self.assertNotIn("launcher", {check["about"] for check in found})

    def test_a_path_begins_at_the_file_that_names_it(self):
        wrapper = self.folder / "wrapper"
        wrapper.write_text('#!/bin/sh\nexport WRAPPED=yes\nexec "$@"\n')
        wrapper.chmod(0o755)
        self.set(["./wrapper"])
        seen = self.value("far.look")
        self.assertIn("WRAPPED", seen["env"])
        self.assertEqual(seen["helper"], "beside")

    def test_a_header_cannot_name_one(self):
        write_tool(self.tools, "own", "def run() -> int:\n    return 1\n",
                   header='# /// script\n# [tool.hostler]\n# launcher = ["env"]\n# ///\n')
        config_file(self.folder, 'tools = ["tools"]\n')
        done = run("call", "own.run", env=self.env, cwd=self.folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("hostler.toml", done.stderr)

    def test_it_is_shown(self):
        self.set(["env", "--"])
        for tool in ("far.pid", "program", "bash"):
            done = run("show", "--json", tool, env=self.env, cwd=self.folder)
            self.assertEqual(json.loads(done.stdout)["settings"]["launcher"]["value"], '["env", "--"]', tool)


def words_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""



if __name__ == "__main__":
    unittest.main()
