"""One hostler for all clients of a person: attaching, sharing, and what is never shared."""

import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import termios
import time
import unittest
from pathlib import Path
from unittest import mock

from harness import HOSTLER, PATIENCE, config_file, environment, scratch, write_tool
from wire import HELLO, INLINE, Wire, call, line, request

TOOL = """
import os, sys, time, hostler

calls = 0

def pid() -> list[int]:
    global calls
    calls += 1
    return [os.getpid(), calls]

def where() -> str:
    return os.getcwd()

def wait(seconds: float) -> float:
    hostler.progress(0, message="began")
    time.sleep(seconds)
    return seconds

def connect(path: str) -> str:
    import json, socket
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)
    link.sendall(b'{"jsonrpc":"2.0","id":1,"method":"stop"}\\n')
    return json.loads(link.makefile().readline())["error"]["message"]
"""
SECRET = """
import os, hostler

def key() -> list:
    return [hostler.secret("KEY"), os.getpid()]
"""
NOTES = """
import hostler

@hostler.resource("notes://{id}")
def note(id: str) -> str:
    return id

def say() -> str:
    hostler.log("heard", level="warning")
    return "said"
"""
LOUD = """
import os, sys, threading, hostler

def say(word: str) -> int:
    print("MARK out", word)
    hostler.log("MARK logged " + word, level="error")
    def later():
        os.write(2, b"MARK later\\n")
        print("MARK later", flush=True)
        open("done", "w").close()
    threading.Timer(0.3, later).start()
    raise ValueError("MARK raised " + word)
"""
# Answers what it is asked, and between it writes what is no message.
LINES = """#!/usr/bin/env python3
import json, sys
if "--schema" in sys.argv:
    print(json.dumps({"name": "speaks", "input_schema": {"type": "object"}}))
    sys.exit()
print("MARK no frame", flush=True)
"""
SECRETIVE = '# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# [tool.hostler]\n# secrets = ["KEY"]\n# ///\n'
PROGRAM = """#!/bin/sh
[ "$1" = --schema ] && echo '{"name": "env", "input_schema": {"type": "object"}}' && exit
printf '["%s", "%s"]' "$MARK" "$PWD"
"""


def until(what):
    """Waits until something holds, and returns it."""
    late = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < late, "it did not happen"
        time.sleep(0.01)
    return found


def unread(wire):
    """How much of what was sent has not been read."""
    return int.from_bytes(fcntl.ioctl(wire.input.fileno(), termios.FIONREAD, bytes(4)), sys.byteorder)


class Shared(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "a", TOOL)
        (self.folder / "run").mkdir(0o700)
        self.env = environment(XDG_RUNTIME_DIR=self.folder / "run", XDG_STATE_HOME=self.folder / "state")
        self.addCleanup(self.stop)

    def open(self, *arguments, cwd=None, **variables):
        env = {**self.env, **{name: str(value) for name, value in variables.items()}}
        wire = Wire(self.tools, env=env, arguments=("--shared", *arguments), cwd=cwd or self.folder)
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def run_hostler(self, *words):
        return subprocess.run([HOSTLER, *words], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)

    def status(self):
        """The status of the shared hostler, or None."""
        done = self.run_hostler("status", "--json")
        status = json.loads(done.stdout or "{}")  # nothing where it cannot be looked for
        return status if "pid" in status else None

    def sessions(self):
        return [session["pid"] for session in self.status()["sessions"]]

    def stop(self):
        found = self.status()
        if found:
            self.run_hostler("stop")
            until(lambda: not Path(f"/proc/{found['pid']}").exists())

    def attached(self, wire):
        """Asserts that a client is served by the shared hostler."""
        self.assertIn(wire.process.pid, self.sessions())
        return wire

    def all_attached(self, wires):
        """Asserts that these clients, and no others, are served by one shared hostler."""
        pids = sorted(wire.process.pid for wire in wires)
        until(lambda: (status := self.status()) and sorted(session["pid"] for session in status["sessions"]) == pids)

    def alone(self, wire, *words):
        """Asserts that a client has a hostler of its own, and why."""
        status = self.status()
        self.assertNotIn(wire.process.pid, [session["pid"] for session in status["sessions"]] if status else [])
        wire.value(1, "a_pid")
        wire.end_input()
        self.assertEqual(wire.ended(10), 0)
        said = wire.stderr()
        for word in ("a hostler of its own", *words):
            self.assertIn(word, said)


