"""Calls that survive: whoever dies, no acknowledged call is lost, and none that may not be repeated is made twice."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
import unittest
from pathlib import Path

from jsonrpcclient import request_json

from harness import HOSTLER, PATIENCE, environment, scratch, write_tool
from test_control import Lines
from test_shared import until
from wire import Wire, call, request

SOURCE = Path(__file__).parents[2] / "src"

TOOL = '''# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# effects = "{effects}"
# ///
import os, time

def note(path: str, text: str = "ran", seconds: float = 0) -> str:
    with open(path, "a") as file:
        file.write(text + "\\n")
    print("noted", flush=True)
    time.sleep(seconds)
    return text

def fail(number: int, path: str = "") -> int:
    raise ValueError("no %d" % number)

def die_first(path: str) -> int:
    with open(path, "a") as file:
        file.write("tried\\n")
    with open(path) as file:
        tries = len(file.readlines())
    if tries < 3:
        os.kill(os.getpid(), 9)
    return tries
'''


def child_of(keeper):
    """The supervisor of a keeper."""
    return int(Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0])


class Journal(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.state = self.folder / "state"
        for effects in ("once", "pure"):
            write_tool(self.folder / "tools", effects, TOOL.replace("{effects}", effects), header="")

    def env(self, **variables):
        return environment(XDG_STATE_HOME=str(self.state), **variables)

    def open(self, restore_signals=True, **variables):
        """A hostler with a control face, which dies where it is asked to."""
        process = subprocess.Popen([HOSTLER, "serve", "--rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.folder, env=self.env(**variables), start_new_session=True,
                                   restore_signals=restore_signals)
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.kill)
        lines = Lines(process.stdout, process.stdin)
        lines.process = process
        return lines

    def wire(self, **variables):
        wire = Wire(self.folder / "tools", env=self.env(**variables), cwd=self.folder, arguments=("--standalone",))
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def rows(self, where="1"):
        path = self.state / "hostler/journal/calls.db"
        if not path.exists():
            return []
        store = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        store.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in store.execute(f"SELECT * FROM tool_calls WHERE {where} ORDER BY number")]
        except sqlite3.OperationalError:  # it is being made
            return []
        finally:
            store.close()

    def row(self, id, state=None):
        def found():
            rows = self.rows(f"id = '{id}'")
            return rows and (state is None or rows[0]["state"] == state) and rows[0]
        return until(found)

    def effects(self, name):
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def path(self, name):
        return str(self.folder / name)

    def begin(self, hostler, tool, id=1, **params):
        arguments = {name: params.pop(name) for name in ("path", "text", "seconds", "number") if name in params}
        return hostler.value("calls.start", {"tool": tool, "arguments": arguments, "background": True, **params}, id=id)["call"]

    def end(self, hostler, call, id=99):
        return hostler.value("calls.wait", {"call": call}, id=id)

    def kill(self, hostler):
        os.killpg(hostler.process.pid, signal.SIGKILL)
        hostler.process.wait(PATIENCE)


class Written(Journal):
    def test_every_call_is_a_row_and_bodies_are_kept_where_they_are_needed(self):
        wire = self.wire()
        self.assertEqual(wire.value(1, "once_note", path=self.path("a")), "ran")
        wire.send(call(2, "once_fail", number=3))
        wire.answer(2)
        wire.send(request(3, "tools/call", name="once_note", arguments={"path": self.path("b")},
                          _meta={"hostler/tags": ["prompt:10", "block:2", "tool_call:5"]}))
        wire.answer(3)
        wire.send(call(4, "no_such_tool"))
        wire.answer(4)
        until(lambda: len(self.rows("state IN ('complete', 'error')")) == 4)
        first, second, third, fourth = self.rows()
        self.assertEqual((first["tool_name"], first["state"], first["request"], first["response"]), ("once.note", "complete", None, None))
        self.assertTrue(first["pid"] and first["process_started"] and first["started_at"] and first["timeout_at"] > first["started_at"])
        self.assertEqual((second["state"], second["code"], json.loads(second["request"])), ("error", "TOOL_ERROR", {"number": 3}))
        self.assertIn("no 3", second["error"])
        self.assertEqual((third["prompt_id"], third["block_id"], third["api_tool_call_id"]), ("10", "2", "5"))
        self.assertEqual((fourth["state"], fourth["code"]), ("error", "TOOL_NOT_FOUND"))
        self.assertEqual((first["retry_count"], first["max_retries"], first["timeout_seconds"]), (0, 0, 300))
        for path in (self.state / "hostler/journal").rglob("*"):
            mode = path.stat().st_mode & 0o777
            self.assertEqual(mode, 0o700 if path.is_dir() else 0o600, path)

    def test_nothing_is_written_where_the_operator_says_so(self):
        (self.folder / "hostler.toml").write_text('[tool.once]\njournal = "off"\n[journal]\nbodies = "all"\n')
        wire = self.wire()
        wire.value(1, "once_note", path=self.path("a"))
        wire.value(2, "pure_note", path=self.path("a"), text="kept")
        until(lambda: self.rows("state = 'complete'"))
        [row] = self.rows()
        self.assertEqual((row["tool_name"], json.loads(row["response"])), ("pure.note", "kept"))
        (self.folder / "hostler.toml").write_text("[journal]\nenabled = false\n")
        self.state = self.folder / "other"
        wire = self.wire()
        wire.value(1, "once_note", path=self.path("a"))
        wire.end_input()
        wire.ended(PATIENCE)
        lost = self.open().ask("calls.start", {"tool": "pure.note", "arguments": {"path": self.path("b")}, "background": True})
        self.assertEqual((lost.data["code"], self.effects("b")), ("NOT_SUPPORTED", []))
        self.assertEqual([path for path in self.state.rglob("*") if path.is_file()], [])

    def test_calls_are_kept_as_long_as_the_person_says(self):
        config = self.folder / "config/hostler"
        config.mkdir(parents=True)
        settings = "[journal]\nkeep_calls = 2\n"
        (self.folder / "hostler.toml").write_text(settings)
        for number in range(4):
            wire = self.wire(XDG_CONFIG_HOME=str(self.folder / "config"))
            wire.value(1, "once_note", path=self.path("a"), text=str(number))
            wire.end_input()
            wire.ended(PATIENCE)
        self.assertEqual(len(self.rows()), 4, "a project does not decide")
        (config / "hostler.toml").write_text(settings)
        env = self.env(XDG_CONFIG_HOME=str(self.folder / "config"), XDG_RUNTIME_DIR=str(self.folder))

        def pruned(*words):
            done = subprocess.run([HOSTLER, "calls", "prune", "--json", *words], env=env, capture_output=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            return json.loads(done.stdout)
        self.assertEqual(pruned("--dry-run"), {"removed": 2, "kept": 2, "dry_run": True})
        self.assertEqual(pruned("--dry-run", "--keep", "0s")["removed"], 4)
        wire = self.wire(XDG_CONFIG_HOME=str(self.folder / "config"))
        wire.value(1, "once_note", path=self.path("a"))
        until(lambda: len(self.rows()) == 2)
        self.assertEqual(pruned("--keep-calls", "1"), {"removed": 1, "kept": 1, "dry_run": False})

    def test_secrets_are_in_no_file(self):
        write_tool(self.folder / "tools", "keyed", '# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# [tool.hostler]\n'
                   '# secrets = ["KEY"]\n# ///\nimport hostler\ndef use(text: str):\n    raise ValueError(hostler.secret("KEY") + text)\n', header="")
        wire = self.wire(KEY="hunter2-hunter2")
        wire.send(call(1, "keyed_use", text="with hunter2-hunter2 inside"))
        wire.answer(1)
        [row] = until(lambda: self.rows("state = 'error'"))
        self.assertIn("with", row["request"])
        fresh = self.wire(KEY="hunter2-hunter2")
        fresh.send(call(1, "keyed_use", text=["hunter2-hunter2"]))
        fresh.answer(1)
        until(lambda: len(self.rows("state = 'error'")) == 2)
        fresh.end_input()
        fresh.ended(PATIENCE)
        wire.end_input()
        wire.ended(PATIENCE)
        for path in (self.state / "hostler/journal").rglob("*"):
            self.assertFalse(path.is_file() and b"hunter2" in path.read_bytes(), path)

    def test_what_ends_leaves_no_spool(self):
        wire = self.wire()
        wire.value(1, "once_note", path=self.path("a"))
        wire.end_input()
        wire.ended(PATIENCE)
        self.assertEqual([path for path in (self.state / "hostler/journal/spool").rglob("*") if path.is_file()], [])
        self.assertEqual(len(self.rows("state = 'complete'")), 1)


class Background(Journal):
    def test_a_call_goes_on_without_its_client_and_is_asked_for_later(self):
        first = self.open()
        id = self.begin(first, "once.note", path=self.path("a"), seconds=1)
        self.assertRegex(id, "^[0-9a-f]{32}$")
        self.assertEqual(self.row(id)["background"], 1, "it is remembered when it is acknowledged")
        outcome = self.end(first, id)
        self.assertEqual((outcome["call_id"], outcome["result"]), (id, "ran"))
        row = self.row(id, "complete")
        self.assertEqual((json.loads(row["response"]), json.loads(row["request"])["seconds"], row["output_stream"]), ("ran", 1, "noted\n"))
        self.kill(first)
        second = self.open()
        again = self.end(second, id)
        self.assertEqual((again["result"], again["success"]), ("ran", True))
        shown = second.value("calls.get", {"call": id})
        self.assertEqual((shown["state"], shown["result"], shown["output"]), ("complete", "ran", "noted\n"))
        self.assertEqual(self.effects("a"), ["ran"])

    def test_an_unknown_result_is_said_to_be_unknown_and_what_may_be_repeated_is(self):
        first = self.open()
        once = self.begin(first, "once.note", id=1, path=self.path("once"), seconds=60)
        pure = self.begin(first, "pure.note", id=2, path=self.path("pure"), seconds=2)
        foreground = "calls.start"
        lost = first.value(foreground, {"tool": "once.note", "arguments": {"path": self.path("fore"), "seconds": 60}}, id=3)["call"]
        queued = self.begin(first, "once.note", id=4, path=self.path("queued"))
        until(lambda: self.effects("once") and self.effects("pure"))
        [worker] = [row["pid"] for row in [self.row(once, "running")]]
        self.kill(first)
        second = self.open()
        ended = self.end(second, once, 1)
        self.assertEqual((ended["success"], ended["error"]["code"], ended["error"]["retryable"]), (False, "OUTCOME_UNKNOWN", False))
        self.assertTrue(ended["error"]["message"].startswith("Server restart - execution interrupted"))
        self.assertEqual(self.end(second, pure, 2)["result"], "ran")
        self.assertEqual(self.end(second, queued, 3)["result"], "ran")
        self.assertEqual((self.effects("once"), self.effects("pure"), self.effects("queued")), (["ran"], ["ran"] * 2, ["ran"]))
        self.assertEqual(self.row(lost, "failed")["code"], "OUTCOME_UNKNOWN", "its worker had got it, too")
        self.assertEqual(self.row(pure, "complete")["retry_count"], 1)
        self.assertFalse(Path(f"/proc/{worker}").exists(), "nothing of it runs any more")

    def test_the_end_of_hostler_leaves_what_may_go_on(self):
        first = self.open()
        running = self.begin(first, "once.note", id=1, path=self.path("running"), seconds=60)
        repeated = self.begin(first, "pure.note", id=2, path=self.path("pure"), seconds=60)
        queued = self.begin(first, "once.note", id=3, path=self.path("queued"))
        until(lambda: self.effects("running") and self.effects("pure"))
        first.process.send_signal(signal.SIGTERM)
        first.process.wait(PATIENCE)
        self.assertEqual(self.row(running)["state"], "failed")
        self.assertEqual({self.row(repeated)["state"], self.row(queued)["state"]} & {"complete", "error", "failed", "cancelled"}, set())
        second = self.open()
        self.assertEqual(self.end(second, queued)["result"], "ran")
        until(lambda: len(self.effects("pure")) == 2)
        self.assertTrue(second.value("calls.cancel", {"call": repeated}))
        self.assertEqual(self.end(second, repeated)["error"]["code"], "CANCELLED")

    def test_a_cancelled_call_is_not_run_again(self):
        first = self.open()
        id = self.begin(first, "pure.note", path=self.path("a"), seconds=60)
        until(lambda: self.effects("a"))
        self.assertTrue(first.value("calls.cancel", {"call": id}))
        self.assertEqual(self.end(first, id)["error"]["code"], "CANCELLED")
        self.assertEqual(self.row(id, "cancelled")["cancelled"], "the operator cancelled it")
        self.kill(first)
        self.open().value("version")
        time.sleep(1.5)  # recovery looks after a second
        self.assertEqual(self.effects("a"), ["ran"])

    def test_a_stopped_hostler_is_stale_to_others_and_its_calls_are_its_own(self):
        first, second = self.open(), self.open()
        id = self.begin(first, "pure.note", path=self.path("a"), seconds=3)
        self.assertGreater(self.row(id, "running")["last_heartbeat"], 0)
        until(lambda: self.effects("a"))
        os.kill(child_of(first.process.pid), signal.SIGSTOP)
        store = sqlite3.connect(self.state / "hostler/journal/calls.db", isolation_level=None)
        # As if it had been stopped for longer than a minute.
        store.execute("UPDATE tool_calls SET last_heartbeat = last_heartbeat - 61000")
        store.close()
        self.assertEqual([call["state"] for call in second.value("calls.list")], ["stale"])
        third = self.open()
        time.sleep(1.5)  # it looks for what is to be recovered after a second
        os.kill(child_of(first.process.pid), signal.SIGCONT)
        self.assertEqual(self.end(first, id)["result"], "ran")
        self.assertEqual((third.value("calls.wait", {"call": id})["result"], self.effects("a")), ("ran", ["ran"]))

    def test_a_fault_that_may_not_come_again_is_tried_again(self):
        hostler = self.open()
        path = self.path("tries")
        call = {"tool": "pure.die_first", "arguments": {"path": path}, "background": True}
        outcome = self.end(hostler, hostler.value("calls.start", call)["call"])
        self.assertEqual(outcome["result"], 3)
        Path(path).unlink()
        call |= {"tool": "once.die_first"}
        outcome = self.end(hostler, hostler.value("calls.start", call)["call"])
        self.assertEqual((outcome["error"]["code"], self.effects("tries")), ("PROCESS_KILLED", ["tried"]))
        Path(path).unlink()
        call |= {"max_retries": 1}
        id = hostler.value("calls.start", call)["call"]
        outcome = self.end(hostler, id)
        self.assertTrue(outcome["error"]["message"].startswith("Max retries exceeded"))
        self.assertEqual([attempt["code"] for attempt in outcome["error"]["details"]["attempts"]], ["PROCESS_KILLED"])
        row = self.row(id, "failed")
        self.assertEqual((row["retry_count"], row["attempt"], self.effects("tries")), (1, 2, ["tried"] * 2))


class Keys(Journal):
    def test_a_key_makes_one_call_whoever_asks_and_whoever_dies(self):
        first = self.open()
        ids = {self.begin(first, "once.note", id=number, key="k", path=self.path("a"), seconds=1) for number in range(5)}
        self.assertEqual(len(ids), 1)
        second = self.open()
        self.assertEqual({self.begin(second, "once.note", key="k", path=self.path("a"), seconds=1)}, ids)
        wire = self.wire()
        meta = {"hostler/idempotencyKey": "k"}
        wire.send(request(1, "tools/call", name="once_note", arguments={"seconds": 1, "path": self.path("a")}, _meta=meta))
        self.assertEqual(wire.answer(1)["result"]["structuredContent"], {"result": "ran"})
        wire.send(request(2, "tools/call", name="once_note", arguments={"seconds": 2, "path": self.path("a")}, _meta=meta))
        refused = wire.answer(2)["result"]
        self.assertTrue(refused["isError"])
        self.assertIn("differ in seconds", refused["content"][0]["text"])
        for hostler in (first, second):
            self.kill(hostler)
        third = self.open()
        self.assertEqual({self.begin(third, "once.note", key="k", path=self.path("a"), seconds=1)}, ids)
        self.assertEqual(self.end(third, ids.pop())["result"], "ran")
        self.assertEqual(self.effects("a"), ["ran"])

    def test_fifty_at_once_are_one(self):
        hostlers = [self.open() for _ in range(3)]
        for hostler in hostlers:
            hostler.value("version")
        for number in range(50):
            params = {"tool": "once.note", "arguments": {"path": self.path("a")}, "key": "same", "background": True}
            hostlers[number % 3].send(json.dumps({"jsonrpc": "2.0", "id": 100 + number, "method": "calls.start", "params": params}))
        ids = {hostlers[number % 3].next()["result"]["call"] for number in range(50)}
        self.assertEqual(len(ids), 1)
        self.assertEqual(self.end(hostlers[1], ids.pop())["result"], "ran")
        self.assertEqual(self.effects("a"), ["ran"])

    def test_a_call_that_was_not_made_gives_its_key_back(self):
        hostler = self.open()
        asked = {"tool": "once.note", "arguments": {"wrong": 1}, "key": "k"}
        id = hostler.value("calls.start", asked)["call"]
        self.assertEqual(self.end(hostler, id)["error"]["code"], "INVALID_PARAMS")
        asked["arguments"] = {"path": self.path("a")}
        id = hostler.value("calls.start", asked)["call"]
        self.assertEqual(self.end(hostler, id)["result"], "ran")

    def test_a_call_that_was_not_begun_holds_no_key_whoever_dies(self):
        no_python = TOOL.replace("{effects}", "once").replace("3.9", "3.99")
        write_tool(self.folder / "tools", "once", no_python, header="")
        asked = {"tool": "once.note", "arguments": {"path": self.path("a")}, "key": "k"}
        hostler = self.open(HOSTLER_DIE_AT="call.before-answer")
        hostler.send(request_json("calls.start", params={**asked, "background": True}, id=1))
        self.assertEqual(hostler.process.wait(PATIENCE), -signal.SIGKILL)
        write_tool(self.folder / "tools", "once", TOOL.replace("{effects}", "once"), header="")
        for background in (True, False):
            hostler = self.open()
            until(lambda: not self.rows("state = 'created'"))
            id = hostler.value("calls.start", {**asked, "background": background})["call"]
            self.assertEqual(self.end(hostler, id)["result"], "ran")
            self.kill(hostler)
        self.assertEqual(self.effects("a"), ["ran"])

    def test_a_key_that_cannot_be_kept_is_refused(self):
        command = [HOSTLER, "call", "--standalone", "--json", "--key", "k", "once.note", f"path={self.path('a')}"]
        self.state.write_text("no folder")
        ends = [subprocess.run(command, cwd=self.folder, env=self.env(), capture_output=True, text=True, timeout=PATIENCE)]
        self.state.unlink()
        (self.folder / "hostler.toml").write_text("[journal]\nenabled = false\n")
        ends.append(subprocess.run(command, cwd=self.folder, env=self.env(), capture_output=True, text=True, timeout=PATIENCE))
        self.assertEqual([json.loads(end.stdout)["error"]["code"] for end in ends], ["RESOURCE_EXHAUSTED"] * 2)
        wire = self.wire()
        for number, key in enumerate([123, True, ["a"], "", None, "k"], start=1):
            wire.send(request(number, "tools/call", name="once_note", arguments={"path": self.path("a")},
                              _meta={"hostler/idempotencyKey": key}))
            answer = wire.answer(number)
            refusal = "RESOURCE_EXHAUSTED" if key == "k" else -32602
            got = answer["error"]["code"] if "error" in answer else answer["result"]["_meta"]["hostler/outcome"]["error"]["code"]
            self.assertEqual(got, refusal, key)
        self.assertEqual(self.effects("a"), [])

    def test_a_synced_call_without_a_journal_is_refused(self):
        (self.folder / "hostler.toml").write_text('[tool]\njournal = "synced"\n')
        self.state.write_text("no folder")
        wire = self.wire()
        wire.send(call(1, "once_note", path=self.path("a")))
        self.assertEqual(wire.answer(1)["result"]["_meta"]["hostler/outcome"]["error"]["code"], "RESOURCE_EXHAUSTED")
        self.assertEqual(self.effects("a"), [])

    def test_a_call_is_not_made_again_with_a_secret_taken_out(self):
        write_tool(self.folder / "tools", "pay", """# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# secrets = ["KEY"]
