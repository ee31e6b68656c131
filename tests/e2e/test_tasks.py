"""MCP tasks: calls that go on without their request, as background calls whose ids are those of the tasks."""

import json
import os
import signal
import subprocess
import time
import unittest

from harness import HOSTLER, PATIENCE, eventually, gone, write_tool
from test_journal import Journal
from test_shared import until
from wire import INLINE, Wire, request

TOOL = """# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# {settings}
# ///
import os, time
import hostler

def note(path: str, seconds: float = 0) -> str:
    with open(path, "a") as file:
        file.write("ran\\n")
    for number in range(int(seconds * 10)):
        hostler.progress(number)
        time.sleep(0.1)
    return "noted"

def ask() -> str:
    return hostler.elicit("Which?", str, key="which").data

def fail() -> str:
    raise ValueError("no")

def count() -> int:
    time.sleep(0.5)
    return 36893488147419103233

def large() -> str:
    return "x" * 2_000_000
"""
EXTENSION = "io.modelcontextprotocol/tasks"
KNOWS = INLINE | {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {EXTENSION: {}}}}
ENDED = {"completed", "failed", "cancelled"}


class Tasks(Journal):
    def setUp(self):
        super().setUp()
        for name, settings in (("always", "task = true"), ("safe", 'task = true\n# effects = "pure"'),
                               ("later", 'task_after = "300ms"'), ("only", 'task = "required"')):
            write_tool(self.folder / "tools", name, TOOL.replace("{settings}", settings), header="")
        self.last = 0

    def wire(self, **variables):
        wire = Wire(self.folder / "tools", env=self.env(**variables), cwd=self.folder, arguments=("--standalone",))
        self.addCleanup(wire.__exit__)
        return wire

    def ask(self, wire, method, meta=KNOWS, **params):
        self.last += 1
        wire.send(request(self.last, method, _meta=meta, **params))
        return wire.answer(self.last)

    def call(self, wire, name, meta=KNOWS, arguments=None, **params):
        return self.ask(wire, "tools/call", meta, name=name, arguments=arguments or {}, **params)

    def begin(self, wire, name, **arguments):
        task = self.call(wire, name, arguments=arguments)["result"]
        self.assertEqual(task["resultType"], "task", task)
        return task["taskId"]

    def look(self, wire, task):
        return self.ask(wire, "tasks/get", taskId=task)["result"]

    def until(self, wire, task, *statuses):
        limit = time.monotonic() + PATIENCE
        while True:
            found = self.look(wire, task)
            if found["status"] in statuses or found["status"] in ENDED:
                return found
            self.assertLess(time.monotonic(), limit, found)
            time.sleep(0.05)

    def test_a_task_survives_its_client_and_its_hostler(self):
        wire = self.wire()
        offered = self.ask(wire, "server/discover")["result"]["capabilities"]
        self.assertEqual(offered["extensions"], {EXTENSION: {}})
        done = self.begin(wire, "always_note", path=self.path("done"))
        ended = self.until(wire, done)
        self.assertEqual((ended["status"], ended["result"]["structuredContent"]), ("completed", {"result": "noted"}))
        self.assertEqual(ended["ttlMs"], 30 * 24 * 3600 * 1000)
        for name, seconds in (("always", 60), ("safe", 1)):
            task = self.begin(wire, f"{name}_note", path=self.path(name), seconds=seconds)
            self.assertEqual(self.look(wire, task)["status"], "working")
            self.row(task, "running")
            setattr(self, name, task)
        other = self.wire()
        self.assertEqual(self.look(other, self.safe)["status"], "working", "any client of the person may ask")
        for one in (wire, other):
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait(PATIENCE)
        again = self.wire()
        self.assertEqual(self.until(again, done)["result"], ended["result"])
        self.assertEqual(self.until(again, self.safe)["status"], "completed")
        lost = self.until(again, self.always)
        self.assertEqual(lost["status"], "completed", "its outcome is an outcome")
        self.assertTrue(lost["result"]["isError"])
        self.assertIn("OUTCOME_UNKNOWN", lost["result"]["content"][0]["text"])
        self.assertEqual((self.effects("always"), self.effects("safe")), (["ran"], ["ran", "ran"]))

    def test_it_dies_while_a_call_becomes_a_task(self):
        wire = self.wire(HOSTLER_DIE_AT="call.detached")
        wire.send(request(1, "tools/call", _meta=KNOWS, name="later_note", arguments={"path": self.path("a"), "seconds": 5}))
        with self.assertRaises(EOFError):
            wire.answer(1)
        self.assertEqual(self.effects("a"), ["ran"])
        again = self.open()
        rows = until(lambda: self.rows("state NOT IN ('created', 'running')"))
        self.assertEqual(rows[0]["code"], "OUTCOME_UNKNOWN", "its client has no id")
        self.assertEqual(self.effects("a"), ["ran"])
        self.assertEqual(again.value("calls.list", {"states": ["queued", "running"]}), [])

    def test_a_task_is_cancelled_by_another_hostler_and_before_it_is_run_again(self):
        wire, other = self.wire(), self.wire()
        task = self.begin(wire, "safe_note", path=self.path("a"), seconds=60)
        self.row(task, "running")
        self.assertEqual(self.ask(other, "tasks/cancel", taskId=task)["result"], {"resultType": "complete"})
        self.assertEqual(self.until(wire, task)["status"], "cancelled")
        elsewhere = self.begin(wire, "always_ask")
        self.until(wire, elsewhere, "input_required")
        self.row(elsewhere, "running")
        self.assertEqual(self.ask(other, "tasks/update", taskId=elsewhere, inputResponses={"which-1": {}})["error"]["code"], -32603)
        task = self.begin(wire, "safe_note", path=self.path("b"), seconds=60)
        eventually(lambda: self.effects("b"), "it runs")
        os.killpg(wire.process.pid, signal.SIGKILL)
        wire.process.wait(PATIENCE)
        again = self.wire()
        self.assertEqual(self.look(again, task)["status"], "working")
        self.assertEqual(self.ask(again, "tasks/cancel", taskId=task)["result"], {"resultType": "complete"})
        self.assertEqual(self.until(again, task)["status"], "cancelled")

    def test_long_integers_stay_exact(self):
        wire = self.wire()
        ended = self.until(wire, self.begin(wire, "always_count"))
        self.assertEqual(ended["result"]["structuredContent"]["result"], 36893488147419103233)

    def test_a_task_outlives_the_end_of_its_client(self):
        env = self.env(XDG_RUNTIME_DIR=str(self.folder / "run"), XDG_CONFIG_HOME=str(self.folder / "config"))
        (self.folder / "run").mkdir(mode=0o700)
        self.addCleanup(subprocess.run, [HOSTLER, "stop"], env=env, cwd=self.folder, capture_output=True, check=False)

        def client():
            wire = Wire(self.folder / "tools", env=env, cwd=self.folder, arguments=("--shared",))
            self.addCleanup(wire.__exit__)
            return wire
        first = client()
        task = self.begin(first, "always_note", path=self.path("a"), seconds=1.5)
        first.end_input()
        first.process.wait(PATIENCE)
        self.assertEqual(self.until(client(), task)["result"]["structuredContent"], {"result": "noted"})
        self.assertEqual(self.effects("a"), ["ran"])

    def test_a_task_asks_and_is_answered_once(self):
        wire = self.wire()
        task = self.begin(wire, "always_ask")
        asks = self.until(wire, task, "input_required")
        [(key, question)] = asks["inputRequests"].items()
        self.assertEqual((question["method"], question["params"]["message"]), ("elicitation/create", "Which?"))
        other = self.wire()
        answer = {"action": "accept", "content": {"value": "this"}}
        for responses in ({"nobody": answer}, {key: answer}, {key: {"action": "decline"}}):
            acknowledged = self.ask(wire, "tasks/update", taskId=task, inputResponses=responses)["result"]
            self.assertEqual(acknowledged, {"resultType": "complete"})
        self.assertEqual(self.until(wire, task)["result"]["structuredContent"], {"result": "this"})
        self.assertEqual(self.until(other, task)["status"], "completed")
        late = self.ask(wire, "tasks/update", taskId=task, inputResponses={key: answer})["result"]
        self.assertEqual(late, {"resultType": "complete"})

    def test_a_call_becomes_a_task_when_it_takes_long(self):
        wire = self.wire()
        quick = self.call(wire, "later_note", arguments={"path": self.path("quick")})["result"]
        self.assertEqual((quick["resultType"], quick["structuredContent"]), ("complete", {"result": "noted"}))
        meta = KNOWS | {"progressToken": 7}
        slow = self.call(wire, "later_note", meta, {"path": self.path("slow"), "seconds": 1})["result"]
        self.assertEqual(slow["resultType"], "task")
        self.assertTrue([note for note in wire.notes if note["method"] == "notifications/progress"])
        wire.notes.clear()
        self.assertEqual(self.until(wire, slow["taskId"])["status"], "completed")
        self.assertEqual(wire.notes, [], "a task makes no progress that anybody hears of")
        asked = self.call(wire, "later_ask")["result"]
        self.assertEqual(asked["resultType"], "input_required", "it is no task yet")
        time.sleep(0.5)
        [key] = asked["inputRequests"]
        answer = {key: {"action": "accept", "content": {"value": "that"}}}
        done = self.call(wire, "later_ask", inputResponses=answer, requestState=asked["requestState"])["result"]
        self.assertEqual((done["resultType"], done["structuredContent"]), ("complete", {"result": "that"}))

    def test_a_task_is_cancelled(self):
        wire = self.wire()
        task = self.begin(wire, "always_note", path=self.path("a"), seconds=60)
        eventually(lambda: self.effects("a"), "it runs")
        for _ in range(2):
            self.assertEqual(self.ask(wire, "tasks/cancel", taskId=task)["result"], {"resultType": "complete"})
        cancelled = self.until(wire, task)
        self.assertEqual((cancelled["status"], cancelled["statusMessage"]), ("cancelled", "the client cancelled it"))
        self.assertEqual(self.ask(wire, "tasks/cancel", taskId=task)["result"], {"resultType": "complete"}, "it has ended")

    def test_a_call_that_is_no_task_yet_ends_with_its_client(self):
        wire = self.wire()
        self.call(wire, "later_note", arguments={"path": self.path("warm")})
        config = self.folder / "hostler.toml"
        config.write_text('[tool.later]\ntask_after = "1min"\n')
        wire = self.wire()
        wire.send(request(90, "tools/call", _meta=KNOWS, name="later_note", arguments={"path": self.path("a"), "seconds": 60}))
        eventually(lambda: self.effects("a"), "it runs")
        wire.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 90}}).encode() + b"\n")
        eventually(lambda: self.rows("state = 'cancelled'"), "it is cancelled")
        wire.send(request(91, "tools/call", _meta=KNOWS, name="later_note", arguments={"path": self.path("b"), "seconds": 60}))
        eventually(lambda: self.effects("b"), "it runs")
        [row] = until(lambda: self.rows("state = 'running'"))
        wire.end_input()
        wire.process.wait(PATIENCE)
        eventually(gone(row["pid"]), "its worker is gone")
        self.assertEqual([row["state"] for row in self.rows(f"id = '{row['id']}'")], ["cancelled"])

    def test_whoever_does_not_know_tasks_gets_results_or_a_reason(self):
        wire = self.wire()
        plain = self.call(wire, "always_note", INLINE, {"path": self.path("a")})["result"]
        self.assertEqual(plain["resultType"], "complete")
        refused = [self.call(wire, "only_note", INLINE, {"path": self.path("b")})]
        refused += [self.ask(wire, f"tasks/{verb}", INLINE, taskId="x") for verb in ("get", "update", "cancel")]
        refused += [self.ask(wire, "subscriptions/listen", INLINE, notifications={"taskIds": ["x"]})]
        for answer in refused:
            self.assertEqual((answer["error"]["code"], answer["error"]["data"]),
                             (-32021, {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}))
        self.assertEqual(self.effects("b"), [])
        for id in ("x", "0" * 32, until(self.rows)[0]["id"]):
            self.assertEqual(self.ask(wire, "tasks/get", taskId=id)["error"]["code"], -32602, "no task has this id")
        self.assertEqual(self.ask(wire, "tasks/list")["error"]["code"], -32601)
        legacy = self.wire()
        legacy.open()
        self.last = 100
        self.assertEqual(self.ask(legacy, "tasks/get", {}, taskId="x")["error"]["code"], -32601)
        self.assertEqual(self.call(legacy, "always_note", {}, {"path": self.path("a")})["result"]["isError"], False)

    def test_no_task_is_made_where_nothing_is_written_down(self):
        (self.folder / "hostler.toml").write_text("[journal]\nenabled = false\n")
        wire = self.wire()
        self.assertNotIn("extensions", self.ask(wire, "server/discover")["result"]["capabilities"])
        self.assertEqual(self.call(wire, "always_note", arguments={"path": self.path("a")})["result"]["resultType"], "complete")
        self.assertEqual(self.ask(wire, "tasks/get", taskId="x")["error"]["code"], -32601)

    def test_a_key_names_one_task_and_faults_are_results(self):
        wire = self.wire()
        meta = KNOWS | {"hostler/idempotencyKey": "k"}
        ids = {self.call(wire, "always_note", meta, {"path": self.path("a"), "seconds": 0.5})["result"]["taskId"] for _ in range(3)}
        self.assertEqual(len(ids), 1)
        self.assertEqual(self.until(wire, ids.pop())["status"], "completed")
        self.assertEqual(self.effects("a"), ["ran"])
        failed = self.until(wire, self.begin(wire, "always_fail"))
        self.assertEqual((failed["status"], failed["result"]["isError"]), ("completed", True))
        wrong = self.call(wire, "always_note", arguments={"wrong": 1})["result"]
        ended = wrong if wrong["resultType"] == "complete" else self.until(wire, wrong["taskId"])["result"]
        self.assertIn("INVALID_PARAMS", ended["content"][0]["text"])

    def test_a_result_that_is_too_large_is_a_fault_of_the_task(self):
        (self.folder / "hostler.toml").write_text('[mcp]\nmax_result = "1MB"\n')
        wire = self.wire()
        ended = self.until(wire, self.begin(wire, "always_large"))
        self.assertTrue(ended["result"]["isError"])
        self.assertIn("INVALID_OUTPUT", ended["result"]["content"][0]["text"])


if __name__ == "__main__":
    unittest.main()