class Attaching(Shared):
    def test_clients_share_a_worker_and_their_ends_are_their_own(self):
        first, second = self.attached(self.open()), self.attached(self.open())
        pid, _ = first.value(1, "a_pid")
        self.assertEqual(second.value(1, "a_pid"), [pid, 2])
        third = self.attached(self.open())
        self.assertEqual(len(self.sessions()), 3)
        first.end_input()
        self.assertEqual(first.ended(1), 0)
        self.assertIsNone(first.read(), "the client's output is closed")
        second.process.terminate()
        self.assertEqual(second.ended(1), 0)
        self.assertIsNone(second.read())
        third.process.kill()
        third.ended(1)
        self.assertIsNone(third.read())
        until(lambda: not self.sessions())
        # The worker stays for whoever comes next.
        self.assertEqual(self.open().value(1, "a_pid"), [pid, 3])

    def test_sockets_are_passed_too(self):
        wire = Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder, sockets=True)
        self.addCleanup(wire.__exit__)
        wire.open()
        self.attached(wire)
        self.assertEqual(wire.value(1, "a_wait", seconds=0), 0)
        wire.end_input()
        self.assertEqual(wire.ended(1), 0)

    def test_a_quiet_session_ends_with_the_reading_end_of_its_client(self):
        going, staying = self.open(), self.open()
        pid, _ = staying.value(1, "a_pid")
        going.output.close()
        self.assertEqual(going.ended(1), 0)
        self.all_attached([staying])
        self.assertEqual(staying.value(2, "a_pid"), [pid, 2])

    @mock.patch("shared_mode.words", return_value=[])
    def test_it_is_the_default_and_the_configuration_or_a_flag_switch_it_off(self, _):
        off = ("--config", str(config_file(scratch(self), "[shared]\nenabled = false\n")))
        for flags, is_shared in (((), True), (("--standalone",), False), (off, False), ((*off, "--shared"), True)):
            with self.subTest(flags):
                wire = Wire(self.tools, env=self.env, arguments=flags, cwd=self.folder)
                self.addCleanup(wire.__exit__)
                wire.open()
                self.assertEqual(wire.process.pid in self.sessions(), is_shared)
        # Without a client that could share, there is nothing to say.
        done = subprocess.run([HOSTLER, "serve", "--tools", str(self.tools)], env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_call_ends_with_its_client_and_a_neighbours_does_not(self):
        write_tool(self.tools, "b", TOOL)
        for end in ("input", "output", "term", "kill"):
            with self.subTest(end):
                going, staying = self.open(), self.open()
                going.send(call(1, "a_wait", 7, seconds=60))
                going.until("notifications/progress")
                staying.send(call(1, "b_wait", 7, seconds=1.2))
                staying.until("notifications/progress")
                before = len(self.sessions())
                if end == "input":
                    going.end_input()
                elif end == "output":
                    going.output.close()
                else:
                    going.process.send_signal(signal.SIGTERM if end == "term" else signal.SIGKILL)
                going.ended(1)
                until(lambda: len(self.sessions()) < before)
                self.assertEqual(staying.answer(1)["result"]["structuredContent"]["result"], 1.2)
                self.assertIsInstance(staying.value(2, "a_pid")[0], int)

    def test_twelve_clients_start_one(self):
        wires = [Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder) for _ in range(12)]
        for wire in wires:
            self.addCleanup(wire.__exit__)
        self.assertEqual(len({wire.open() and wire.value(1, "a_pid")[0] for wire in wires}), 1)
        self.assertEqual(sorted(self.sessions()), sorted(wire.process.pid for wire in wires))

    def test_a_request_for_the_status_ends_nothing(self):
        wire = self.open()
        wire.value(1, "a_pid")
        wire.process.send_signal(signal.SIGUSR1)
        self.assertIsInstance(wire.value(2, "a_pid")[0], int)
        wire.end_input()
        wire.ended(1)
        self.assertIn("workers 1 of", wire.stderr())

    def test_the_small_process_that_stays(self):
        wire = self.open()
        # Its own memory: how much of a debug build's file the kernel maps is luck. The bench has the budget of both.
        own = lambda: int(re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{wire.process.pid}/status").read_text())[1])
        until(lambda: own() < 5_000)
        self.assertEqual(Path(f"/proc/{wire.process.pid}/task/{wire.process.pid}/children").read_text(), "")
        self.assertEqual(len(os.listdir(f"/proc/{wire.process.pid}/task")), 1)

    def test_it_leaves_when_nobody_is_attached(self):
        (self.folder / "config" / "hostler").mkdir(parents=True)
        (self.folder / "config" / "hostler" / "hostler.toml").write_text('[shared]\nidle_exit = "300ms"\n')
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        wire = self.open()
        worker, _ = wire.value(1, "a_pid")
        pid = self.status()["pid"]
        wire.end_input()
        wire.ended(1)
        until(lambda: not Path(f"/proc/{pid}").exists())
        self.assertFalse(Path(f"/proc/{worker}").exists())
        self.assertEqual([path.suffix for path in (self.folder / "run" / "hostler").iterdir() if path.suffix == ".sock"], [])
        self.assertIsNone(self.status())
        self.assertEqual(self.open().value(1, "a_pid")[1], 1)


class Control(Shared):
    def test_no_command_starts_one(self):
        for words in (("status",), ("stop",), ("drain",)):
            done = self.run_hostler(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("no shared hostler is running", done.stderr)
        for words, answer in ((("status",), {"running": False}), (("calls",), []), (("calls", "show", "a"), {"running": False})):
            done = self.run_hostler(*words, "--json")
            self.assertEqual((done.returncode, json.loads(done.stdout), done.stderr), (1, answer, ""))
        self.assertFalse((self.folder / "state").exists())

    def test_the_status_says_who_shares_what_and_why_not(self):
        first, second = self.open(), self.open(PATH=f"{self.env['PATH']}:/nowhere")
        pids = [first.value(1, "a_pid")[0], second.value(1, "a_pid")[0]]
        self.assertNotEqual(*pids)
        status = self.status()
        self.assertEqual([session["directory"] for session in status["sessions"]], [str(self.folder)] * 2)
        pools = {tuple(pool["sessions"]): pool for pool in status["pools"]}
        self.assertEqual([pools[number]["workers"][0]["pid"] for number in ((1,), (2,))], pids)
        self.assertEqual([pool["apart"] for pool in pools.values()], [["PATH"], ["PATH"]])
        text = self.run_hostler("status").stdout
        self.assertIn("not shared: other PATH", text)

    def test_a_drained_one_ends_with_its_last_session(self):
        wire = self.open()
        pid = self.status()["pid"]
        self.assertEqual(self.run_hostler("drain").returncode, 0)
        self.assertIsInstance(wire.value(1, "a_pid")[0], int)
        self.assertTrue(self.status()["draining"])
        refused = Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder)
        self.addCleanup(refused.__exit__)
        refused.open()
        self.alone(refused, "ends")
        wire.end_input()
        wire.ended(1)
        until(lambda: not Path(f"/proc/{pid}").exists())

    def test_a_session_that_was_accepted_counts_before_it_begins(self):
        wire = self.open()
        ask = lambda number, method, **params: json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        start = {"protocol": 1, "build": self.status()["build"], "directory": str(self.folder), "config": None, "verbose": 0,
                 "tools": [str(self.tools)], "variables": []}
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(PATIENCE)
            link.connect(str(self.socket()))
            lines = link.makefile("rw")
            print(ask(1, "session.open", **start), file=lines, flush=True)
            self.assertIn("result", json.loads(lines.readline()))
            wire.end_input()
            wire.ended(1)
            until(lambda: not self.sessions())
            self.run_hostler("drain")
            print(ask(2, "session.begin"), ask(3, "tools.show", tool="a.pid"), sep="\n", file=lines, flush=True)
            answers = (json.loads(line) for line in lines)
            self.assertIn("result", next(answer for answer in answers if answer.get("id") == 3))

    def test_a_stopped_one_says_farewell(self):
        wire = self.open()
        wire.send(call(1, "a_wait", 7, seconds=60))
        wire.until("notifications/progress")
        pid = self.status()["pid"]
        self.assertEqual(self.run_hostler("stop").returncode, 0)
        self.assertEqual(wire.answer(1)["result"]["_meta"]["hostler/outcome"]["error"]["code"], "SHUTTING_DOWN")
        self.assertEqual(wire.ended(2), 0)
        until(lambda: not Path(f"/proc/{pid}").exists())

    def socket(self):
        path, = (self.folder / "run" / "hostler").glob("*.sock")
        return path

    def test_a_tool_cannot_steer_its_supervisor(self):
        wire = self.open()
        self.assertIn("started by this hostler", wire.value(1, "a_connect", path=str(self.socket())))
        self.assertIsNotNone(self.status())

    def elsewhere(self, flag, script, chroot=None):
        """A process in namespaces or a root folder of its own; no argument and no file of the outer one is hidden from it."""
        begin = f"import ctypes, os, socket, sys\nassert not ctypes.CDLL(None).unshare({flag})\nlink = socket.socket(socket.AF_UNIX)\n"
        begin += f"os.chroot({str(chroot)!r})\n" if chroot else ""
        words = [sys.executable, "-c", begin + script]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_process_in_another_namespace_is_refused(self):
        wire = self.open()
        user, mounts, network = 0x10000000, 0x20000, 0x40000000
        # Without a namespace of users, only root may make others; in one, more than one fact may differ.
        kinds = {user: "", user | mounts: "", user | network: "", mounts: "mnt", network: "net"}
        ask = 'link.sendall(b\'{"jsonrpc":"2.0","id":1,"method":"stop"}\\n\'); print(link.makefile().readline())'
        for flag, fact in kinds.items():
            process = self.elsewhere(flag, f"link.connect({str(self.socket())!r}); {ask}")
            said, errors = process.communicate(timeout=PATIENCE)
            if "AssertionError" in errors:
                continue  # the system makes none
            with self.subTest(flag=flag):
                self.assertIn("confined otherwise" if flag & user else f"({fact})", said, errors)
        if os.geteuid() == 0:
            inside = "/" + str(self.socket().relative_to(self.folder))
            said, errors = self.elsewhere(0, f"link.connect({inside!r}); {ask}", chroot=self.folder).communicate(timeout=PATIENCE)
            self.assertIn("(mnt)", said, errors)
        self.assertIsInstance(wire.value(1, "a_pid")[0], int)

    def test_a_listener_in_another_namespace_gets_nothing(self):
        self.open()
        path = self.socket()
        self.stop()
        script = f"link.bind({str(path)!r}); link.listen(); print('ready', flush=True); print(len(link.accept()[0].recv(9)))"
        listener = self.elsewhere(0x10000000 | 0x20000, script)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.kill)
        if listener.stdout.readline() != "ready\n":
            self.skipTest("the system makes no namespaces")
        wire = Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder)
        self.addCleanup(wire.__exit__)
        wire.open()
        self.assertIsInstance(wire.value(1, "a_pid")[0], int)
        self.assertEqual(listener.communicate(timeout=PATIENCE)[0], "0\n")
        wire.end_input()
        wire.ended(10)
        self.assertIn("confined otherwise", wire.stderr())

    def test_lines_that_are_no_requests(self):
        self.open()
        for text in (b"no json\n", b'{"jsonrpc":"2.0","id":1,"method":"nothing"}\n',
                     b'{"jsonrpc":"2.0","id":1,"method":"sessions.end","params":{"session":99}}\n',
                     b'{"jsonrpc":"2.0","id":1,"method":"session.attach","params":{}}\n', b"x" * 5_000_000):
            with socket.socket(socket.AF_UNIX) as link, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                link.settimeout(PATIENCE)
                link.connect(str(self.socket()))
                link.sendall(text)
                link.shutdown(socket.SHUT_WR)
                for answer in link.makefile().read().splitlines():
                    self.assertIn("error", json.loads(answer))
        self.assertEqual(len(self.sessions()), 1)

    def test_a_session_is_ended_by_its_number(self):
        first, second = self.open(), self.open()
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(self.socket()))
            link.sendall(b'{"jsonrpc":"2.0","id":1,"method":"sessions.end","params":{"session":1}}\n')
            self.assertTrue(json.loads(link.makefile().readline())["result"])
        self.assertEqual(first.ended(1), 0)
        self.assertIsInstance(second.value(1, "a_pid")[0], int)


