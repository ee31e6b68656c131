"""`hostler call` and `hostler list` by the shared hostler: the same answers as alone, from warm workers."""

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import unittest
from pathlib import Path

from harness import HOSTLER, PATIENCE, config_file, write_tool
from test_shared import SECRET, SECRETIVE, Shared, until
from test_top import Terminal

MORE = '''
import os, sys, time
from dataclasses import dataclass
import hostler

def pid() -> list[int]:
    return [os.getpid()]

def add(left: int, right: int = 1) -> int:
    """Adds two numbers."""
    return left + right

def nothing() -> None:
    pass

def loud() -> str:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    hostler.progress(1, 2, "half")
    return "done"

def fails() -> str:
    print("last words", file=sys.stderr)
    raise ValueError("no")

def slow(seconds: float = 60.0) -> float:
    print("began", file=sys.stderr, flush=True)
    time.sleep(seconds)
    return seconds

@dataclass
class Name:
    name: str

def ask() -> str:
    answer = hostler.elicit("What is your name?", Name)
    return f"hello {answer.data.name}" if answer.action == "accept" else answer.action

def here() -> list:
    return [os.getcwd(), hostler.roots()[0].uri]
'''
# What differs from run to run.
VARYING = re.compile(r'("call_id": )"[^"]*"|("[a-z_]*_ms": )[0-9.e-]+|("worker": )\d+|("cold": )\w+|("calls": )\d+|("rss": )\d+')


