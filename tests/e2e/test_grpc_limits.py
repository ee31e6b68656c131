"""gRPC with clients that send too much, too little or too late, that take nothing, or that watch."""

import contextlib
import json
import re
import struct
import time
import unittest
from pathlib import Path

import grpc
import h2.events
import h2.settings
from grpc_health.v1 import health_pb2, health_pb2_grpc

import test_grpc
from harness import PATIENCE
from test_grpc import SERVICE, Rpcs, Wired, metadata, setUpModule, tearDownModule
from test_http import Serving, until

HEALTH = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
METHODS = ["ExecuteTool", "ListAvailableTools", "GetToolSchema"]
# Of statuses.
INVALID_ARGUMENT, DEADLINE_EXCEEDED, OUT_OF_RANGE, UNAUTHENTICATED = "3", "4", "11", "16"


def framed(body=b"", flag=0, length=None):
    return struct.pack(">BI", flag, len(body) if length is None else length) + body


def execute(name, arguments=None):
    return framed(test_grpc.pb.ExecuteToolRequest(name=name, input_json=json.dumps(arguments or {})).SerializeToString())


class Stream:
    """One request on a connection, and what is answered."""

    def __init__(self, wire, head, body=None, ends=True):
        self.wire, self.fields, self.data, self.is_over = wire, {}, b"", False
        self.id = wire.http.get_next_available_stream_id()
        wire.streams[self.id] = self
        wire.http.send_headers(self.id, head, end_stream=body is None and ends)
        while body:
            part = body[:wire.http.max_outbound_frame_size]
            body = body[len(part):]
            while wire.http.local_flow_control_window(self.id) < len(part):
                wire.hear()
            wire.http.send_data(self.id, part, end_stream=ends and not body)
        wire.flush()

    def answer(self):
        while not self.is_over:
            self.wire.hear()
        return self


class Wire:
    """A connection. With `window`, the client takes so many bytes of each answer at first."""

    def __init__(self, test, window=None):
        self.link, self.http = test.h2()
        if window is not None:
            self.http.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.streams, self.takes = {}, window is None
        self.flush()

    def flush(self):
        self.link.sendall(self.http.data_to_send())

    def hear(self):
        data = self.link.recv(1 << 16)
        if not data:
            raise EOFError
        for event in self.http.receive_data(data):
            stream = self.streams.get(getattr(event, "stream_id", None))
            match event:
                case h2.events.ResponseReceived() | h2.events.TrailersReceived():
                    stream.fields |= dict(event.headers)
                case h2.events.DataReceived() if self.takes:
                    stream.data += event.data
                    self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case h2.events.StreamEnded() | h2.events.StreamReset():
                    stream.is_over = True
        self.flush()


