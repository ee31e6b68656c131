"""The control face: the same methods as lines on standard streams, on the socket of the shared hostler, and by `hostler rpc`."""

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import threading
import unittest
from pathlib import Path

from jsonrpcclient import Error, Ok, notification_json, parse, request_json
from jsonschema import Draft202012Validator

from families import below
from harness import HOSTLER, PATIENCE, TOOLS, environment, scratch, write_tool
from test_shared import Shared, until
from wire import Wire, call, request

TOOL = '''
import os, time
from dataclasses import dataclass
import hostler

@dataclass
class Name:
    name: str

def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b

def pid() -> int:
    return os.getpid()

def wait(seconds: float = 600.0) -> int:
    print("waits", flush=True)
    time.sleep(seconds)
    return os.getpid()

def fail():
    raise ValueError("no")

def text(length: int) -> str:
    return "x" * length

def loud(count: int):
    for number in range(count):
        print("x" * 1000, number, flush=True)

def ask() -> str:
    answer = hostler.elicit("Who?", Name)
    return answer.data.name if answer.action == "accept" else answer.action
'''


class Lines:
    """A JSON-RPC client on two streams."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.others = []

    def send(self, text):
        self.writer.write(text.encode() + b"\n")
        self.writer.flush()

    def next(self):
        line = self.reader.readline()
        assert line, "the connection ended"
        return json.loads(line)

    def answer(self, id):
        """The answer to a request. What else comes is kept."""
        while True:
            message = self.next()
            if "method" not in message and message.get("id") == id:
                return message
            self.others.append(message)

    def ask(self, method, params=None, id=1):
        self.send(request_json(method, params=params, id=id))
        return parse(self.answer(id))

    def value(self, method, params=None, id=1):
        answer = self.ask(method, params, id)
        assert isinstance(answer, Ok), answer
        return answer.result


class Lined(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "t", TOOL)

    def open(self, *arguments, cwd=None):
        process = subprocess.Popen(
            [HOSTLER, "serve", "--rpc", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=cwd or self.folder, env=environment(), start_new_session=True,
        )
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.kill)
        lines = Lines(process.stdout, process.stdin)
        lines.process = process
        return lines


class Served(Lined):
    def test_a_tool_is_called_by_the_names_of_the_specification(self):
        lines = self.open()
        done = lines.value("ExecuteTool", {"name": "t.add", "input_json": '{"a": 1}', "timeout_ms": 0})
        self.assertEqual((done["success"], done["output_json"], done["error"]), (True, "2", ""))
        self.assertGreater(done["duration_ms"], 0)
        by_place = lines.value("ExecuteTool", ["t_add", '{"a": 1, "b": 2}'])
        self.assertEqual(by_place["output_json"], "3")
        failures = {
            "TOOL_NOT_FOUND": {"name": "t.nothing"},
            "INVALID_PARAMS": {"name": "t.add", "input_json": '{"b": 1}'},
            "TOOL_ERROR": {"name": "t.fail"},
            "TOOL_TIMEOUT": {"name": "t.wait", "timeout_ms": 300},
        }
        for code, params in failures.items():
            failed = lines.value("ExecuteTool", params)
            self.assertEqual((failed["success"], failed["error_code"], failed["output_json"]), (False, code, ""))
            self.assertTrue(failed["error"])
        for text in ("[]", "{", "7"):
            self.assertEqual(lines.value("ExecuteTool", {"name": "t.add", "input_json": text})["error_code"], "INVALID_PARAMS")

    def test_tools_are_described(self):
        (self.folder / "tools" / "broken.py").write_text("# /// script\n# dependencies = [\n# ///\ndef f(): pass\n")
        write_tool(self.folder / "tools", "v", "def f() -> int: return 1\n",
                   header='# /// script\n# dependencies = []\n# [tool.hostler]\n# version = "1.2"\n# tags = ["x"]\n# ///\n')
        lines = self.open()
        tools = {tool["name"]: tool for tool in lines.value("ListAvailableTools")["tools"]}
        self.assertEqual((tools["v.f"]["version"], tools["v.f"]["tags"], tools["v.f"]["status"]), ("1.2", ["x"], "ready"))
        self.assertEqual(tools["t.add"]["description"], "Adds.")
        self.assertEqual(tools["t.add"]["input_schema"]["required"], ["a"])
        schema = lines.value("GetToolSchema", {"name": "t.add"})
        self.assertEqual(schema["input_schema"], tools["t.add"]["input_schema"])
        self.assertEqual(schema["output_schema"]["properties"]["result"], {"type": "integer"})
        refused = lines.ask("GetToolSchema", {"name": "t.ad"})
        self.assertEqual((refused.data["code"], refused.data["details"]["near"][0]), ("TOOL_NOT_FOUND", "t.add"))
        rows = lines.value("tools.list", {"filter": {"tag": "x"}})["rows"]
        self.assertEqual([row["name"] for row in rows], ["v.f"])
        self.assertEqual(lines.value("tools.show", {"tool": "v.f"})["policy"]["version"], "1.2")
        write_tool(self.folder / "tools", "later", "def f() -> int: return 1\n")
        ready = [tool for tool in tools.values() if tool["status"] == "ready"]
        self.assertEqual(lines.value("tools.refresh")["tools"], len(ready) + 1)

    def test_a_call_is_heard_and_asks(self):
        lines = self.open()
        self.assertEqual(lines.value("calls.run", {"tool": "t.ask"})["error"]["code"], "NOT_SUPPORTED", "no person is there")
        lines.send(request_json("calls.run", params={"tool": "t.ask", "can_ask": True}, id=5))
        while (question := lines.next()).get("method") != "client.elicit":
            pass
        self.assertEqual(question["params"]["message"], "Who?")
        lines.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}}))
        self.assertEqual(lines.answer(5)["result"]["result"], "Ada")
        lines.value("calls.run", {"tool": "t.wait", "arguments": {"seconds": 0}})
        heard = [one["params"] for one in lines.others if one.get("method") == "calls.event"]
        self.assertIn({"event": "output", "stream": "stdout", "text": "waits\n"}, heard)

    def test_requests_are_answered_when_they_are_done(self):
        lines = self.open()
        lines.value("ExecuteTool", {"name": "t.pid"})
        lines.send(request_json("ExecuteTool", params={"name": "t.wait", "input_json": '{"seconds": 0.5}'}, id="slow"))
        self.assertIsInstance(lines.ask("version", id="fast"), Ok)
        self.assertEqual(lines.others, [])
        self.assertTrue(lines.answer("slow")["result"]["success"])

    def test_batches_notifications_and_ids_of_every_type(self):
        lines = self.open()
        for id in (0, -1, 2**53, "text", "", None):
            with self.subTest(id=id):
                lines.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "health"}))
                message = lines.next()
                if id == -1:  # what jsonrpsee reads as an id
                    self.assertEqual(message["error"]["code"], -32600)
                else:
                    self.assertEqual((message["id"], message["result"]["accepting"]), (id, True))
        for id in (1.5, True, [], {}):
            lines.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "health"}))
            message = lines.next()
            self.assertEqual((message["id"], message["error"]["code"]), (None, -32600))
        lines.send("[" + ", ".join([request_json("health", id=1), notification_json("health"), "3", request_json("nothing", id=2),
                                    request_json("ExecuteTool", params={"name": "t.add", "input_json": '{"a": 1}'}, id=3)]) + "]")
        answers = lines.next()
        self.assertEqual([answer["id"] for answer in answers], [1, None, 2, 3])
        self.assertEqual([answer.get("error", {}).get("code") for answer in answers], [None, -32600, -32601, None])
        lines.send("[" + notification_json("health") + "]")
        lines.send(notification_json("nothing"))
        lines.send("")
        for text, code in (("[]", -32600), ("{", -32700), ("[1,", -32700), ('"text"', -32600), ("\x00", -32700),
                           ("[" + "1," * 2000 + "1]", -32600), ('{"jsonrpc": "1.0", "id": 1, "method": "health"}', -32600)):
            lines.send(text)
            self.assertEqual(lines.next()["error"]["code"], code, text[:50])
        lines.writer.write(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}\n')
        lines.writer.flush()
        self.assertEqual(lines.next()["error"]["code"], -32700)
        self.assertIsInstance(lines.ask("version", id=9), Ok, "it goes on")

    def test_parameters_that_are_not_those_of_the_method(self):
        lines = self.open()
        for method, params in (("ExecuteTool", {}), ("ExecuteTool", {"name": 7}), ("ExecuteTool", {"name": "t.add", "inputs": 1}),
                               ("tools.list", {"filter": {"tags": "x"}}), ("sessions.end", {"session": -1}), ("health", [1]),
                               ("health", {"a": 1}), ("ExecuteTool", {"name": "t.add", "timeout_ms": -1})):
            refused = lines.ask(method, params)
            self.assertIsInstance(refused, Error, (method, params))
            self.assertEqual((refused.code, refused.data["code"]), (-32602, "INVALID_PARAMS"), (method, params))
        self.assertEqual(lines.ask("sessions.end", {"session": 99}).data["code"], "NOT_FOUND")

    def test_too_many_requests_are_refused_and_the_rest_is_answered(self):
        lines = self.open()
        for number in range(1030):
            lines.send(request_json("ExecuteTool", params={"name": "t.wait", "timeout_ms": 600000}, id=number))
        refused = lines.next()
        while "error" not in refused:
            refused = lines.next()
        self.assertIn("1024", refused["error"]["message"])
        self.assertEqual((refused["id"], refused["error"]["data"]["code"]), (1024, "BUSY"))
        lines.send("[" + request_json("health", id="a") + "," + notification_json("health") + "," + request_json("health", id="b") + "]")
        while not isinstance(refused, list):
            refused = lines.next()
        self.assertEqual([one["id"] for one in refused], ["a", "b"])

    def test_quick_requests_that_come_together_are_all_answered(self):
        lines = self.open()
        count = 5000
        lines.send("\n".join(request_json("health", id=number) for number in range(count)))
        answers = [lines.next() for _ in range(count)]
        self.assertEqual([answer for answer in answers if "error" in answer], [])
        self.assertEqual(sorted(answer["id"] for answer in answers), list(range(count)))

    def test_a_batch_whose_answers_are_too_long_is_refused_in_part(self):
        lines = self.open()
        one = request_json("ExecuteTool", params={"name": "t.text", "input_json": '{"length": 1000000}'}, id=1)
        lines.send("[" + ", ".join([one] * 36 + [notification_json("health"), request_json("health", id="last")]) + "]")
        answers = lines.next()
        codes = [answer.get("error", {}).get("data", {}).get("code") for answer in answers]
        self.assertEqual((codes[:33], codes[-1], len(codes)), ([None] * 33, "BUSY", 37))
        self.assertEqual(answers[-1]["id"], "last")

    def test_what_was_asked_before_the_input_ends_is_answered(self):
        for end in ("", "\n"):
            done = subprocess.run(
                [HOSTLER, "serve", "--rpc"], cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=PATIENCE,
                input=request_json("ExecuteTool", params={"name": "t.add", "input_json": '{"a": 1}'}, id=1) + end,
            )
            self.assertEqual((done.returncode, json.loads(done.stdout)["result"]["output_json"]), (0, "2"), done.stderr)

    def test_calls_end_with_a_client_that_no_longer_reads(self):
        lines = self.open()
        worker = json.loads(lines.value("ExecuteTool", {"name": "t.pid"})["output_json"])
        lines.send(request_json("calls.run", params={"tool": "t.wait"}, id=2))
        while lines.next().get("method") != "calls.event":
            pass
        lines.reader.close()
        self.assertEqual(lines.process.wait(PATIENCE), 0)
        self.assertFalse(Path(f"/proc/{worker}").exists())

    def test_signals_and_stop_end_it(self):
        for how in ("signal", "stop", "notification"):
            with self.subTest(how):
                lines = self.open()
                lines.value("ExecuteTool", {"name": "t.pid"})
                family = below(lines.process.pid)
                if how == "signal":
                    lines.process.send_signal(signal.SIGTERM)
                else:
                    lines.send(request_json("stop", id=1) if how == "stop" else notification_json("stop"))
                self.assertEqual(lines.process.wait(PATIENCE), 0)
                until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family))

    def test_large_arguments_and_results(self):
        lines = self.open()
        done = lines.value("ExecuteTool", {"name": "t.text", "input_json": '{"length": 20000000}'})
        self.assertEqual(len(done["output_json"]), 20_000_002)
        failed = lines.value("ExecuteTool", {"name": "t.add", "input_json": json.dumps({"a": "x" * 20_000_000})})
        self.assertEqual(failed["error_code"], "INVALID_PARAMS")
        self.assertLess(len(failed["error"]), 10_000)

    def test_the_document_describes_every_answer(self):
        lines = self.open()
        document = lines.value("rpc.discover")
        methods = {method["name"]: method for method in document["methods"]}
        asked = {"ExecuteTool": {"name": "t.add", "input_json": '{"a": 1}'}, "GetToolSchema": {"name": "t.add"}, "tools.show": {"tool": "t.add"}}
        for name in ("version", "health", "status", "sessions.list", "ListAvailableTools", "tools.list", "tools.refresh", *asked):
            schema = {**methods[name]["result"]["schema"], "components": document["components"]}
            Draft202012Validator(schema).validate(lines.value(name, asked.get(name, {})))
        for method in methods.values():
            self.assertTrue(method["description"].endswith("."), method["name"])
            self.assertIn(method["x-scope"], ("observe", "call", "operate"))
            for param in method["params"]:
                Draft202012Validator.check_schema(param["schema"])


class Calls(Lined):
    def test_a_started_call_is_waited_for_and_read(self):
        lines = self.open()
        call = lines.value("calls.start", {"tool": "t.wait", "arguments": {"seconds": 0.5}, "tags": ["x"]})["call"]
        self.assertIsNone(lines.value("calls.wait", {"call": call, "timeout_ms": 1}))
        first = lines.value("calls.output", {"call": call, "wait_ms": 60000})
        self.assertEqual([(chunk["number"], chunk["stream"], chunk["text"]) for chunk in first["chunks"]], [(0, "stdout", "waits\n")])
        self.assertEqual((first["next"], first["lost"]), (1, 0))
        self.assertEqual([one["call_id"] for one in lines.value("calls.list", {"states": ["running"], "tag": "x"})], [call])
        outcome = lines.value("calls.wait", {"call": call})
        self.assertEqual((outcome["call_id"], outcome["success"]), (call, True))
        rest = lines.value("calls.output", {"call": call, "from": first["next"], "wait_ms": 60000})
        self.assertEqual((rest["chunks"], rest["ended"]), ([], True))
        known = lines.value("calls.get", {"call": call})
        self.assertEqual((known["state"], known["tags"], known["tool"]), ("complete", ["x"], "t.wait"))
        self.assertEqual(lines.value("calls.wait", {"call": call})["call_id"], call, "again")

    def test_a_call_is_cancelled(self):
        lines = self.open()
        call = lines.value("calls.start", {"tool": "t.wait"})["call"]
        self.assertTrue(lines.value("calls.cancel", {"call": call}))
        outcome = lines.value("calls.wait", {"call": call})
        self.assertEqual((outcome["error"]["code"], outcome["metadata"]["cancelled"]["by"]), ("CANCELLED", "operator"))
        self.assertFalse(lines.value("calls.cancel", {"call": call}), "it has ended")
        for method in ("calls.cancel", "calls.get", "calls.wait", "calls.output"):
            self.assertEqual(lines.ask(method, {"call": "nothing"}).data["code"], "NOT_FOUND")

    def test_calls_with_one_key_are_one(self):
        lines = self.open()
        start = {"tool": "t.wait", "arguments": {"seconds": 0.3}, "key": "k"}
        first, second = (lines.value("calls.start", start)["call"] for _ in range(2))
        self.assertEqual(first, second)
        lines.value("calls.wait", {"call": first})

    def test_started_calls_are_forgotten_in_time(self):
        lines = self.open()
        calls = [lines.value("calls.start", {"tool": "t.add", "arguments": {"a": 1}})["call"] for _ in range(105)]
        for call in calls[-100:]:
            lines.value("calls.wait", {"call": call})
        last = lines.value("calls.start", {"tool": "t.add", "arguments": {"a": 1}})["call"]
        self.assertEqual(lines.ask("calls.wait", {"call": calls[0]}).data["code"], "NOT_FOUND")
        self.assertEqual(lines.value("calls.wait", {"call": last})["result"], 2)

    def test_output_beyond_a_megabyte_loses_its_beginning(self):
        lines = self.open()
        call = lines.value("calls.start", {"tool": "t.loud", "arguments": {"count": 3000}})["call"]
        lines.value("calls.wait", {"call": call})
        output = lines.value("calls.output", {"call": call})
        self.assertEqual(output["lost"] + len(output["chunks"]), output["next"])
        self.assertGreater(output["lost"], 0)
        self.assertLess(sum(len(chunk["text"]) for chunk in output["chunks"]), 1_100_000)


class Events(Lined):
    def subscribe(self, lines, **filter):
        lines.subscription = lines.value("events.subscribe", filter, id="s")
        return lines.subscription

    def events(self, lines, last):
        """The events up to one of this kind."""
        found = []
        while not found or found[-1]["event"] != last:
            message = lines.others.pop(0) if lines.others else lines.next()
            if message.get("method") == "events.event":
                self.assertEqual(message["params"]["subscription"], lines.subscription)
                found.append(message["params"]["result"])
        return found

    def test_a_subscriber_hears_what_happens(self):
        lines = self.open()
        self.subscribe(lines)
        call = lines.value("calls.start", {"tool": "t.wait", "arguments": {"seconds": 0}})["call"]
        found = self.events(lines, "tool_call_completed")
        kinds = [event["event"] for event in found]
        for kind in ("tool_call_started", "worker_started", "tool_output", "tool_call_completed"):
            self.assertIn(kind, kinds)
        of_call = [event for event in found if "call_id" in event]
        self.assertEqual({event["call_id"] for event in of_call}, {call})
        self.assertEqual((of_call[0]["tool_name"], of_call[0]["arguments"]), ("t.wait", {"seconds": 0}))
        output, = (event for event in found if event["event"] == "tool_output")
        self.assertEqual((output["stream"], output["text"], output["chunk"]), ("stdout", "waits\n", 0))
        lines.value("calls.start", {"tool": "t.fail"})
        failed = self.events(lines, "tool_call_failed")[-1]
        self.assertEqual((failed["success"], failed["error"]["code"]), (False, "TOOL_ERROR"))
        self.assertIn("in fail", failed["traceback"])

    def test_filters_and_an_end(self):
        lines = self.open()
        self.subscribe(lines, tool="t.add", kinds=["tool_call_completed"])
        for tool, arguments in (("t.wait", {"seconds": 0}), ("t.add", {"a": 1})):
            lines.value("calls.run", {"tool": tool, "arguments": arguments})
        self.assertEqual([event["tool_name"] for event in self.events(lines, "tool_call_completed")], ["t.add"])
        self.assertTrue(lines.value("events.unsubscribe", [lines.subscription]))
        lines.others.clear()
        lines.value("calls.run", {"tool": "t.add", "arguments": {"a": 1}})
        lines.value("health")
        self.assertEqual([one for one in lines.others if one.get("method") == "events.event"], [])
        for filter in ({"tol": "x"}, {"kinds": ["nothing"]}, {"session": "x"}):
            self.assertEqual(lines.ask("events.subscribe", filter).code, -32602)

    def test_ten_thousand_subscriptions_are_refused_in_time(self):
        lines = self.open()
        for number in range(10_000):
            lines.send(request_json("events.subscribe", params={}, id=number))
        # Events, as of the environment that is ready meanwhile, come between the answers, to each that is subscribed.
        answers = itertools.islice((message for message in iter(lines.next, None) if "id" in message), 10_000)
        self.assertEqual(sum("error" in answer for answer in answers), 10_000 - 1024)
        self.assertIsInstance(self.open().ask("health"), Ok)

    def test_tools_are_counted(self):
        lines = self.open()
        for name, arguments in (("t.add", {"a": 1}), ("t.add", {"a": 2}), ("t.fail", {}), ("t.nothing", {})):
            lines.value("calls.run", {"tool": name, "arguments": arguments})
        all = lines.value("metrics.tools")
        self.assertEqual((all["totalExecutions"], all["successfulExecutions"], all["failedExecutions"]), (4, 2, 2))
        self.assertEqual((all["activeTools"], all["queuedTools"]), (0, 0))
        self.assertGreater(all["averageExecutionTime"], 0)
        of = {tool["tool"]: tool for tool in all["tools"]}
        self.assertEqual((of["t.add"]["executions"], of["t.add"]["failed"]), (2, 0))
        self.assertEqual(of["t.fail"]["failures"], {"TOOL_ERROR": 1})
        self.assertEqual(of["t.pid"]["executions"], 0, "never called")
        text = lines.value("metrics.text")
        self.assertIn('hostler_tool_calls_total{tool="t.add",outcome="success"} 2\n', text)
        self.assertTrue(text.endswith("# EOF\n"))


class Pools(Lined):
    def test_workers_are_drained_restarted_and_warmed(self):
        (self.folder / "hostler.toml").write_text("[tool.t]\nmin_workers = 1\n")
        lines = self.open()
        pid = lambda: json.loads(lines.value("ExecuteTool", {"name": "t.pid"})["output_json"])
        pids = lambda: [worker["pid"] for pool in lines.value("pool.status") for worker in pool["workers"] if worker["pid"]]
        first = pid()
        source, = (pool["source"] for pool in lines.value("pool.status", {}))
        self.assertEqual(lines.value("pool.drain", {"source": source}), {"pools": 1})
        until(lambda: not Path(f"/proc/{first}").exists())
        second = pid()
        self.assertNotEqual(first, second)
        lines.value("pool.restart")
        until(lambda: pids() and second not in pids())
        self.assertEqual(lines.ask("pool.drain", {"source": "nothing"}).data["code"], "NOT_FOUND")
        self.assertEqual(lines.value("pool.warm", {"tool": "t.pid"}), {"built": False})

    def test_calls_that_run_are_finished(self):
        lines = self.open()
        call = lines.value("calls.start", {"tool": "t.wait", "arguments": {"seconds": 1}})["call"]
        lines.value("calls.output", {"call": call, "wait_ms": 60000})
        lines.value("pool.drain")
        self.assertTrue(lines.value("calls.wait", {"call": call})["success"])


class OnTheSocket(Shared):
    def connect(self):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(PATIENCE)
        path, = (self.folder / "run" / "hostler").glob("*.sock")
        link.connect(str(path))
        self.addCleanup(link.close)
        lines = Lines(link.makefile("rb"), link.makefile("wb"))
        lines.link = link
        return lines

    def session(self):
        lines = self.connect()
        # Any program: it names no build.
        params = {"directory": str(self.folder), "tools": [str(self.tools)], "variables": list(self.env.items())}
        lines.number = lines.value("session.open", params)["session"]
        lines.send(notification_json("session.begin"))
        return lines

    def test_a_program_opens_a_session_and_shares_workers(self):
        wire = self.open()
        worker, _ = wire.value(1, "a_pid")
        lines = self.session()
        done = lines.value("ExecuteTool", {"name": "a.pid"}, id=2)
        self.assertEqual(json.loads(done["output_json"])[0], worker)
        self.assertIn(lines.number, [session["session"] for session in self.status()["sessions"]])
        self.assertEqual(lines.value("version", id=3)["pid"], self.status()["pid"])
        lines.link.shutdown(socket.SHUT_RDWR)
        until(lambda: lines.number not in [session["session"] for session in self.status()["sessions"]])

    def test_what_a_connection_begins_with_is_answered_whatever_it_is(self):
        self.open()
        for first, id, code in (
            (request_json("health", id="text"), "text", None), (request_json("health", id=2**63), 2**63, None), ("nonsense", None, -32700),
            ('{"jsonrpc": "2.0", "id": 1.5, "method": "health"}', None, -32600), (request_json("session.open", params={}, id="a"), "a", -32602),
            (request_json("session.open", params={"directory": "here", "variables": []}, id=7), 7, -32000),
        ):
            with self.subTest(first=first):
                lines = self.connect()
                lines.send(first)
                answer = lines.next()
                self.assertEqual((answer["id"], answer.get("error", {}).get("code")), (id, code))
        lines = self.connect()
        lines.send("")
        lines.send("[" + request_json("health", id=1) + "]")
        self.assertTrue(lines.next()[0]["result"]["accepting"])
        self.assertTrue(lines.value("health")["accepting"], "it goes on")

    def test_a_session_begins_under_any_id_and_only_when_its_program_says_so(self):
        self.open()
        params = {"directory": str(self.folder), "variables": list(self.env.items())}
        lines = self.connect()
        self.assertIn("session", lines.value("session.open", params, id="open"))
        refused = lines.ask("tools.list", id="early")
        self.assertEqual((refused.code, "session.begin" in refused.message), (-32600, True))

    def test_a_connection_without_a_session_sees_no_tools(self):
        self.open()
        lines = self.connect()
        for method, params in (("ExecuteTool", {"name": "a.pid"}), ("tools.list", {}), ("calls.run", {"tool": "a.pid"})):
            self.assertEqual(lines.ask(method, params).data["code"], "NO_SESSION")
        self.assertTrue(lines.value("health")["accepting"])

    def test_calls_end_with_their_connection_and_no_others(self):
        wire = self.open()
        wire.value(1, "a_pid")
        lines = self.session()
        lines.send(request_json("calls.run", params={"tool": "a.wait", "arguments": {"seconds": 600}}, id=2))
        until(lambda: any(one["session"] == lines.number and one["running"] == 1 for one in self.status()["sessions"]))
        lines.link.shutdown(socket.SHUT_RDWR)
        until(lambda: len(self.sessions()) == 1)
        self.assertIsInstance(wire.value(2, "a_pid")[0], int)

    def test_a_reader_that_is_slow_loses_the_oldest_and_holds_up_nothing(self):
        write_tool(self.tools, "t", TOOL)
        self.open()
        slow, lines = self.connect(), self.session()
        slow.value("events.subscribe", {"kinds": ["tool_output", "tool_call_completed"]})
        lines.value("calls.start", {"tool": "t.loud", "arguments": {"count": 30000}}, id=2)
        call = lines.value("calls.list", {"tool": "t.loud"}, id=3)[0]["call_id"]
        lines.value("calls.wait", {"call": call}, id=4)
        found = []
        while not found or found[-1]["event"] != "tool_call_completed":
            found.append(slow.next()["params"]["result"])
        chunks = [event["chunk"] for event in found if event["event"] == "tool_output"]
        lost = [event["count"] for event in found if event["event"] == "lost"]
        self.assertEqual(chunks, sorted(chunks))
        self.assertTrue(lost)
        self.assertEqual(len(chunks) + sum(lost), chunks[-1] + 1, "each chunk was read or counted")

    def test_a_session_that_lives_long_follows_the_configuration(self):
        (self.folder / "hostler.toml").write_text("")
        self.open()
        lines = self.session()
        lines.value("ExecuteTool", {"name": "a.pid"}, id=2)
        (self.folder / "hostler.toml").write_text('[tool.a]\ntimeout = "100ms"\n')
        until(lambda: lines.value("ExecuteTool", {"name": "a.wait", "input_json": '{"seconds": 1}'}, id=3)["error_code"] == "TOOL_TIMEOUT")

    def test_the_command_calls_methods_of_the_shared_one(self):
        self.open()
        number = json.loads(self.run_hostler("rpc", "version").stdout)["pid"]
        self.assertEqual(number, self.status()["pid"])
        done = json.loads(self.run_hostler("--tools", str(self.tools), "rpc", "ExecuteTool", '{"name": "a.pid"}').stdout)
        self.assertIn(json.loads(done["output_json"])[0], below(self.status()["pid"]))


    def test_the_command_prints_events_until_nobody_reads(self):
        wire = self.open()
        words = [HOSTLER, "rpc", "events.subscribe", '{"tool": "a.pid", "kinds": ["tool_call_completed"]}']
        with subprocess.Popen(words, env=self.env, cwd=self.folder, stdout=subprocess.PIPE, text=True) as program:
            until(lambda: wire.value(1, "a_pid") and select.select([program.stdout], [], [], 0.1)[0])
            self.assertEqual(json.loads(program.stdout.readline())["tool_name"], "a.pid")
            program.stdout.close()
            until(lambda: wire.value(2, "a_pid") and program.poll() is not None)

    def test_a_client_that_does_not_read_is_not_answered_without_end(self):
        self.open()
        lines = self.session()
        lines.link.setblocking(False)
        many, sent = b'{"jsonrpc":"2.0","id":1,"method":"nothing"}\n' * 1000, 0
        # Until nothing of what is sent is read any more: what waits to be read is limited.
        while select.select([], [lines.link], [], 3)[1]:
            sent += lines.link.send(many)
            self.assertLess(sent, 50_000_000)
        self.assertIsInstance(self.connect().ask("health"), Ok)

    def test_what_is_unread_and_a_line_that_was_long_take_little_memory(self):
        self.open()
        before = self.status()["rss"]
        lines = self.connect()
        lines.send("\n".join([request_json("rpc.discover", id=1)] * 1000))
        other = self.connect()
        other.value("health")
        other.send(request_json("nothing", params=["x" * 50_000_000], id=1))
        other.answer(1)
        taken = self.status()["rss"] - before
        self.assertLess(taken, 25_000_000)
        self.assertEqual(len([lines.next() for _ in range(1000)]), 1000)
        self.assertTrue(other.value("health")["accepting"])

    def test_a_person_lists_follows_and_cancels_calls(self):
        write_tool(self.tools, "t", TOOL)
        write_tool(self.tools, "long", """
            import time
            def tell():
                while True:
                    print("still\\x1b[2J here", flush=True)
                    time.sleep(0.05)
        """.replace("\n            ", "\n"))
        wire = self.open()
        wire.send(call(1, "t_fail") + call(2, "long_tell"))
        wire.answer(1)
        until(lambda: "running" in self.run_hostler("calls", "list", "--running").stdout)
        listed = json.loads(self.run_hostler("calls", "--json").stdout)
        self.assertEqual([one["tool"] for one in listed], ["long.tell", "t.fail"])
        table = self.run_hostler("calls").stdout.splitlines()
        self.assertEqual([line.split()[:2] for line in table[1:]], [[one["call_id"][:10], one["tool"]] for one in listed])
        failed = self.run_hostler("calls", "show", listed[1]["call_id"][:12])
        self.assertIn("TOOL_ERROR", failed.stdout)
        began = listed[0]["call_id"][:10]
        with subprocess.Popen([HOSTLER, "calls", "output", began], env=self.env, cwd=self.folder, stdout=subprocess.PIPE, text=True) as follower:
            self.assertEqual(follower.stdout.readline(), "still·[2J here\n")
            self.assertEqual(self.run_hostler("calls", "cancel", began).returncode, 0)
            self.assertEqual(follower.wait(PATIENCE), 0)
        self.assertIn("cancelled", self.run_hostler("calls", "show", began).stdout)
        self.assertEqual(self.run_hostler("calls", "cancel", began).returncode, 2)
        printed = self.run_hostler("calls", "output", began)
        self.assertEqual((printed.returncode, printed.stdout.splitlines()[0]), (0, "still·[2J here"))
        self.assertEqual(self.run_hostler("calls", "show", "nothing").returncode, 3)
        for word in ("show", "cancel", "output"):
            refused = self.run_hostler("calls", word, "")
            self.assertEqual(refused.returncode, 2, "not whatever is there")
            self.assertIn("<ID>", refused.stderr)
        for number in range(17):
            wire.value(10 + number, "a_pid")
        ids = [one["call_id"] for one in json.loads(self.run_hostler("calls", "--json").stdout)]
        several = next(id[0] for id in ids if sum(other.startswith(id[0]) for other in ids) > 1)
        self.assertEqual(self.run_hostler("calls", "show", several).returncode, 2, "several begin so")

    def test_a_call_that_ends_before_it_is_followed_is_not_waited_for(self):
        write_tool(self.tools, "t", TOOL)
        self.open()
        lines = self.session()
        id = lines.value("calls.start", {"tool": "t.wait"}, id=2)["call"]
        path, = (self.folder / "run" / "hostler").glob("*.sock")
        behind = path.with_suffix(".behind")
        path.rename(behind)
        proxy = socket.socket(socket.AF_UNIX)
        self.addCleanup(proxy.close)
        proxy.bind(str(path))
        proxy.listen()

        def relay(near):
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(behind))
            with near, far, near.makefile("rb") as asked, far.makefile("rb") as answers:
                for line in asked:
                    if b"events.subscribe" in line:
                        lines.value("calls.cancel", {"call": id}, id=3)
                        lines.value("calls.wait", {"call": id}, id=4)
                    far.sendall(line)
                    near.sendall(answers.readline())

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=relay, args=(proxy.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        self.assertEqual(self.run_hostler("calls", "output", id).returncode, 2)
        proxy.shutdown(socket.SHUT_RDWR)
        behind.rename(path)

    def test_what_is_refused_is_said_as_it_is(self):
        self.open()
        for words, status in ((("calls.get", '{"call": "nothing"}'), 3), (("calls.list", '{"limit": "x"}'), 2), (("pool.drain", '["x"]'), 3)):
            done = self.run_hostler("rpc", *words)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertNotIn("did not answer", done.stderr)

    def test_a_follower_says_that_the_shared_one_was_killed(self):
        write_tool(self.tools, "t", TOOL)
        self.open()
        lines = self.session()
        id = lines.value("calls.start", {"tool": "t.loud", "arguments": {"count": 10**9}}, id=2)["call"]
        words = (("rpc", "events.subscribe", "{}"), ("calls", "output", id))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        programs = [subprocess.Popen([HOSTLER, *one], env=self.env, cwd=self.folder, **pipes) for one in words]
        for program in programs:
            self.assertTrue(program.stdout.readline())
        os.kill(self.status()["pid"], signal.SIGKILL)
        for program in programs:
            _, said = program.communicate(timeout=PATIENCE)
            self.assertEqual((program.returncode, "it ended" in said), (70, True), said)

    def test_one_that_is_stopped_does_not_answer_in_time(self):
        self.open()
        pid = self.status()["pid"]
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        done = self.run_hostler("rpc", "health")
        self.assertEqual((done.returncode, "within 5 s" in done.stderr), (70, True), done.stderr)

    def test_a_hostile_name_of_a_client_stays_a_cell(self):
        wire = Wire(self.tools, env=self.env, arguments=("--shared",), cwd=self.folder)
        self.addCleanup(wire.__exit__)
        client = {"name": "e\x1b[2J\nvil\u202e" + "n" * 100, "version": "1"}
        wire.send(request(9, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client))
        wire.answer(9)
        wire.send(call(10, "a_nothing"))
        wire.answer(10)
        for words in (("status",), ("calls",)):
            shown = self.run_hostler(*words).stdout
            line, = (line for line in shown.splitlines() if "·[2J vil·" in line)
            self.assertNotIn("\x1b", shown)
            self.assertLess(line.count("n" * 20), 1, line)

    def test_a_watch_ends_when_nothing_reads_it(self):
        self.open()
        for words in ((), ("--json",)):
            with subprocess.Popen([HOSTLER, "status", "--watch", *words], env=self.env, stdout=subprocess.PIPE) as program:
                self.assertTrue(program.stdout.readline())
                program.stdout.close()
                self.assertEqual(program.wait(PATIENCE), 0)


class Command(unittest.TestCase):
    def run_hostler(self, *words, **more):
        env = environment(XDG_RUNTIME_DIR=scratch(self))
        return subprocess.run([HOSTLER, "--tools", str(TOOLS), *words], env=env, capture_output=True, text=True, timeout=PATIENCE, **more)

    def test_methods_that_see_tools_work_without_a_shared_hostler(self):
        listed = json.loads(self.run_hostler("rpc", "tools.list").stdout)
        self.assertTrue(listed["rows"])
        asked = self.run_hostler("rpc", "tools.list", "-", input='{"filter": {"pack": "nothing"}}')
        self.assertEqual(json.loads(asked.stdout)["rows"], [])

    def test_what_is_wrong_is_said(self):
        for words, status in ((("version",), 3), (("tools.lst",), 3), (("tools.show", '{"tool": "nothing.here"}'), 3),
                              (("tools.list", "{"), 2), (("tools.list", "7"), 2), (("tools.list", '{"a": 1}'), 2), ((), 2)):
            done = self.run_hostler("rpc", *words)
            self.assertEqual((done.returncode, done.stdout), (status, ""), (words, done.stderr))
            self.assertTrue(done.stderr.startswith("error: "), done.stderr)

    def test_the_document_is_printed(self):
        document = json.loads(self.run_hostler("rpc", "--openrpc").stdout)
        self.assertIn("ExecuteTool", [method["name"] for method in document["methods"]])
