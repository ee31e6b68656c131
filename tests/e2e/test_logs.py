"""`hostler logs`: what people see of the shared hostler and of its tools, lately and as it happens."""

import json
import os
import signal
import subprocess
import unittest

from harness import HOSTLER, PATIENCE, write_tool
from test_shared import Shared, until
from wire import call

TOOL = '''
import sys, time, hostler

def say(text: str) -> str:
    print("heard", text, flush=True)
    print("aside \\x1b[2J\\u202e", text, file=sys.stderr, flush=True)
    hostler.progress(1, 4, "quarter")
    return text

def wait():
    time.sleep(600)

def fail(text: str):
    raise ValueError("no \\x1b[31m" + text)
'''


class Logs(Shared):
    def setUp(self):
        super().setUp()
        write_tool(self.tools, "sums", TOOL)
        self.wire = self.open()
        self.number = 0

    def call(self, name, text, wire=None):
        self.number += 1
        (wire or self.wire).send(call(self.number, name, text=text))
        return (wire or self.wire).answer(self.number)["result"]

    def follow(self, *words):
        """A command that follows. What it has printed so far is the list."""
        with open(self.folder / "out", "w") as out, open(self.folder / "err", "w") as err:
            process = subprocess.Popen([HOSTLER, "logs", "-f", *words], env=self.env, cwd=self.folder, stdout=out, stderr=err)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(lambda: self.call("sums_say", "first") and "first" in self.printed())
        return process

    def printed(self):
        return (self.folder / "out").read_text()

    def test_what_happened_lately_is_shown_harmlessly_and_in_order(self):
        self.call("sums_say", "a")
        self.call("sums_fail", "b")
        shown = self.run_hostler("logs")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        lines = shown.stdout.splitlines()
        place = lambda words: next(number for number, line in enumerate(lines) if words in line)
        self.assertLess(place("the shared hostler listens"), place(" sums.say "))
        self.assertLess(place(" sums.say "), place(" sums.fail "))
        self.assertRegex(lines[place(" sums.say ")], r"^\d{4}-\d\d-\d\dT\S+Z sums.say [0-9a-f]{10} completed in [0-9.]+ ms$")
        self.assertRegex(lines[place(" sums.fail ")], r"failed after [0-9.]+ ms: TOOL_ERROR: ValueError: no ·\[31mb \(")
        only = self.run_hostler("logs", "sums.fail").stdout.splitlines()
        self.assertEqual(only, [lines[place(" sums.fail ")]])
        self.assertEqual(len(self.run_hostler("logs", "-n", "1").stdout.splitlines()), 1)
        events = [json.loads(line) for line in self.run_hostler("logs", "--json").stdout.splitlines()]
        self.assertEqual({event["event"] for event in events}, {"log", "call"})
        self.assertEqual([event["tool"] for event in events if event["event"] == "call"], ["sums.say", "sums.fail"])

    def test_it_follows_until_the_hostler_ends_also_one_that_takes_its_place(self):
        following = self.follow()
        self.call("sums_fail", "second")
        until(lambda: "no ·[31msecond" in self.printed())
        said = self.printed()
        for words in ("| heard first", "! aside ·[2J· first", "progress 1 of 4 quarter", " started\n", "completed in", "failed after"):
            self.assertIn(words, said)
        self.assertNotIn("\x1b", said)
        killed = self.status()["pid"]
        os.kill(killed, signal.SIGKILL)
        until(lambda: (status := self.status()) and status["pid"] != killed)
        until(lambda: self.call("sums_say", "third") and "| heard third" in self.printed())
        # The log of the second one, too.
        until(lambda: self.printed().count("the shared hostler listens") == 2)
        self.assertEqual(self.run_hostler("stop").returncode, 0)
        self.assertEqual(following.wait(PATIENCE), 0)
        self.assertIn("the shared hostler has ended", (self.folder / "err").read_text())

    def test_it_follows_one_tool_alone_and_ends_with_its_reader(self):
        following = self.follow("sums.say", "--json")
        self.call("sums_fail", "not this")
        self.call("sums_say", "last")
        until(lambda: "last" in self.printed())
        events = [json.loads(line) for line in self.printed().splitlines()]
        self.assertEqual({event["tool" if event["event"] == "call" else "tool_name"] for event in events}, {"sums.say"})
        following.send_signal(signal.SIGTERM)
        self.assertIn(following.wait(PATIENCE), (-signal.SIGTERM, 130))

    def test_it_ends_with_its_reader_also_where_nothing_happens(self):
        self.call("sums_say", "something")
        self.wire.send(call(99, "sums_wait"))
        running = lambda: json.loads(self.run_hostler("calls", "list", "--tool", "sums.wait", "--json").stdout)
        waiting = until(lambda: (found := running()) and found[0]["call_id"])
        for words in (("logs", "-f"), ("logs", "-f", "sums.say"), ("calls", "output", waiting)):
            with self.subTest(words=words):
                unread = subprocess.Popen([HOSTLER, *words], env=self.env, cwd=self.folder, stdout=subprocess.PIPE)
                self.addCleanup(unread.wait)
                self.addCleanup(unread.kill)
                if words[0] == "logs":
                    unread.stdout.readline()
                unread.stdout.close()
                self.assertEqual(unread.wait(PATIENCE), 0)

    def test_where_nothing_is_found_the_filter_is_named(self):
        self.call("sums_say", "a")
        for words, said in (
            (("logs", "nosuch"), "no call of nosuch has ended lately\n"),
            (("calls", "list", "--tool", "nosuch"), "no call of nosuch runs or has ended lately\n"),
            (("calls", "list", "--tool", "nosuch", "--running"), "no call of nosuch runs\n"),
            (("calls", "list", "--running"), "no call runs\n"),
        ):
            with self.subTest(words=words):
                done = self.run_hostler(*words)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", said))

    def test_without_a_running_one_there_is_the_log_of_the_last(self):
        self.stop()
        shown = self.run_hostler("logs", "-f")
        self.assertEqual(shown.returncode, 1)
        self.assertIn("no shared hostler is running", shown.stderr)
        self.assertIn("the shared hostler listens", shown.stdout)


if __name__ == "__main__":
    unittest.main()