class Commands(Shared):
    def setUp(self):
        super().setUp()
        write_tool(self.tools, "more", MORE)

    def command(self, *words, **variables):
        env = {**self.env, **variables}
        return subprocess.run(
            [HOSTLER, "--tools", str(self.tools), *words], env=env, cwd=self.folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE)

    def started(self, *words, **pipes):
        process = subprocess.Popen([HOSTLER, "--tools", str(self.tools), *words], env=self.env, cwd=self.folder, text=True, **pipes)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_it_is_called_in_the_worker_of_the_clients(self):
        wire = self.open()
        [pid] = wire.value(1, "more_pid")
        self.assertEqual(json.loads(self.command("call", "more.pid").stdout), [pid])
        self.assertNotEqual(json.loads(self.command("call", "--standalone", "more.pid").stdout), [pid])
        # It was one of the sessions, and has left.
        self.all_attached([wire])
        self.assertEqual(self.status()["sessions"][0]["calls"]["ended"], 1)

    def test_the_status_is_cut_to_the_width_of_a_terminal_and_whole_in_a_pipe(self):
        folder = self.folder / ("long" * 20) / ("longer" * 10)
        tool = write_tool(folder, "t", MORE)
        self.tools = folder
        self.open(cwd=folder).value(1, "t_pid")
        terminal = Terminal(self, [HOSTLER, "status"], self.env, self.folder, size=(80, 40))
        self.assertEqual(terminal.waits(), 0)
        until(lambda: b"not called" in terminal.bytes)
        lines = terminal.bytes.decode().splitlines()
        self.assertEqual([line for line in lines if len(line) > 80 and not line.startswith("log: ")], [])
        pool = next(line for line in lines if line.endswith(" MB") and "/t.py" in line)
        self.assertTrue(pool.startswith("…"), pool)
        whole = self.run_hostler("status").stdout
        self.assertIn(f"\n{tool} ", whole)
        self.assertIn(f" {folder}\n", whole)
        self.assertNotIn("…", whole)

    def test_none_is_started_for_it(self):
        self.assertEqual(self.command("call", "more.add", "left=1").stdout, "2\n")
        self.assertEqual(self.command("list").returncode, 0)
        self.assertIsNone(self.status())

    def test_answers_and_exit_statuses_are_those_of_a_command_alone(self):
        write_tool(self.tools, "broken", "def (:\n")
        self.open()
        for words in (
            ("list",), ("list", "--json"), ("list", "--pack", "more"), ("list", "--tag", "none"), ("list", "--kind", "executable"),
            ("call", "more.add", "left=1", "right=2"), ("call", "more_add", "--input", '{"left": 41}'),
            ("call", "more.add", "--input", "{", "left=1"), ("call", "more.add", "left"), ("call", "more.add", "left=x"),
            ("call", "more.add"), ("call", "more.nothing"), ("call", "more.loud"), ("call", "more.fails"), ("call", "--json", "more.fails"),
            ("call", "--json", "more.add", "left=1"), ("call", "--envelope", "more.nothing"), ("call", "more.ad", "left=1"),
            ("call", "nowhere"), ("call", "broken.x"), ("call", "--timeout", "300ms", "more.slow"), ("call", "more.ask"),
        ):
            with self.subTest(words=words):
                shared, alone = self.command(*words), self.command(words[0], "--standalone", *words[1:])
                said = lambda done: (done.returncode, VARYING.sub(r"\1\2\3\4\5\6", done.stdout), VARYING.sub(r"\1\2\3\4\5\6", done.stderr))
                ours, theirs = said(shared), said(alone)
                # Starting a worker and its environment is announced where one is started.
                announced = lambda text: "\n".join(line for line in text.splitlines() if "more" not in line or "starting" not in line)
                self.assertEqual((*ours[:2], announced(ours[2])), (*theirs[:2], announced(theirs[2])))

    def test_it_has_the_variables_and_the_folder_of_its_own_shell(self):
        write_tool(self.tools, "s", SECRET, header=SECRETIVE)
        wire = self.open(KEY="of the client")
        key, pid = wire.value(1, "s_key")
        mine, other = json.loads(self.command("call", "s.key", KEY="of the shell").stdout)
        self.assertEqual((key, mine), ("of the client", "of the shell"))
        self.assertNotEqual(pid, other)
        self.assertEqual(json.loads(self.command("call", "more.add", "left=1", MARK="x").stdout), 2)

    def test_an_interrupted_call_is_cancelled_and_the_client_goes_on(self):
        wire = self.open()
        wire.value(1, "a_pid")
        calling = self.started("call", "more.slow", stderr=subprocess.PIPE)
        self.assertEqual(calling.stderr.readline(), "began\n")
        calling.send_signal(signal.SIGINT)
        self.assertEqual(calling.wait(PATIENCE), 130)
        self.assertIn("CANCELLED", calling.stderr.read())
        calling.stderr.close()
        self.all_attached([wire])
        until(lambda: self.status()["usage"]["running"] == 0)
        self.assertEqual(wire.value(2, "a_wait", seconds=0), 0)

    def test_a_call_whose_shared_hostler_is_killed_ends_with_a_fault(self):
        wire = self.open()
        calling = self.started("call", "--json", "more.slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(calling.stderr.readline(), "began\n")
        os.kill(self.status()["pid"], signal.SIGKILL)
        out, _ = calling.communicate(timeout=PATIENCE)
        self.assertEqual((calling.returncode, json.loads(out)["error"]["code"]), (1, "OUTCOME_UNKNOWN"))
        self.assertIsInstance(wire.value(2, "more_pid")[0], int)

    def asked(self):
        """A command that asks at a terminal, that terminal, and what it shows."""
        self.open()
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        calling = self.started("call", "more.ask", stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
        self.addCleanup(calling.stdout.close)
        os.close(theirs)
        shown = b""
        while b"name (text)" not in shown:
            shown += os.read(ours, 4096)
        return calling, ours, shown

    def test_a_tool_asks_the_person_at_the_terminal(self):
        calling, ours, shown = self.asked()
        self.assertIn(b"more.ask asks: What is your name?", shown)
        os.write(ours, b"Ada\n")
        self.assertEqual(calling.stdout.read(), "hello Ada\n")

    def test_a_question_ends_with_the_shared_hostler(self):
        calling, ours, shown = self.asked()
        os.kill(self.status()["pid"], signal.SIGKILL)
        self.assertEqual(calling.wait(PATIENCE), 1)
        while b"OUTCOME_UNKNOWN" not in shown:
            shown += os.read(ours, 4096)

    def test_a_signal_ends_it_while_it_reads_its_input(self):
        self.open()
        calling = self.started("call", "more.add", "--input", "-", stdin=subprocess.PIPE)
        calling.stdin.write(" " * 100_000)  # more than the pipe holds: it is being read
        calling.terminate()  # SIGINT may be ignored from the start, as in background jobs
        self.assertEqual(calling.wait(PATIENCE), -signal.SIGTERM)
        with contextlib.suppress(BrokenPipeError):
            calling.stdin.close()
        self.assertEqual(len(self.sessions()), 1)

    def test_a_command_whose_shared_hostler_leaves_before_it_is_sent_the_call_does_its_work(self):
        gate, program = self.folder / "gate", self.tools / "slow"
        schema = json.dumps({"name": "slow", "input_schema": {"type": "object", "properties": {"left": {"type": "integer"}}}})
        program.write_text(f"#!/bin/sh\n[ \"$1\" = --schema ] || exec cat\nwhile [ -e {gate} ]; do sleep 0.01; done\necho '{schema}'\n")
        program.chmod(0o755)
        config_file(self.folder, '[executables]\nschema_timeout = "20s"\n')
        for words, answer in ((("call", "slow", "left=7"), '{"left": 7}'), (("list", "--json"), "slow")):
            for leaves in (signal.SIGKILL, signal.SIGTERM):
                with self.subTest(words=words, leaves=leaves):
                    gate.touch()
                    program.touch()  # it is asked again
                    wire = self.open()
                    pid = self.status()["pid"]
                    working = self.started(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    until(lambda: working.pid in self.sessions())
                    wire.process.kill()  # who would start the next one
                    os.kill(pid, leaves)
                    until(lambda: not Path(f"/proc/{pid}").exists())
                    gate.unlink()
                    out, err = working.communicate(timeout=PATIENCE)
                    self.assertEqual((working.returncode, err), (0, ""))
                    self.assertIn(answer, out if words[0] == "list" else json.dumps(json.loads(out)))
                    self.assertIsNone(self.status())

    def test_a_command_that_is_stopped_while_it_calls_is_told(self):
        self.open()
        calling = self.started("call", "more.slow", stderr=subprocess.PIPE)
        self.assertEqual(calling.stderr.readline(), "began\n")
        [session] = [one["session"] for one in self.status()["sessions"] if one["client"] == "hostler"]
        [path] = (self.folder / "run/hostler").glob("*.sock")
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(path))
            link.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sessions.end", "params": {"session": session}}).encode() + b"\n")
            self.assertTrue(json.loads(link.makefile().readline())["result"])
        self.assertEqual(calling.wait(PATIENCE), 130)
        self.assertIn("CANCELLED", calling.stderr.read())
        calling.stderr.close()


if __name__ == "__main__":
    unittest.main()