class Edited(Shared):
    def test_a_session_waits_for_a_valid_configuration_when_its_hostler_is_killed(self):
        config = config_file(self.folder, "[shared]\nenabled = true\n")
        wire = self.open("--config", str(config))
        wire.value(1, "a_pid")
        config.write_text("[shared]\nenabled = \n")
        os.kill(self.status()["pid"], signal.SIGKILL)
        said = []
        while not any("once this is corrected" in text for text in said):
            said.append(wire.process.stderr.readline().decode())
        wire.send(call(2, "a_pid"))
        config.write_text("")
        self.assertIsInstance(wire.answer(2)["result"]["structuredContent"]["result"][0], int)


class Apart(Shared):
    """What one session never gets of another."""

    def test_what_a_tool_keeps_for_a_session(self):
        write_tool(self.tools, "b", """
import hostler
from hostler_worker.state import state

def add(n: int) -> list:
    hostler.session["sum"] = hostler.session.get("sum", 0) + n
    return [hostler.session.id, hostler.session["sum"], len(state.sessions)]
""")
        first, second = self.open(), self.open()
        one, sum_of_one, _ = first.value(1, "b_add", n=1)
        two, sum_of_two, kept = second.value(1, "b_add", n=10)
        self.assertNotEqual(one, two)
        self.assertEqual((sum_of_one, sum_of_two, kept), (1, 10, 2))
        self.assertEqual(first.value(2, "b_add", n=2), [one, 3, 2])
        first.end_input()
        first.ended(1)
        self.all_attached([second])
        self.assertEqual(second.value(3, "b_add", n=1), [two, 11, 1])

    def test_what_is_kept_for_a_session_ends_where_it_has_no_pool_any_more(self):
        write_tool(self.tools, "b", """
import os, hostler
from hostler_worker.state import state

def keep() -> list:
    hostler.session["kept"] = True
    return [os.getpid(), len(state.sessions)]
""")
        configuration = config_file(scratch(self), "")
        first, second = self.open("--config", str(configuration)), self.open()
        pid, _ = first.value(1, "b_keep")
        self.assertEqual(second.value(1, "b_keep"), [pid, 2])
        configuration.write_text('[tool.b]\nenv = {MARK = "new"}\n')
        until(lambda: first.value(2, "b_keep")[0] != pid)
        first.end_input()
        first.ended(1)
        self.all_attached([second])
        self.assertEqual(second.value(2, "b_keep"), [pid, 1])

    def test_secrets_of_the_environment(self):
        write_tool(self.tools, "secret", SECRET, header=SECRETIVE)
        first, second, third = self.open(KEY="k-one"), self.open(KEY="k-two"), self.open(KEY="k-one")
        (one, pid), (two, other) = first.value(1, "secret_key"), second.value(1, "secret_key")
        self.assertEqual((one, two), ("k-one", "k-two"))
        # The identity of a secret is its session, not its value.
        self.assertEqual(len({pid, other, third.value(1, "secret_key")[1]}), 3)
        first.end_input()
        first.ended(1)
        until(lambda: not Path(f"/proc/{pid}").exists())

    def test_a_file_may_ask_for_workers_of_its_own(self):
        header = '# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# [tool.hostler]\n# share = "session"\n# ///\n'
        write_tool(self.tools, "own", TOOL, header=header)
        first, second = self.open(), self.open()
        pid, _ = first.value(1, "own_pid")
        self.assertNotEqual(second.value(1, "own_pid")[0], pid)
        self.assertEqual([pool["apart"] for pool in self.status()["pools"]], [["session"]] * 2)
        first.end_input()
        first.ended(1)
        until(lambda: not Path(f"/proc/{pid}").exists())

    def test_the_environment_and_folder_of_programs(self):
        path = self.tools / "env"
        path.write_text(PROGRAM)
        path.chmod(0o755)
        others = self.folder / "other"
        others.mkdir()
        first, second = self.open(MARK="one"), self.open(MARK="two", cwd=others)
        self.assertEqual(first.value(1, "env"), ["one", str(self.folder)])
        self.assertEqual(second.value(1, "env"), ["two", str(others)])

    def descriptions(self, wire):
        wire.last = getattr(wire, "last", 100) + 1
        wire.send(line(id=wire.last, method="tools/list"))
        return {tool.get("description") for tool in wire.answer(wire.last)["result"]["tools"]}

    def test_commands_of_secrets_and_schemas_run_in_the_folder_of_their_session(self):
        write_tool(self.tools, "secret", SECRET, header=SECRETIVE)
        program = self.tools / "place"
        program.write_text('#!/bin/sh\nprintf \'{"name": "place", "description": "in %s", "input_schema": {"type": "object"}}\' "${PWD##*/}"\n')
        program.chmod(0o755)
        config = config_file(self.folder, '[secrets]\nKEY = { command = ["./say"] }\n')
        for name in ("one", "two"):
            folder = self.folder / name
            (folder / "bin").mkdir(parents=True)
            for path, text in (("say", "by-path"), ("bin/say", "by-PATH")):
                (folder / path).write_text(f"#!/bin/sh\necho {text} ${{PWD##*/}}\n")
                (folder / path).chmod(0o755)
            wire = self.open("--config", str(config), cwd=folder)
            self.assertEqual(wire.value(1, "secret_key")[0], f"by-path {name}")
            until(lambda: f"in {name}" in self.descriptions(wire))
        named = config_file(self.folder / "one", '[secrets]\nKEY = { command = ["say"] }\n')
        wire = self.open("--config", str(named), cwd=self.folder / "two", PATH=f"bin:{self.env['PATH']}")
        self.assertEqual(wire.value(1, "secret_key")[0], "by-PATH two")

    def test_folders(self):
        others = self.folder / "other"
        others.mkdir()
        first, second = self.open(), self.open(cwd=others)
        self.assertEqual((first.value(1, "a_where"), second.value(1, "a_where")), (str(self.folder), str(others)))

    def test_tools_in_their_own_folder_are_shared_by_projects(self):
        header = SECRETIVE.replace('secrets = ["KEY"]', 'cwd = "tool"')
        write_tool(self.tools, "own", TOOL, header=header)
        path = self.tools / "env"
        path.write_text(PROGRAM)
        path.chmod(0o755)
        config = config_file(self.folder, '[tool.env]\ncwd = "tool"\n')
        others = self.folder / "other"
        others.mkdir()
        first, second = self.open("--config", str(config)), self.open("--config", str(config), cwd=others)
        self.assertEqual(first.value(1, "own_pid")[0], second.value(1, "own_pid")[0])
        self.assertNotEqual(first.value(2, "a_pid")[0], second.value(2, "a_pid")[0])
        for wire in (first, second):
            self.assertEqual((wire.value(3, "own_where"), wire.value(4, "env")[1]), (str(self.tools), str(self.tools)))

    def test_warnings_go_to_the_session_they_concern(self):
        config = config_file(scratch(self), "[tool.nobody]\ntimeout = \"1s\"\n")
        first, second = self.open(), self.open("--config", str(config))
        for wire in (first, second):
            wire.end_input()
            wire.ended(1)
        self.assertNotIn("nobody", first.stderr())
        self.assertIn("nobody", second.stderr())

    def test_what_is_logged_goes_to_the_session_it_concerns(self):
        write_tool(self.tools, "notes", NOTES)
        wires = [self.open("-v"), self.open("-v"), self.open(), self.open(HOSTLER_LOG="error")]
        ids = []
        for number, wire in enumerate(wires):
            wire.send(call(1, "a_wait", seconds=f"x{number}") + call(2, "notes_say"))
            ids.append(wire.answer(1)["result"]["_meta"]["hostler/outcome"]["call_id"])
            ids.append(wire.answer(2)["result"]["_meta"]["hostler/outcome"]["call_id"])
            wire.end_input()
            self.assertEqual(wire.ended(1), 0)
        said = [wire.stderr() for wire in wires]
        self.assertEqual([[number for number, own in enumerate(ids) if own in text] for text in said],
                         [[0, 1], [2, 3], [5], []], "a failed call is told at info, what a tool says at its own level")
        for text in said[:2]:
            self.assertIn("serving files=2", text)
        log, = (self.folder / "state").rglob("*.log")
        log = log.read_text()
        self.assertIn("worker ready", log)
        self.assertFalse([own for own in ids if own in log])

    def test_what_tools_write_is_not_on_the_disk(self):
        write_tool(self.tools, "loud", LOUD)
        write_tool(self.tools, "broken", "import sys\nprint('MARK import', file=sys.stderr)\nraise ValueError('MARK raised')\ndef f() -> int:\n    return 1\n")
        program = self.tools / "speaks"
        program.write_text(LINES)
        program.chmod(0o755)
        config = config_file(self.folder, '[tool.speaks]\nprotocol = "v1"\n')
        wire = self.open("-v", "--config", str(config))
        wire.send(call(1, "loud_say", word="MARK argument") + call(2, "broken_f") + call(3, "speaks", word="MARK argument"))
        for number in (1, 2, 3):
            wire.answer(number)
        until(lambda: (self.folder / "done").exists())
        wire.value(4, "a_pid")
        wire.end_input()
        wire.ended(1)
        self.stop()
        logs = list((self.folder / "state").rglob("*.log*"))
        text = "".join(log.read_text() for log in logs)
        self.assertIn("worker ready", text)
        self.assertNotIn("MARK", text)

    def test_limits_of_a_project_are_not_in_force_and_it_is_said(self):
        own = self.folder / "config" / "hostler"
        own.mkdir(parents=True)
        (own / "hostler.toml").write_text("[limits]\nmax_workers = 7\n")
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        config = config_file(self.folder, '[limits]\nmax_workers = 7\nmax_queue = 5\nmax_memory = "1GB"\n')
        wire = self.open("--config", str(config))
        wire.end_input()
        wire.ended(1)
        said = wire.stderr()
        self.assertEqual([said.count(f"limits.{name}") for name in ("max_workers", "max_queue", "max_memory")], [0, 1, 1], said)
        self.assertIn(f"{config}:3", said)

    def test_own_limits_that_change_while_no_client_is_attached_are_in_force_for_the_next(self):
        own = self.folder / "config" / "hostler"
        own.mkdir(parents=True)
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        for workers in (7, 5):
            (own / "hostler.toml").write_text(f"[limits]\nmax_workers = {workers}\n")
            wire = self.open()
            self.assertEqual(self.status()["usage"]["max_workers"], workers)
            wire.end_input()
            wire.ended(1)
            self.assertNotIn("limits.", wire.stderr())
            until(lambda: not self.sessions())

    def test_an_invalid_configuration_is_its_clients_own(self):
        self.open()
        config = config_file(scratch(self), "tools = 7\n")
        done = subprocess.run([HOSTLER, "serve", "--shared", "--config", str(config)], env=self.env, cwd=self.folder,
                              capture_output=True, text=True, timeout=PATIENCE, input="")
        self.assertEqual(done.returncode, 2)
        self.assertIn(str(config), done.stderr)
        self.assertEqual(len(self.sessions()), 1)


