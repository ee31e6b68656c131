"""What the journal does where the world does not help: a full disk, no room in a queue, keys of others, secrets of callers."""

import json
import re
import resource
import sqlite3
import subprocess
import threading
import time
import unittest
from pathlib import Path

from jsonrpcclient import request_json

from harness import HOSTLER, PATIENCE, write_tool
from storm import held
from test_journal import Journal, child_of
from test_shared import until

CALLER = """# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# secrets = ["KEY"]
# ///
import hostler

def pay(text: str) -> str:
    return hostler.call("once.fail", number=7, path=hostler.secret("KEY") + text)
"""
LACKS = """# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# secrets = ["KEY", "NOT_THERE"]
# max_workers = 1
# ///
import time
import hostler

def use(text: str, seconds: float = 0) -> str:
    time.sleep(seconds)
    return hostler.secret("NOT_THERE")
"""


DOOMED = """# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# effects = "pure"
# ///
import os

def die() -> str:
    os.kill(os.getpid(), 9)
"""


class Disk(Journal):
    def test_a_full_disk_refuses_what_may_not_be_forgotten_and_nothing_else(self):
        # Without the signal, a write beyond the limit is an error, as on a full disk.
        hostler = self.open(restore_signals=False)
        first = self.begin(hostler, "once.note", path=self.path("a"))
        self.assertEqual(self.end(hostler, first)["result"], "ran")
        supervisor = child_of(hostler.process.pid)
        before = resource.prlimit(supervisor, resource.RLIMIT_FSIZE)
        resource.prlimit(supervisor, resource.RLIMIT_FSIZE, (1, before[1]))
        refused = {"tool": "once.note", "arguments": {"path": self.path("b")}}
        for more in ({"background": True}, {"background": True, "key": "k"}, {"background": True, "tool": "pure.note"}):
            answer = hostler.ask("calls.start", refused | more)
            self.assertEqual(answer.data["code"], "RESOURCE_EXHAUSTED", more)
        keyed = hostler.value("calls.start", refused | {"key": "l"})["call"]
        self.assertEqual(self.end(hostler, keyed)["error"]["code"], "RESOURCE_EXHAUSTED")
        time.sleep(0.5)
        self.assertEqual(self.effects("b"), [])
        simple = hostler.value("calls.start", {"tool": "pure.fail", "arguments": {"number": 1}})["call"]
        self.assertEqual(self.end(hostler, simple)["error"]["code"], "TOOL_ERROR", "calls whose client waits go on")
        resource.prlimit(supervisor, resource.RLIMIT_FSIZE, before)
        time.sleep(1.1)  # until it tries again
        later = self.begin(hostler, "once.note", path=self.path("c"))
        self.assertEqual(self.end(hostler, later)["result"], "ran")
        self.row(later, "complete")
        self.kill(hostler)
        self.assertEqual(self.end(self.open(), later)["result"], "ran")
        self.assertEqual((self.effects("a"), self.effects("b"), self.effects("c")), (["ran"], [], ["ran"]))


class Room(Journal):
    def test_a_background_call_waits_for_room(self):
        (self.folder / "hostler.toml").write_text("[tool]\nmax_workers = 1\nmax_queue = 1\n")
        hostler = self.open()
        ids = [self.begin(hostler, "once.note", id=number, path=self.path("a"), text=str(number), seconds=0.1) for number in range(8)]
        self.assertEqual([self.end(hostler, id)["success"] for id in ids], [True] * 8)
        self.assertEqual(sorted(self.effects("a")), [str(number) for number in range(8)])


class Tries(Journal):
    def test_why_tries_failed_is_known_after_a_crash(self):
        write_tool(self.folder / "tools", "doomed", DOOMED, header="")
        first = self.open(HOSTLER_DIE_AT="call.retry-written")
        id = first.value("calls.start", {"tool": "doomed.die", "background": True})["call"]
        first.process.wait(PATIENCE)
        second = self.open()
        shown = until(lambda: (call := second.value("calls.get", {"call": id}, id=2))["state"] in ("error", "failed") and call)
        self.assertEqual(len(shown["details"]["tries"]), 3, shown)
        error = self.end(second, id)["error"]
        self.assertTrue(error["message"].startswith("Max retries exceeded (4 tries)"), error["message"])
        self.assertEqual([attempt["code"] for attempt in error["details"]["attempts"]], ["PROCESS_KILLED"] * 3)
        row = self.row(id)
        self.assertEqual((row["retry_count"], len(json.loads(row["tries"])), row["state"]), (3, 3, "failed"))