class Limits(Wired):
    def ask(self, head, body=None, ends=True):
        return Stream(Wire(self), head, body, ends).answer()

    def status(self, head, body=None, ends=True):
        return self.ask(head, body, ends).fields["grpc-status"]

    def supervisor(self):
        """The process below the keeper."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return next(int(pid) for task in tasks for pid in (task / "children").read_text().split())

    def memory(self, name):
        return int(re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{self.supervisor()}/status").read_text())[1]) >> 10

    def ran(self):
        tools = {tool["name"]: tool["metrics"]["executions"] for tool in self.site.value("ListAvailableTools")["tools"]}
        return tools["t.pid"]

    def test_what_a_message_claims_takes_no_memory(self):
        before = self.memory("VmSize")
        wire = Wire(self)
        for _ in range(16):
            Stream(wire, self.head(self.site.tokens["call"]), framed(length=512 << 20), ends=False)
        time.sleep(0.3)
        self.alive()
        self.assertLess(self.memory("VmSize") - before, 200)

    def test_strangers_send_little(self):
        self.assertEqual(self.status(self.head(path=HEALTH), framed(b"\x0a\x00")), "0")
        self.assertEqual(self.status(self.head(path=HEALTH), framed(length=4097), ends=False), OUT_OF_RANGE)
        own = self.head(self.site.tokens["observe"], REFLECTION)
        self.assertEqual(self.ask(own, framed(length=(64 << 10) + 1), ends=False).data, b"", "it ends the stream")

    def test_a_deadline_is_that_of_the_whole_rpc(self):
        for method in METHODS:
            with self.subTest(method):
                head = self.head(self.site.tokens["call"], f"/{SERVICE}/{method}", more=[("grpc-timeout", "200m")])
                self.assertEqual(self.status(head, framed(length=100), ends=False), DEADLINE_EXCEEDED)
        self.assertEqual(self.status(self.head(path=HEALTH, more=[("grpc-timeout", "200m")]), framed(), ends=False), DEADLINE_EXCEEDED)

    def test_no_tool_runs_whose_deadline_has_passed_or_cannot_be_read(self):
        for timeout, status in [("0S", DEADLINE_EXCEEDED), ("+5S", INVALID_ARGUMENT), ("5s", INVALID_ARGUMENT), ("999999999S", INVALID_ARGUMENT)]:
            with self.subTest(timeout):
                head = self.head(self.site.tokens["call"], more=[("grpc-timeout", timeout)])
                self.assertEqual(self.status(head, execute("t.pid")), status)
        self.assertEqual(self.ran(), 0)

    def test_only_rpcs_are_answered(self):
        token = self.site.tokens["call"]
        for head, status in [(self.head(token, method="GET"), "405"), (self.head(token, method="PUT"), "405"),
                             (self.head(token, kind="text/plain"), "415"), (self.head(token, kind="application/grpc-web"), "415"),
                             (self.head(token, kind="application/grpc+json"), "415")]:
            answer = self.ask(head, execute("t.pid"))
            self.assertEqual((answer.fields[":status"], answer.fields.get("grpc-status")), (status, None))
            self.assertIn(b"HTTP/1.1", answer.data)
        for kind in ("application/grpc+proto", "application/grpc; x=y"):
            self.assertEqual(self.status(self.head(token, kind=kind), execute("t.pid")), "0")
        self.assertEqual(self.ran(), 2)

    def test_a_request_has_one_message(self):
        head = self.head(self.site.tokens["call"])
        for body in (execute("t.pid") * 2, execute("t.pid") + b"abc", execute("t.pid")[:-1], None):
            self.assertEqual(self.status(head, body), INVALID_ARGUMENT)
        self.assertEqual(self.ran(), 0)

    def test_the_token_of_a_page_is_none(self):
        offered = [("sec-websocket-protocol", f"hostler, bearer.{self.site.tokens['call']}")]
        self.assertEqual(self.status(self.head(more=offered), execute("t.pid")), UNAUTHENTICATED)

    def test_of_two_contexts_neither_counts(self):
        one, other = (("traceparent", f"00-{digit * 32}-00f067aa0ba902b7-01") for digit in "ab")
        for contexts, known in ([[one], one[1]], [[one, other], None], [[one, one], None]):
            self.assertEqual(self.status(self.head(self.site.tokens["call"], more=contexts), execute("t.pid")), "0")
            self.assertEqual(self.site.value("calls.list", {"limit": 1})[0].get("trace"), known)

    def test_unread_answers_hold_back_further_requests(self):
        wire, head = Wire(self, window=0), self.head(self.site.tokens["call"])
        large = [Stream(wire, head, execute("t.text", {"length": 5_000_000})) for _ in range(2)]
        until(lambda: len([call for call in self.site.value("calls.list") if call["state"] == "complete"]) == 2)
        later = Stream(wire, head, execute("t.pid"))
        time.sleep(0.5)
        self.assertEqual(self.ran(), 0)
        wire.takes = True
        for stream in large:
            wire.http.increment_flow_control_window(6_000_000, stream.id)
        wire.http.increment_flow_control_window(12_000_000)
        wire.flush()
        # The first one makes room.
        self.assertEqual(len(large[0].answer().data) > 5_000_000, True)
        until(lambda: self.ran() == 1)
        wire.http.increment_flow_control_window(1000, later.id)
        wire.flush()
        self.assertEqual(later.answer().fields["grpc-status"], "0")


class Watched(Rpcs, Serving):
    """Clients that watch health."""

    def watch(self, service=""):
        stub = health_pb2_grpc.HealthStub(self.channel(f"127.0.0.1:{self.site.port}"))
        heard = stub.Watch(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)
        return heard, next(heard).status

    def test_a_watch_stays_open_and_hears_of_the_end(self):
        serving, other = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        watches = [self.watch(service) for service in ("", SERVICE)]
        self.assertEqual([status for _, status in watches], [serving, serving])
        unknown, status = self.watch("other")
        self.assertEqual(status, other)
        time.sleep(1)
        self.assertTrue(all(heard.is_active() for heard in (unknown, *[heard for heard, _ in watches])))
        # A call keeps this hostler.
        stub = test_grpc.rpc.ToolExecutorStub(self.channel(f"127.0.0.1:{self.site.port}"))
        asked = test_grpc.pb.ExecuteToolRequest(name="t.wait")
        waiting = stub.ExecuteTool.future(asked, metadata=metadata(self.site.tokens["call"]))
        until(lambda: self.site.value("health")["running"] == 1)
        self.site.value("drain")
        for heard, _ in watches:
            self.assertEqual(next(heard).status, health_pb2.HealthCheckResponse.NOT_SERVING)
            self.assertTrue(heard.is_active())
        waiting.cancel()
        for heard in (unknown, *[heard for heard, _ in watches]):
            with contextlib.suppress(grpc.RpcError):
                self.assertEqual(list(heard), [], "hostler has ended")


if __name__ == "__main__":
    unittest.main()