class Alone(Shared):
    """Where a client cannot be attached, it has a hostler of its own, and one line says why."""

    def start(self, before=(), stdin=None, **variables):
        env = {**self.env, **variables}
        wire = Wire(self.tools, env=env, arguments=("--shared",), cwd=self.folder, before=before)
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def test_an_open_folder(self):
        place = self.folder / "run" / "hostler"
        place.mkdir(0o755)
        place.chmod(0o755)
        self.alone(self.start(), "chmod 700")
        self.assertEqual(stat.S_IMODE(place.stat().st_mode), 0o755)
        place.chmod(0o700)

    def test_a_path_too_long_for_a_socket(self):
        deep = self.folder / ("x" * 120)
        deep.mkdir()
        self.alone(self.start(XDG_RUNTIME_DIR=str(deep)), "too long")

    def test_a_folder_that_cannot_be_made(self):
        (self.folder / "run" / "hostler").write_text("a file")
        self.alone(self.start(), "hostler")
        (self.folder / "run" / "hostler").unlink()

    def test_what_may_be_in_a_sandbox(self):
        before = (sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])")
        self.alone(self.start(before=before), "sandbox")

    def test_below_another_hostler(self):
        self.alone(self.start(HOSTLER_RUN="b:1:2:3:4"), "another hostler started this one")

    def test_files_are_not_passed(self):
        source, target = self.folder / "in", self.folder / "out"
        source.write_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        with source.open("rb") as stdin, target.open("wb") as stdout:
            done = subprocess.run([HOSTLER, "serve", "--shared", "--tools", str(self.tools)], env=self.env, cwd=self.folder,
                                  stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, json.loads(target.read_text())["id"]), (0, 1))
        self.assertIn("not both pipes or sockets", done.stderr)
        self.assertIsNone(self.status())

    def test_another_umask_is_another_hostler(self):
        first = self.open()
        second = self.start(before=("sh", "-c", 'umask 0077; exec "$@"', "sh"))
        self.assertEqual(self.sessions(), [first.process.pid])
        self.assertNotEqual(first.value(1, "a_pid")[0], second.value(1, "a_pid")[0])
        self.assertEqual(len(list((self.folder / "run" / "hostler").glob("*.sock"))), 2)
        self.assertIn("another runs", self.run_hostler("status").stdout)
        stop = ["sh", "-c", f'umask 0077; exec "{HOSTLER}" stop']
        self.assertEqual(subprocess.run(stop, env=self.env, timeout=PATIENCE, capture_output=True).returncode, 0)
        second.ended(2)

    def test_other_limits_are_another_hostler(self):
        shell = lambda text: ("sh", "-c", text + '; exec "$@"', "sh")
        first = self.start(before=shell("echo 300 > /proc/self/oom_score_adj; ulimit -S -n 1000"))
        pid = self.status()["pid"]
        self.assertEqual(Path(f"/proc/{pid}/oom_score_adj").read_text(), "0\n")
        alike = [self.start(before=before) for before in ((), shell("ulimit -S -n 900"), shell("ulimit -S -c 0"))]
        self.all_attached([first, *alike])
        one = (sys.executable, "-c", "import os, sys; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); os.execvp(sys.argv[1], sys.argv[1:])")
        restricted = ((("nice", "-n", "5"), {}), (shell("ulimit -v 90000000"), {}), ((), {"SSL_CERT_DIR": "/nowhere"}))
        restricted += ((("ionice", "-c", "3"), {}), (("setarch", "-R"), {}))
        restricted += (((one, {}),) if len(os.sched_getaffinity(0)) > 1 else ())
        for before, variables in restricted:
            with self.subTest(before=before):
                wire = self.start(before=before, **variables)
                self.assertNotEqual(wire.value(1, "a_pid")[0], first.value(1, "a_pid")[0])
                self.assertNotIn(wire.process.pid, self.sessions())
                words = [*before, HOSTLER]
                status = json.loads(subprocess.run([*words, "status", "--json"], env={**self.env, **variables}, capture_output=True).stdout)
                self.assertEqual([session["pid"] for session in status["sessions"]], [wire.process.pid])
                subprocess.run([*words, "stop"], env={**self.env, **variables}, capture_output=True, timeout=PATIENCE)
                wire.ended(2)

    @unittest.skipUnless(os.geteuid() == 0, "only root may make namespaces")
    def test_other_namespaces_are_another_hostler(self):
        own = self.folder / "config" / "hostler"
        own.mkdir(parents=True)
        # From here, those in the namespaces cannot be stopped.
        (own / "hostler.toml").write_text('[shared]\nidle_exit = "300ms"\n')
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        first = self.start()
        for kind in ("--ipc", "--uts", "--cgroup"):
            with self.subTest(kind):
                wire = self.start(before=("unshare", kind))
                self.assertNotEqual(wire.value(1, "a_pid")[0], first.value(1, "a_pid")[0])
                self.assertEqual(self.sessions(), [first.process.pid])
                wire.end_input()
                wire.ended(2)

    def test_what_is_left_of_a_dead_one_is_replaced(self):
        first = self.open()
        pid, path = self.status()["pid"], next((self.folder / "run" / "hostler").glob("*.sock"))
        first.end_input()
        first.ended(1)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists())
        self.assertTrue(path.exists(), "a killed process removes nothing")
        others = [path.with_name(f"dead.{kind}") for kind in ("sock", "start", "live")]
        for other in others:
            other.touch()
        self.attached(self.open())
        self.assertNotEqual(self.status()["pid"], pid)
        until(lambda: not any(other.exists() for other in others))

    def test_one_that_does_not_answer(self):
        self.open()
        pid = self.status()["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            second = Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder)
            self.addCleanup(second.__exit__)
            second.open()
            worker = second.value(1, "a_pid")
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(second.value(2, "a_pid"), [worker[0], 2])
        self.assertEqual(len(self.sessions()), 1)
        second.end_input()
        second.ended(2)
        self.assertIn("does not answer", second.stderr())


class Killed(Shared):
    """The shared hostler is killed: the sessions go on with the next one."""

    def kill(self):
        pid = self.status()["pid"]
        os.kill(pid, signal.SIGKILL)
        return pid

    def code(self, answer):
        return answer["result"]["_meta"]["hostler/outcome"]["error"]["code"]

    def test_sessions_go_on_and_open_calls_are_answered(self):
        wires = [self.open() for _ in range(3)]
        busy = wires[0]
        busy.send(call(5, "a_wait", 7, seconds=60) + call(6, "a_pid"))
        busy.until("notifications/progress")
        worker, _ = self.status()["pools"][0]["workers"][0]["pid"], self.kill()
        self.assertEqual([self.code(busy.answer(number)) for number in (5, 6)], ["OUTCOME_UNKNOWN"] * 2)
        for number, wire in enumerate(wires, 10):
            self.assertIsInstance(wire.value(number, "a_pid")[0], int)
        self.all_attached(wires)
        self.assertFalse(Path(f"/proc/{worker}").exists())
        self.assertEqual({session["client"] for session in self.status()["sessions"]}, {"wire 1"})
        for wire in wires:
            self.assertEqual(len([note for note in wire.notes if "list_changed" in note["method"]]), 3)
            wire.end_input()
            self.assertEqual(wire.ended(1), 0)
            self.assertIn("the shared hostler was killed", wire.stderr())

    def test_it_is_killed_again_and_again(self):
        wire = self.open()
        for number in range(1, 6):
            wire.send(call(number, "a_wait", seconds=0))
            os.kill(until(self.status)["pid"], signal.SIGKILL)
            answer = wire.answer(number)["result"]
            if answer.get("isError"):
                self.assertEqual(answer["_meta"]["hostler/outcome"]["error"]["code"], "OUTCOME_UNKNOWN")
        self.assertEqual(wire.value(9, "a_wait", seconds=0), 0)

    def test_a_line_that_was_read_in_part(self):
        wire = self.open()
        text = call(1, "a_wait", seconds=0)
        wire.send(text[:20])
        until(lambda: unread(wire) == 0)
        self.kill()
        self.all_attached([wire])
        wire.send(text[20:])
        self.assertEqual(wire.answer(1)["result"]["structuredContent"]["result"], 0)

    def test_long_ids_are_refused(self):
        wire = self.open()
        wire.send(request("i" * 200, "tools/call", name="a_wait", arguments={"seconds": 60}) + request("j" * 300, "ping"))
        self.assertEqual(wire.answer("j" * 300)["error"]["code"], -32600)
        until(lambda: (status := self.status()) and status["usage"]["running"])
        self.kill()
        self.assertEqual(self.code(wire.answer("i" * 200)), "OUTCOME_UNKNOWN")

    def test_a_record_that_is_full_keeps_what_is_in_force(self):
        write_tool(self.tools, "notes", NOTES)
        wire = self.open()
        wire.send(line(id=1, method="resources/subscribe", params={"uri": "notes://a"}))
        wire.answer(1)
        for number in range(2, 4002):
            level = "info" if number == 4001 else "error"
            wire.send(line(id=number, method="logging/setLevel", params={"level": level}))
            wire.answer(number)
        wire.send(line(id=5000, method="resources/subscribe", params={"uri": "notes://b"}))
        wire.answer(5000)
        self.kill()
        wire.send(call(5001, "notes_say"))
        wire.answer(5001)
        until(lambda: any(note.get("method") == "notifications/message" for note in wire.notes))
        write_tool(self.tools, "notes", NOTES + "# edited\n")
        found = {wire.until("notifications/resources/updated")["params"]["uri"] for _ in range(2)}
        self.assertEqual(found, {"notes://a", "notes://b"})

    def test_a_long_line_is_run_whole(self):
        write_tool(self.tools, "long", "def length(text: str) -> int:\n    return len(text)\n")
        wire = self.open()
        text = call(1, "long_length", text="x" * 200_000)
        wire.send(text[:150_000])
        until(lambda: unread(wire) == 0)
        os.kill(self.status()["pid"], signal.SIGKILL)
        self.all_attached([wire])
        wire.send(text[150_000:] + call(2, "long_length", text="y"))
        self.assertEqual(wire.answer(1)["result"]["structuredContent"]["result"], 200_000)
        self.assertEqual(wire.answer(2)["result"]["structuredContent"]["result"], 1)

    def test_a_late_answer_is_no_answer_to_another_question(self):
        write_tool(self.tools, "asks", "import hostler\ndef ask(what: str) -> bool:\n    return bool(hostler.elicit(what))\n")
        wire = Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder)
        self.addCleanup(wire.__exit__)
        hello = {**HELLO, "capabilities": {"elicitation": {}}}
        wire.send(line(id=0, method="initialize", params=hello) + line(method="notifications/initialized"))
        wire.answer(0)
        wire.send(call(1, "asks_ask", what="A?"))
        first = wire.until("elicitation/create")["id"]
        os.kill(self.status()["pid"], signal.SIGKILL)
        self.assertEqual(self.code(wire.answer(1)), "OUTCOME_UNKNOWN")
        wire.send(call(2, "asks_ask", what="B?"))
        second = wire.until("elicitation/create")["id"]
        self.assertNotEqual(first, second)
        wire.send(line(id=first, result={"action": "accept"}) + line(id=second, result={"action": "decline"}))
        self.assertFalse(wire.answer(2)["result"]["structuredContent"]["result"])

    def test_an_answer_that_was_written_in_part_and_two_kills(self):
        write_tool(self.tools, "big", "def text(size: int) -> str:\n    return 'x' * size\n")
        wire = self.open()
        wire.send(call(1, "big_text", size=400_000))
        until(lambda: self.status()["pools"] and self.status()["pools"][0]["calls"])
        for _ in range(2):
            found = until(self.status)
            os.kill(found["pid"], signal.SIGKILL)
            until(lambda: (status := self.status()) and status["pid"] != found["pid"] and status["sessions"])
        lines = []
        while b'"id":1' not in (lines[-1] if lines else b"") or b"OUTCOME_UNKNOWN" not in lines[-1]:
            while b"\n" not in wire.buffer:
                wire.buffer += os.read(wire.output.fileno(), 1 << 20)
            text, _, wire.buffer = wire.buffer.partition(b"\n")
            lines.append(text)
        self.assertEqual(json.loads(lines[-1])["id"], 1)

    def test_subscriptions_and_the_log_level_go_on(self):
        write_tool(self.tools, "notes", NOTES)
        wire = self.open()
        wire.send(line(id=1, method="resources/subscribe", params={"uri": "notes://a"})
                  + line(id=2, method="logging/setLevel", params={"level": "info"}))
        wire.answer(1), wire.answer(2)
        self.kill()
        wire.send(call(3, "notes_say"))
        wire.answer(3)
        until(lambda: any(note.get("method") == "notifications/message" for note in wire.notes))
        write_tool(self.tools, "notes", NOTES + "# edited\n")
        self.assertEqual(wire.until("notifications/resources/updated")["params"]["uri"], "notes://a")

    def test_a_session_of_the_later_era(self):
        wire = Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder)
        self.addCleanup(wire.__exit__)
        meta = {"_meta": INLINE}
        wire.send(line(id=1, method="subscriptions/listen", params={"notifications": {"toolsListChanged": True}, **meta}))
        wire.until("notifications/subscriptions/acknowledged")
        wire.send(line(id=2, method="tools/call", params={"name": "a_wait", "arguments": {"seconds": 60}, **meta}))
        until(lambda: self.status()["usage"]["running"])
        self.kill()
        answer = wire.answer(2)
        self.assertEqual((self.code(answer), answer["result"]["resultType"]), ("OUTCOME_UNKNOWN", "complete"))
        wire.until("notifications/subscriptions/acknowledged")
        write_tool(self.tools, "more", TOOL)
        wire.until("notifications/tools/list_changed")

    def test_its_starter_and_its_keeper_are_killed_too(self):
        first, second = self.open(), self.open()
        pid = self.status()["pid"]
        keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        for process in (first.process.pid, keeper, pid):
            os.kill(process, signal.SIGKILL)
        self.assertIsInstance(second.value(1, "a_pid")[0], int)
        self.all_attached([second])
        first.ended(1)
        self.assertIsNone(first.read())

    def test_twelve_clients_race_while_it_is_killed(self):
        wires = [Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder) for _ in range(12)]
        for wire in wires:
            self.addCleanup(wire.__exit__)
        for _ in range(3):
            found = until(self.status)
            with contextlib.suppress(ProcessLookupError):
                os.kill(found["pid"], signal.SIGKILL)
        for number, wire in enumerate(wires):
            wire.open()
            self.assertEqual(wire.value(number + 1, "a_wait", seconds=0), 0)
        self.all_attached(wires)


if __name__ == "__main__":
    unittest.main()