class Many(Journal):
    def test_ten_thousand_wait_for_one_call(self):
        hostler = self.open()
        id = self.begin(hostler, "once.note", path=self.path("a"), seconds=2)
        supervisor = child_of(hostler.process.pid)
        before = held(supervisor)[1]
        writer = threading.Thread(target=lambda: [hostler.send(request_json("calls.wait", params={"call": id}, id=1000 + number))
                                                  for number in range(10_000)])
        writer.start()
        answers = [hostler.next() for _ in range(10_000)]
        writer.join()
        self.assertEqual({answer["id"] for answer in answers}, set(range(1000, 11_000)))
        waited = [answer["result"]["result"] for answer in answers if "result" in answer]
        refused = [answer["error"]["data"]["code"] for answer in answers if "error" in answer]
        self.assertEqual((set(waited), set(refused)), ({"ran"}, {"BUSY"}), "a connection has 1,024 open requests")
        self.assertGreater(len(waited), 1000)
        self.assertLess(held(supervisor)[1] - before, 200)
        other = self.open()
        self.assertEqual(self.end(other, id)["result"], "ran")


class OthersKeys(Journal):
    def test_whoever_waits_for_a_key_waits_no_longer_than_it_says_and_can_be_cancelled(self):
        first, second = self.open(), self.open()
        id = self.begin(first, "once.note", path=self.path("a"), seconds=60, key="k")
        until(lambda: self.effects("a"))
        asked = {"tool": "once.note", "arguments": {"path": self.path("a"), "seconds": 60}, "key": "k"}
        began = time.monotonic()
        late = second.value("calls.start", asked | {"timeout_ms": 300}, id=1)["call"]
        fault = self.end(second, late, 2)["error"]
        self.assertEqual(fault["code"], "TOOL_TIMEOUT")
        self.assertIn(id, fault["message"])
        self.assertLess(time.monotonic() - began, 5)
        waits = second.value("calls.start", asked, id=3)["call"]
        self.assertTrue(second.value("calls.cancel", {"call": waits}, id=4))
        self.assertEqual(self.end(second, waits, 5)["error"]["code"], "CANCELLED")
        self.assertTrue(second.value("calls.cancel", {"call": id}, id=6), "another hostler hears of it")
        self.assertEqual(self.end(first, id, 7)["error"]["code"], "CANCELLED")
        self.row(id, "cancelled")
        self.assertFalse(second.value("calls.cancel", {"call": id}, id=8), "it has ended")
        self.assertEqual(self.effects("a"), ["ran"])

    def test_a_client_that_goes_while_its_key_is_taken_blocks_nobody(self):
        hostler = self.open()
        asked = {"tool": "once.note", "arguments": {"path": self.path("a")}, "key": "k", "background": True}
        hostler.send(request_json("calls.start", params=asked, id=1))
        hostler.process.stdin.close()
        hostler.process.wait(20)
        again = self.open()
        self.assertEqual(self.end(again, again.value("calls.start", asked)["call"])["result"], "ran")
        self.assertEqual(self.effects("a"), ["ran"])