# ///
def pay(to: str, path: str):
    open(path, "a").write(to + "\\n")
    raise ValueError("no")
""", header="")
        (self.folder / "key").write_text("hunter-two-2")
        (self.folder / "key").chmod(0o600)
        (self.folder / "hostler.toml").write_text('[secrets]\nKEY = { file = "key" }\n')
        hostler = self.open()
        asked = {"tool": "pay.pay", "arguments": {"to": "hunter-two-2", "path": self.path("a")}, "background": True}
        id = hostler.value("calls.start", asked)["call"]
        self.assertEqual(self.end(hostler, id)["error"]["code"], "TOOL_ERROR")
        self.row(id, "error")
        refused = hostler.ask("calls.retry", {"call": id}, id=5)
        self.assertIn("a secret was taken out", refused.message)
        self.assertEqual(self.effects("a"), ["hunter-two-2"])

    def test_a_command_is_run_once(self):
        for _ in range(2):
            done = subprocess.run([HOSTLER, "call", "--standalone", "--key", "k", "once.note", f"path={self.path('a')}"], cwd=self.folder,
                                  env=self.env(), capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertEqual(self.effects("a"), ["ran"])


class Edges(Journal):
    """hostler dies at every edge between the steps of the journal."""

    def edges(self):
        names = set()
        for path in SOURCE.rglob("*.rs"):
            names |= set(re.findall(r'\bedge\("([a-z.-]+)"\)', path.read_text()))
        # Those of tasks and of the audit log have tests of their own: test_tasks.py, test_audit.py.
        return sorted(name for name in names - {"call.detached"} if not name.startswith("audit."))

    def test_at_every_edge_nothing_acknowledged_is_lost_and_nothing_is_made_twice(self):
        edges = self.edges()
        self.assertGreater(len(edges), 12)
        for edge in edges:
            with self.subTest(edge=edge):
                self.die_at(edge)

    def die_at(self, edge):
        self.state = self.folder / f"state-{edge}"
        acknowledged, reached = {}, False
        if edge.startswith("recovery."):
            # Something to recover first.
            before = self.open()
            acknowledged["once-0"] = self.begin(before, "once.note", path=self.path(f"{edge}-once-0"), seconds=60)
            until(lambda: self.effects(f"{edge}-once-0"))
            self.kill(before)
        hostler = self.open(HOSTLER_DIE_AT=edge)
        try:
            for number, (effects, key) in enumerate([("once", None), ("pure", None), ("once", "k"), ("pure", None)], start=1):
                name = f"{effects}-{number}"
                tool = "pure.die_first" if number == 4 and edge.startswith("call.retr") else f"{effects}.note"
                acknowledged[name] = self.begin(hostler, tool, id=number, key=key, path=self.path(f"{edge}-{name}"))
            hostler.process.wait(3)
            reached = True
        except (AssertionError, BrokenPipeError, ValueError):
            reached = True
        except subprocess.TimeoutExpired:
            self.fail("it did not come there")
        self.assertTrue(reached)
        self.assertEqual(hostler.process.wait(PATIENCE), -signal.SIGKILL)
        after = self.open()
        for number, (name, id) in enumerate(acknowledged.items()):
            outcome = self.end(after, id, 200 + number)
            is_pure = name.startswith("pure")
            if is_pure:
                self.assertTrue(outcome["success"], (name, outcome))
                continue
            made = self.effects(f"{edge}-{name}")
            self.assertLessEqual(len(made), 1, f"{name} was made twice")
            if outcome["success"]:
                self.assertEqual(made, ["ran"], name)
            else:
                self.assertEqual(outcome["error"]["code"], "OUTCOME_UNKNOWN", (name, outcome))
        again = self.begin(after, "once.note", id=300, key="k", path=self.path(f"{edge}-once-3"))
        self.assertEqual(again, acknowledged.get("once-3", again))
        self.end(after, again, 301)
        self.assertLessEqual(len(self.effects(f"{edge}-once-3")), 1, "the key made two")
        until(lambda: not self.rows("state IN ('created', 'running')"))
        self.kill(after)


if __name__ == "__main__":
    unittest.main()
