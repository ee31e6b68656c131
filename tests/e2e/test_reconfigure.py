"""hostler.toml, edited while clients are served."""

import time
import unittest
from pathlib import Path

from families import below, command
from harness import META, PATIENCE, environment, scratch, write_tool
from wire import Wire, call, request

CHANGED = "notifications/tools/list_changed"
TOOL = """
import os, time

def mark() -> str:
    return os.environ.get("MARK", "none")

def pid() -> list[int]:
    return [os.getpid()]

def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds
"""


class Reconfigured(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "a", TOOL)
        # Nothing of the person's own is in force.
        self.env = environment(XDG_CONFIG_HOME=str(self.folder / "of_person"))
        self.number = 0

    def configure(self, text):
        (self.folder / "hostler.toml").write_text(text)

    def open(self, *tools):
        wire = Wire(*tools or (None,), env=self.env, cwd=self.folder)
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def value(self, wire, name, **arguments):
        self.number += 1
        return wire.value(self.number, name, **arguments)

    def result(self, wire, name, **arguments):
        self.number += 1
        wire.send(call(self.number, name, **arguments))
        return wire.answer(self.number)["result"]

    def until(self, what, limit=PATIENCE):
        late = time.monotonic() + limit
        while not what():
            self.assertLess(time.monotonic(), late, "it did not happen")
            time.sleep(0.01)

    def test_a_change_is_in_force_within_a_second(self):
        self.configure('[tool.a]\nenv = {MARK = "one"}\n')
        wire = self.open()
        self.assertEqual(self.value(wire, "a_mark"), "one")
        self.configure('[tool.a]\nenv = {MARK = "two"}\n')
        began = time.monotonic()
        self.until(lambda: self.value(wire, "a_mark") == "two")
        self.assertLess(time.monotonic() - began, 1)

    def test_what_a_worker_is_not_made_of_leaves_it_running(self):
        self.configure("[mcp]\nmax_result = \"9 MiB\"\n")
        wire = self.open()
        [pid] = self.value(wire, "a_pid")
        self.configure("[mcp]\nmax_result = \"2 MB\"\n[tool.\"a.pid\"]\ntags = [\"other\"]\n")
        wire.until(CHANGED)
        self.assertEqual(self.value(wire, "a_pid"), [pid])

    def test_an_invalid_file_keeps_the_last_and_says_so(self):
        self.configure('[tool.a]\nenv = {MARK = "one"}\n')
        wire = self.open()
        self.assertEqual(self.value(wire, "a_mark"), "one")
        self.configure('[tool.a]\nenv = {MARK = "two"}\ntimeuot = "1s"\n')
        said = ""
        while "stays as it was" not in said:
            said = wire.process.stderr.readline().decode()
        self.assertRegex(said, r"configuration stays as it was: .*hostler\.toml:3: .*timeuot")
        self.assertEqual(self.value(wire, "a_mark"), "one")
        self.configure('[tool.a]\nenv = {MARK = "three"}\n')
        self.until(lambda: self.value(wire, "a_mark") == "three")

    def test_tools_come_and_go_with_it(self):
        others = self.folder / "others"
        write_tool(others, "b", "def hello() -> str:\n    return 'hello'\n")
        wire = self.open()
        self.configure('tools = ["tools", "others"]\n[builtin]\nenable = ["read_file"]\nroots = ["."]\n')
        wire.until(CHANGED)
        self.assertEqual(self.value(wire, "b_hello"), "hello")
        listed = request(99, "tools/list")
        wire.send(listed)
        names = {tool["name"] for tool in wire.answer(99)["result"]["tools"]}
        self.assertTrue({"a_mark", "b_hello", "read_file"} <= names, names)
        # A new folder is watched, too.
        write_tool(others, "c", "def hello() -> str:\n    return 'c'\n")
        wire.until(CHANGED)
        self.assertEqual(self.value(wire, "c_hello"), "c")
        (self.folder / "hostler.toml").unlink()
        wire.until(CHANGED)
        wire.send(call(98, "b_hello"))
        self.assertIn("error", wire.answer(98))

    def test_programs_are_asked_again_with_another_time_limit(self):
        asked = self.folder / "asked"
        program = self.tools / "slow"
        program.write_text(f"#!/bin/sh\necho x >> {asked}\nsleep 0.5\necho '{{}}'\n")
        program.chmod(0o755)
        settings = '[executables]\non_schema_failure = "skip"\n'
        self.configure(settings + 'schema_timeout = "50ms"\n')
        wire = self.open()
        self.until(lambda: asked.exists() and asked.read_text() == "x\nx\n")
        self.configure(settings + 'schema_timeout = "20s"\n')

        def names():
            self.number += 1
            wire.send(request(self.number, "tools/list"))
            return [tool["name"] for tool in wire.answer(self.number)["result"]["tools"]]

        self.until(lambda: "slow" in names())

    def test_offered_files_come_and_go_with_it(self):
        (self.folder / "note.md").write_text("hello")
        wire = self.open()

        def listed(number):
            wire.send(request(number, "resources/list"))
            return [one["name"] for one in wire.answer(number)["result"]["resources"]]

        self.assertEqual(listed(90), [])
        self.configure('[mcp]\nresources = ["*.md"]\n')
        wire.until("notifications/resources/list_changed")
        self.assertEqual(listed(91), ["note.md"])

    def test_a_running_call_keeps_what_it_began_with(self):
        write_tool(self.tools, "b", TOOL)
        wire = self.open()
        self.value(wire, "a_pid")
        wire.send(call(500, "a_wait", seconds=2))
        self.configure('[tool.b]\nenv = {MARK = "new"}\n[tool.a]\ntimeout = "100ms"\n')
        self.until(lambda: self.value(wire, "b_mark") == "new")
        self.assertNotIn(500, [note.get("id") for note in wire.notes])
        self.assertEqual(wire.answer(500)["result"]["structuredContent"]["result"], 2)
        self.assertEqual(self.result(wire, "a_wait", seconds=5)["_meta"][META]["error"]["code"], "TOOL_TIMEOUT")

    def workers(self, wire):
        return {pid for pid in below(wire.supervisor) if "a.py" in command(pid)}

    def test_workers_of_settings_that_are_gone_leave_without_a_call(self):
        self.configure('[tool.a]\nmin_workers = 2\nmax_workers = 2\n')
        wire = self.open()
        self.value(wire, "a_pid")
        self.until(lambda: len(self.workers(wire)) >= 2)
        self.configure('[tool.a]\n')
        self.until(lambda: not self.workers(wire))
        self.value(wire, "a_pid")

    def test_a_call_that_waits_for_a_secret_does_not_bring_old_settings_back(self):
        (self.folder / "gate").touch()
        command = f'while [ -e {self.folder}/gate ]; do sleep 0.05; done; echo value'
        text = f'[secrets]\nKEY = {{command = ["sh", "-c", "{command}"]}}\n[tool.a]\nsecrets = ["KEY"]\n'
        self.configure(text + 'env = {MARK = "one"}\n')
        wire = self.open()
        wire.send(call(700, "a_mark"))
        self.configure(text + 'env = {MARK = "two"}\n[tool."a.mark"]\ntags = ["new"]\n')
        wire.until(CHANGED)
        (self.folder / "gate").unlink()
        self.assertEqual(wire.answer(700)["result"]["structuredContent"]["result"], "two")
        self.assertEqual(self.value(wire, "a_mark"), "two")

    def test_a_file_that_is_empty_while_it_is_written_is_not_in_force(self):
        self.configure('[tool.a]\nenv = {MARK = "one"}\n')
        wire = self.open()
        self.assertEqual(self.value(wire, "a_mark"), "one")
        with (self.folder / "hostler.toml").open("w") as file:
            late = time.monotonic() + 0.5  # the time in which it would be read
            while time.monotonic() < late:
                self.assertEqual(self.value(wire, "a_mark"), "one")
            file.write('[tool.a]\nenv = {MARK = "two"}\n')
        self.until(lambda: self.value(wire, "a_mark") == "two")
        self.configure("")
        self.until(lambda: self.value(wire, "a_mark") == "none")

    def test_idle_workers_beyond_a_lower_limit_make_room(self):
        write_tool(self.tools, "b", TOOL)
        (self.folder / "of_person").mkdir()
        files = (self.folder / "hostler.toml", self.folder / "of_person/hostler.toml")
        rest = "\n[tool.a]\nmax_workers = 6\n"
        for file in files:
            file.write_text("[limits]\nmax_workers = 8" + rest)
        wire = self.open()
        for number in range(800, 806):
            wire.send(call(number, "a_wait", seconds=0.5))
        for number in range(800, 806):
            wire.answer(number)
        for file in files:
            file.write_text("[limits]\nmax_workers = 1" + rest + '[tool."a.mark"]\ntags = ["new"]\n')
        wire.until(CHANGED)
        self.value(wire, "b_pid")

    def test_limits_for_all_tools_change(self):
        self.configure("[limits]\nmax_concurrent_calls = 1\n[tool.a]\nmax_workers = 4\n")
        (self.folder / "of_person").mkdir()
        (self.folder / "of_person/hostler.toml").write_text("[limits]\nmax_concurrent_calls = 1\n")
        wire = self.open()
        self.value(wire, "a_pid")
        for number in (600, 601):
            wire.send(call(number, "a_wait", seconds=10 * PATIENCE))
        for file in (self.folder / "hostler.toml", self.folder / "of_person/hostler.toml"):
            file.write_text("[limits]\nmax_concurrent_calls = 3\n[tool.a]\nmax_workers = 4\n")
        self.value(wire, "a_pid")


if __name__ == "__main__":
    unittest.main()