class Page(Journal):
    def test_a_call_tells_what_happened_to_it(self):
        hostler = self.open()
        id = hostler.value("calls.start", {"tool": "once.fail", "arguments": {"number": 3}})["call"]
        self.end(hostler, id)
        self.row(id, "error")
        self.kill(hostler)
        env = self.env(XDG_RUNTIME_DIR=str(self.folder))
        shown = subprocess.run([HOSTLER, "calls", "show", id, "--json"], env=env, capture_output=True, check=False)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        details = json.loads(shown.stdout)["details"]
        self.assertEqual((details["effects"], details["journal"], details["folder"]), ("once", "kept", str(self.folder)))
        self.assertEqual((details["timeout_ms"], details["max_retries"]), (300_000, 0))
        self.assertRegex(details["version"], "^[0-9a-f]{64}$")
        self.assertIn('raise ValueError("no %d" % number)', details["stack"])
        self.assertGreater(details["run_ms"], 0)
        text = subprocess.run([HOSTLER, "calls", "show", id], env=env, capture_output=True, check=True, text=True).stdout
        self.assertRegex(text, r"(?m)^steps +waited .*, ran ")
        self.assertRegex(text, r"(?m)^stack:\n  Traceback")


class Secrets(Journal):
    def test_no_file_has_the_secret_of_a_caller_or_of_a_tool_that_lacks_another(self):
        for name, body in (("caller", CALLER), ("lacks", LACKS)):
            write_tool(self.folder / "tools", name, body, header="")
        (self.folder / "hostler.toml").write_text("[tool.caller]\nhost_access = true\n")
        hostler = self.open(KEY="hunter2-hunter2")
        for number, (tool, code) in enumerate((("caller.pay", "TOOL_ERROR"), ("lacks.use", "MISSING_CREDENTIALS"))):
            asked = {"tool": tool, "arguments": {"text": "with hunter2-hunter2"}}
            ended = self.end(hostler, hostler.value("calls.start", asked, id=number)["call"], 10 + number)
            self.assertEqual((ended["error"] or {}).get("code"), code, ended)
        asked = {"tool": "lacks.use", "arguments": {"text": "with hunter2-hunter2", "seconds": 60}, "background": True}
        runs = hostler.value("calls.start", asked, id=20)["call"]
        self.row(runs, "running")
        waits = hostler.value("calls.start", asked, id=21)["call"]
        for number, id in enumerate((waits, runs)):
            self.assertTrue(hostler.value("calls.cancel", {"call": id}, id=30 + number))
            self.row(id, "cancelled")
        rows = self.rows("state = 'error'")
        self.assertEqual(len(rows), 3)
        requests = {row["tool_name"]: json.loads(row["request"]) for row in rows}
        self.assertEqual((requests["once.fail"]["number"], requests["lacks.use"]["text"]), (7, "with [secret KEY]"))
        self.assertEqual(json.loads(self.row(waits)["request"])["text"], "with [secret KEY]")
        hostler.process.stdin.close()
        hostler.process.wait(20)
        for path in (self.state / "hostler/journal").rglob("*"):
            self.assertFalse(path.is_file() and b"hunter2" in path.read_bytes(), path)


class Many(Journal):
    def test_a_hundred_thousand_open_calls_are_gone_on_with_one_after_the_other(self):
        wire = self.wire()
        wire.value(1, "pure_note", path=self.path("a"))
        until(self.rows)
        wire.__exit__()
        number, now = 100_000, int(time.time() * 1000)
        site = json.dumps({"directory": str(self.folder)})
        store = sqlite3.connect(self.state / "hostler/journal/calls.db")
        with store:
            store.executemany(
                "INSERT INTO tool_calls (id, tool_name, state, request, created_at, updated_at, effects, level, background, max_retries, spool,"
                " workspace) VALUES (?, 'pure.note', 'created', ?, ?, ?, 'pure', 'kept', 1, 3, 'gone', ?)",
                ((f"{n:032x}", json.dumps({"path": self.path("b")}), now, now, site) for n in range(number)))
        store.close()
        hostler = self.open()
        until(lambda: len(self.effects("b")) > 1000)
        self.assertEqual(self.end(hostler, f"{0:032x}")["result"], "ran")
        self.assertTrue(hostler.value("tools.list", {}, id=7), "it serves meanwhile")
        status = Path(f"/proc/{child_of(hostler.process.pid)}/status").read_text()
        self.assertLess(int(re.search(r"VmHWM:\s+(\d+)", status)[1]), 250_000, "kilobytes")
        threads = int(re.search(r"Threads:\s+(\d+)", status)[1])
        self.assertLess(threads, 40)


if __name__ == "__main__":
    unittest.main()
