"""What people see of calls: counts per tool, and why a call failed."""

import json
import signal
import subprocess
import unittest

from harness import HOSTLER, config_file, environment, run, scratch, write_tool
from test_control import Lined
from test_shared import SECRETIVE, Shared, until
from wire import call

TOOL = '''
import sys, time

def add(left: int, right: int = 1) -> int:
    return left + right

def fails(text: str) -> str:
    print("before it failed", file=sys.stderr)
    raise ValueError("no")

def dies(text: str) -> str:
    import os
    print("last words", file=sys.stderr)
    os._exit(3)
'''


SECRETS = """
import hostler

def tell(text: str, number: int = 0) -> str:
    print(text, flush=True)
    hostler.progress(1, message=text)
    return text

def fail(text: str) -> str:
    raise ValueError(text)
"""


class Counted(Shared):
    def tools_of(self):
        return {tool["tool"]: tool for tool in self.status()["tools"]}

    def test_the_status_shows_what_became_of_the_calls_of_each_tool(self):
        write_tool(self.tools, "sums", TOOL)
        one, other = self.open(), self.open()
        self.assertEqual({tool["executions"] for tool in self.tools_of().values()}, {0})
        for number, wire in enumerate((one, one, other)):
            wire.value(10 + number, "sums_add", left=1)
        one.worker(20, "sums_fails", text="x")
        tools = self.tools_of()
        add, fails = tools["sums.add"], tools["sums.fails"]
        self.assertEqual((add["executions"], add["succeeded"], add["failed"], add["cold_starts"]), (3, 3, 0, 1))
        self.assertEqual((fails["executions"], fails["failed"], fails["failures"]), (1, 1, {"TOOL_ERROR": 1}))
        self.assertGreater(add["mean_ms"], 0)
        self.assertGreater(add["memory"], 1_000_000)
        for words in (("status",), ("tool", "status")):
            shown = self.run_hostler(*words).stdout
            row = next(line.split() for line in shown.splitlines() if line.startswith("sums.add"))
            self.assertEqual((row[1:4], row[5:]), (["3", "3", "0"], ["ms", "0", "0"]), shown)
            self.assertIn(f"{len(tools) - 2} tools were not called", shown)

    def test_one_of_a_thing_is_said_as_one(self):
        (self.tools / "a.py").unlink()
        write_tool(self.tools, "one", "def one() -> int:\n    return 1\n")
        write_tool(self.tools, "broken", "def (:\n")
        self.open()
        self.assertIn("\n1 tool was not called", self.run_hostler("status").stdout)
        said = lambda: (self.folder / "said").read_text()
        with open(self.folder / "said", "w") as log:
            words = [HOSTLER, "serve", "--http", "127.0.0.1:0", "--tools", str(self.tools)]
            process = subprocess.Popen(words, env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(lambda: "1 tool is served at http://" in said())
        process.send_signal(signal.SIGUSR1)
        until(lambda: "1 tool, 1 broken file, 1 file without a sandbox\n" in said())


class Logged(unittest.TestCase):
    def test_the_log_of_a_failed_call_has_its_arguments_and_its_last_words_without_secrets(self):
        tools = scratch(self)
        write_tool(tools, "sums", TOOL, header=SECRETIVE)
        env = environment(KEY="hunter2-hunter2")
        for name, words, code in (("fails", "before it failed", "TOOL_ERROR"), ("dies", "last words", "TOOL_CRASHED")):
            text = "my hunter2-hunter2" + "x" * 5000
            done = run("-v", "call", "--tools", tools, f"sums.{name}", f"text={text}", env=env)
            logged = [line for line in done.stderr.splitlines() if "call failed" in line]
            self.assertEqual(len(logged), 1, done.stderr)
            for part in (f'tool="sums.{name}"', f"code={code}", r'{\"text\":\"my [secret KEY]xxx', words):
                self.assertIn(part, logged[0])
            self.assertNotIn("hunter2", done.stderr)
            self.assertLess(len(logged[0]), 3000)


    def test_as_json_each_line_is_an_object_for_programs(self):
        tools, trace = scratch(self), "4bf92f3577b34da6a3ce929d0e0e4736"
        write_tool(tools, "sums", TOOL, header=SECRETIVE)
        env = environment(KEY="hunter2-hunter2", HOSTLER_LOG_FORMAT="json", TRACEPARENT=f"00-{trace}-00f067aa0ba902b7-01")
        for name, words, code in (("fails", "before it failed", "TOOL_ERROR"), ("dies", "last words", "TOOL_CRASHED")):
            text = 'my hunter2-hunter2\n"\x1b[31m' + "x" * 5000
            done = run("-v", "call", "--tools", tools, f"sums.{name}", f"text={text}", env=env)
            lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
            (failed,) = [line for line in lines if line["message"] == "call failed"]
            self.assertEqual((failed["level"], failed["tool"], failed["code"], failed["trace_id"], len(failed["span_id"])),
                             ("INFO", f"sums.{name}", code, trace, 16))
            self.assertTrue(failed["input"].startswith('{"text":"my [secret KEY]') and len(failed["input"]) < 600, failed)
            self.assertIn(words, failed["stderr"] if "stderr" in failed else failed["output"])
            self.assertTrue(failed["error"] and failed["timestamp"] and "hunter2" not in done.stderr)
        config = config_file(scratch(self), 'log = "info"\nlog_format = "json"\n')
        logged = lambda **more: [line for line in run("call", "--tools", tools, "--config", config, "sums.fails", "text=a",
                                                      env=environment(KEY="k3y", **more)).stderr.splitlines() if "call failed" in line]
        self.assertEqual([logged()[0][0], logged(HOSTLER_LOG_FORMAT="text")[0][0]], ["{", "2"])


class LoggedOfSessions(Shared):
    def test_each_session_gets_its_log_in_its_own_format(self):
        write_tool(self.tools, "sums", TOOL)
        formats = [({"HOSTLER_LOG_FORMAT": "json"}, "{"), ({}, "2")]
        wires = [self.open("-v", **variables) for variables, _ in formats]
        for wire, (_, first) in zip(wires, formats):
            wire.send(call(1, "sums_fails", text="a"))
            wire.answer(1)
            wire.end_input()
            wire.ended(5)
            (line,) = [line for line in wire.stderr().splitlines() if "call failed" in line]
            self.assertEqual(line[0], first)


class Secret(Lined):
    def test_no_secret_is_in_an_event_or_in_the_list_of_calls(self):
        write_tool(self.folder / "tools", "keys", SECRETS, header=SECRETIVE)
        key = self.folder / "key"
        key.write_text("hunter2-hunter2")
        key.chmod(0o600)
        (self.folder / "hostler.toml").write_text('[secrets]\nKEY = { file = "key" }\n')
        lines = self.open()
        lines.value("events.subscribe", {})
        kinds = ["tool_result", "tool_call_started", "tool_call_failed"]
        lines.value("events.subscribe", {"kinds": kinds}, id=2)
        text = "my hunter2-hunter2"
        # Refused before its secrets are looked up, then after each kind of end.
        self.assertEqual(self.run_tool(lines, "keys.tell", text=text, number=text), "INVALID_PARAMS")
        self.assertEqual(self.run_tool(lines, "keys.tell", text=text), None)
        self.assertEqual(self.run_tool(lines, "keys.fail", text=text), "TOOL_ERROR")
        self.assertEqual(self.run_tool(lines, "keys.tell", text="last"), None)
        found = []
        while sum(event["event"] == "tool_result" for event in found) < 2:
            message = lines.others.pop(0) if lines.others else lines.next()
            if message.get("method") == "events.event":
                found.append(message["params"]["result"])
        seen = json.dumps([found, lines.value("calls.list", {})])
        self.assertEqual((seen.count("hunter"), seen.count("my [secret KEY]") > 5), (0, True), seen)
        started = [event["arguments"] for event in found if event["event"] == "tool_call_started"]
        self.assertEqual(started[0], {"text": "my [secret KEY]"})
        refused = next(event for event in found if event["event"] == "tool_call_failed")
        self.assertEqual((refused["error"]["code"], "arguments" in refused), ("INVALID_PARAMS", False))

    def run_tool(self, lines, tool, **arguments):
        return (lines.value("calls.run", {"tool": tool, "arguments": arguments}, id=3).get("error") or {}).get("code")
