"""gRPC on the port and on the socket of the control face, by clients that are made from the `.proto` file."""

import contextlib
import json
import socket
import struct
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import h2.config
import h2.connection
import h2.events
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_tools import protoc

from harness import PATIENCE, ROOT, config_file, write_tool
from test_control import TOOL
from test_http import Serving
from test_shared import Shared, until

PROTO = ROOT / "proto"
FILE = "hostler/control/v1/control.proto"
SERVICE = "hostler.control.v1.ToolExecutor"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# The descriptor that says how a client's messages are made, and modules of such clients.
made = Path(tempfile.mkdtemp(prefix="hostler-e2e-"))


def setUpModule():
    global pb, rpc
    made.mkdir(exist_ok=True)  # another module was here
    words = ["protoc", f"-I{PROTO}", f"--descriptor_set_out={made / 'control.bin'}", f"--python_out={made}", f"--grpc_python_out={made}", FILE]
    assert protoc.main(words) == 0
    sys.path.insert(0, str(made))
    from hostler.control.v1 import control_pb2 as pb, control_pb2_grpc as rpc


def tearDownModule():
    sys.path.remove(str(made))
    shutil.rmtree(made)


def metadata(token):
    return [("authorization", f"Bearer {token}")] if token else []


class Rpcs:
    """Shuts with its test."""

    def channel(self, address, **options):
        all = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), *options.items()]
        channel = grpc.insecure_channel(address, options=all)
        self.addCleanup(channel.close)
        return channel

    def refused(self, code, call, *arguments, **options):
        with self.assertRaises(grpc.RpcError) as refused:
            call(*arguments, timeout=PATIENCE, **options)
        self.assertEqual(refused.exception.code(), code, refused.exception)
        return refused.exception.details()


class OnThePort(Rpcs, Serving):
    def setUp(self):
        super().setUp()
        self.address = f"127.0.0.1:{self.site.port}"
        self.stub = rpc.ToolExecutorStub(self.channel(self.address))

    def token(self, scope="call"):
        return metadata(self.site.tokens[scope])

    def execute(self, name, arguments=None, scope="call", **options):
        asked = pb.ExecuteToolRequest(name=name, input_json=json.dumps(arguments) if arguments is not None else "")
        return self.stub.ExecuteTool(asked, metadata=self.token(scope), timeout=PATIENCE, **options)

    def calls(self, *states):
        return [call["tool"] for call in self.site.value("calls.list", {"states": list(states)})]

    def test_a_tool_is_called(self):
        done = self.execute("t.add", {"a": 2, "b": 3})
        self.assertEqual((done.success, done.output_json, done.error, done.error_code), (True, "5", "", ""))
        self.assertGreater(done.duration_ms, 0)
        self.assertEqual(self.site.value("calls.get", {"call": done.call})["tool"], "t.add")
        failed = self.execute("t.fail")
        self.assertEqual((failed.success, failed.output_json, failed.error_code), (False, "", "TOOL_ERROR"))
        self.assertIn("no", failed.error)
        self.assertEqual(self.execute("t.nothing").error_code, "TOOL_NOT_FOUND")
        self.assertEqual(self.execute("t.add", {"a": "x"}).error_code, "INVALID_PARAMS")
        self.assertEqual(self.execute("t.add", [1]).error_code, "INVALID_PARAMS")
        late = self.stub.ExecuteTool(pb.ExecuteToolRequest(name="t.wait", timeout_ms=50), metadata=self.token())
        self.assertEqual(late.error_code, "TOOL_TIMEOUT")

    def test_large_results_and_arguments_pass_whole(self):
        done = self.execute("t.text", {"length": 8_000_000})
        self.assertEqual(len(json.loads(done.output_json)), 8_000_000)
        failed = self.execute("t.add", {"a": "x" * 8_000_000})
        self.assertEqual(failed.error_code, "INVALID_PARAMS")

    def test_tools_are_described_with_their_counts(self):
        for arguments in ({"a": 1}, {"a": "no"}):
            self.execute("t.add", arguments)
        tools = {tool.name: tool for tool in self.stub.ListAvailableTools(pb.ListAvailableToolsRequest(), metadata=self.token("observe")).tools}
        of_json = {tool["name"]: tool for tool in self.site.value("ListAvailableTools")["tools"]}
        self.assertEqual(list(tools), list(of_json))
        add, metrics = tools["t.add"], of_json["t.add"]["metrics"]
        self.assertEqual((add.description, add.status, add.mcp_name), ("Adds.", "ready", "t_add"))
        self.assertEqual(json.loads(add.input_schema_json), of_json["t.add"]["input_schema"])
        self.assertEqual((add.metrics.executions, add.metrics.succeeded, add.metrics.failed), (2, 1, 1))
        self.assertEqual((add.metrics.total_ms, add.metrics.mean_ms, add.metrics.last_ms),
                         (metrics["total_ms"], metrics["mean_ms"], metrics["last_ms"]))
        self.assertTrue(add.metrics.total_ms > 0 < add.metrics.last_ms)
        self.assertEqual((tools["t.fail"].metrics.executions, of_json["t.fail"]["metrics"]["last_ms"]), (0, None))
        schema = self.stub.GetToolSchema(pb.GetToolSchemaRequest(name="t.add"), metadata=self.token("observe"))
        self.assertEqual((schema.name, schema.input_schema_json, schema.output_schema_json), ("t.add", add.input_schema_json, add.output_schema_json))
        self.refused(grpc.StatusCode.NOT_FOUND, self.stub.GetToolSchema, pb.GetToolSchemaRequest(name="t.nothing"), metadata=self.token())

    def test_each_method_is_tried_with_each_token(self):
        methods = {"ExecuteTool": (pb.ExecuteToolRequest(name="t.pid"), "call"), "GetToolSchema": (pb.GetToolSchemaRequest(name="t.pid"), "observe"),
                   "ListAvailableTools": (pb.ListAvailableToolsRequest(), "observe")}
        order = ["observe", "call", "operate"]
        for name, (asked, needed) in methods.items():
            call = getattr(self.stub, name)
            for wrong in (None, "", "0" * 64, self.site.tokens["call"][:-1]):
                with self.subTest(name, token=wrong):
                    self.refused(grpc.StatusCode.UNAUTHENTICATED, call, asked, metadata=metadata(wrong))
            for scope in order:
                with self.subTest(name, scope=scope):
                    if order.index(scope) < order.index(needed):
                        self.refused(grpc.StatusCode.PERMISSION_DENIED, call, asked, metadata=self.token(scope))
                    else:
                        call(asked, metadata=self.token(scope), timeout=PATIENCE)

    def test_foreign_names_and_pages_are_refused(self):
        asked = pb.ListAvailableToolsRequest()
        for authority in ("evil.example", "127.0.0.1.evil.example:80"):
            stub = rpc.ToolExecutorStub(self.channel(self.address, **{"grpc.default_authority": authority}))
            self.refused(grpc.StatusCode.PERMISSION_DENIED, stub.ListAvailableTools, asked, metadata=self.token())
        foreign = [*self.token(), ("origin", "http://evil.example")]
        self.refused(grpc.StatusCode.PERMISSION_DENIED, self.stub.ListAvailableTools, asked, metadata=foreign)
        health = health_pb2_grpc.HealthStub(self.channel(self.address, **{"grpc.default_authority": "evil.example"}))
        self.refused(grpc.StatusCode.PERMISSION_DENIED, health.Check, health_pb2.HealthCheckRequest())

    def test_running_calls_have_half_a_second_at_the_end(self):
        write_tool(self.folder / "tools", "u", TOOL)
        for end in (self.end, lambda: self.site.value("stop")):
            until(lambda: self.execute("t.pid").success and self.execute("u.pid").success)
            asked = pb.ExecuteToolRequest(name="t.wait", input_json='{"seconds": 0.6}')
            with ThreadPoolExecutor(2) as pool:
                one = self.stub.ExecuteTool.future(asked, metadata=self.token())
                other = pool.submit(self.site.value, "ExecuteTool", {"name": "u.wait", "input_json": '{"seconds": 0.6}'}, "call")
                until(lambda: sorted(self.calls("running")) == ["t.wait", "u.wait"])
                time.sleep(0.3)
                began = time.monotonic()
                end()
                self.assertTrue(one.result(PATIENCE).success)
                self.assertTrue(other.result(PATIENCE)["success"])
                self.assertEqual(self.process.wait(PATIENCE), 0)
            self.assertLess(time.monotonic() - began, 1.5)
            self.site = self.serve()
            self.stub = rpc.ToolExecutorStub(self.channel(f"127.0.0.1:{self.site.port}"))
        self.execute("t.pid")
        late = self.stub.ExecuteTool.future(pb.ExecuteToolRequest(name="t.wait"), metadata=self.token())
        until(lambda: self.calls("running") == ["t.wait"])
        self.end()
        self.assertEqual(late.exception(PATIENCE).code(), grpc.StatusCode.UNAVAILABLE)

    def test_a_client_that_gives_up_cancels_its_call(self):
        self.execute("t.pid")
        call = self.stub.ExecuteTool.future(pb.ExecuteToolRequest(name="t.wait"), metadata=self.token())
        until(lambda: self.calls("running") == ["t.wait"])
        call.cancel()
        until(lambda: self.calls("cancelled") == ["t.wait"])
        asked = pb.ExecuteToolRequest(name="t.wait")
        with self.assertRaises(grpc.RpcError) as late:
            self.stub.ExecuteTool(asked, metadata=self.token(), timeout=0.3)
        self.assertEqual(late.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        until(lambda: self.calls("cancelled") == ["t.wait"] * 2)
        other = grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)])
        left = rpc.ToolExecutorStub(other).ExecuteTool.future(asked, metadata=self.token())
        until(lambda: self.calls("running") == ["t.wait"])
        other.close()
        until(lambda: self.calls("cancelled") == ["t.wait"] * 3)
        self.assertTrue(left.done())

    def test_calls_of_one_connection_run_at_the_same_time(self):
        write_tool(self.folder / "tools", "other", TOOL)
        until(lambda: self.execute("other.pid").success)
        waiting = self.stub.ExecuteTool.future(pb.ExecuteToolRequest(name="other.wait"), metadata=self.token())
        with ThreadPoolExecutor(32) as pool:
            done = list(pool.map(lambda number: self.execute("t.add", {"a": number}).output_json, range(200)))
        self.assertEqual(done, [str(number + 1) for number in range(200)])
        self.assertEqual(self.calls("running"), ["other.wait"])
        waiting.cancel()

    def test_a_trace_goes_on(self):
        trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        asked = [*self.token(), ("traceparent", f"00-{trace}-{parent}-01")]
        done = self.stub.ExecuteTool(pb.ExecuteToolRequest(name="t.pid"), metadata=asked)
        self.assertIn(trace, self.site.value("calls.get", {"call": done.call})["trace"])
        write_tool(self.folder / "tools", "traced", "import hostler\ndef seen() -> dict:\n    return dict(hostler.trace)\n")
        until(lambda: self.execute("traced.seen").success)
        seen = lambda *more: json.loads(self.stub.ExecuteTool(pb.ExecuteToolRequest(name="traced.seen"), metadata=[*asked, *more]).output_json)
        self.assertEqual(seen(("tracestate", "a=1"), ("tracestate", "b=2"))["tracestate"], "a=1,b=2")

    def test_health_and_reflection(self):
        health = health_pb2_grpc.HealthStub(self.channel(self.address))
        for service in ("", SERVICE):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)
            self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING, "without a token, as /healthz")
        self.refused(grpc.StatusCode.NOT_FOUND, health.Check, health_pb2.HealthCheckRequest(service="other"))
        channel = self.channel(self.address)
        with self.assertRaises(grpc.RpcError):
            ProtoReflectionDescriptorDatabase(channel).get_services()
        told = ProtoReflectionDescriptorDatabase(grpc.intercept_channel(channel, WithToken(self.site.tokens["observe"])))
        self.assertIn(SERVICE, told.get_services())
        file = told.FindFileContainingSymbol(SERVICE)
        self.assertEqual([method.name for method in file.service[0].method], ["ExecuteTool", "ListAvailableTools", "GetToolSchema"])

    def test_the_descriptor_is_that_of_the_file(self):
        self.assertEqual((PROTO / FILE).with_suffix(".bin").read_bytes(), (made / "control.bin").read_bytes())

    def test_what_is_not_there(self):
        channel = self.channel(self.address)
        for path in (f"/{SERVICE}/Nothing", "/nothing", "/", "/mcp", "/rpc", "/metrics"):
            with self.subTest(path):
                call = channel.unary_unary(path)
                self.refused(grpc.StatusCode.UNIMPLEMENTED, call, b"", metadata=self.token())
        garbage = channel.unary_unary(f"/{SERVICE}/ExecuteTool")
        for message in (b"\xff" * 100, b"\x0a\x02\xff\xfe"):
            self.refused(grpc.StatusCode.INTERNAL, garbage, message, metadata=self.token())

    def test_a_message_that_is_too_large_is_refused(self):
        asked = pb.GetToolSchemaRequest(name="x" * (2 << 20))
        self.refused(grpc.StatusCode.OUT_OF_RANGE, self.stub.GetToolSchema, asked, metadata=self.token("observe"))
        self.refused(grpc.StatusCode.NOT_FOUND, self.stub.GetToolSchema, asked, metadata=self.token("call"))


class WithToken(grpc.StreamStreamClientInterceptor):
    """Sends a token with each request."""

    def __init__(self, token):
        self.token = token

    def intercept_stream_stream(self, go_on, details, requests):
        return go_on(details._replace(metadata=metadata(self.token)), requests)


class Wired(Serving):
    """A client that writes its own frames."""

    def connect(self):
        link = socket.create_connection(("127.0.0.1", self.site.port), timeout=PATIENCE)
        self.addCleanup(link.close)
        return link

    def alive(self):
        self.assertEqual(self.site.send("GET", "/healthz").status, 200)

    def ended(self, link):
        """Whether the server closes, after whatever it says."""
        with contextlib.suppress(ConnectionResetError):
            while link.recv(1 << 16):
                pass

    def h2(self):
        link = self.connect()
        http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        http.initiate_connection()
        link.sendall(http.data_to_send())
        return link, http

    def head(self, token=None, path=f"/{SERVICE}/ExecuteTool", method="POST", kind="application/grpc", more=()):
        fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", f"127.0.0.1:{self.site.port}"),
                  ("content-type", kind), ("te", "trailers"), *more]
        return fields + ([("authorization", f"Bearer {token}")] if token else [])


class Attackers(Wired):
    """Bytes that no client of gRPC sends."""

    def test_a_beginning_in_pieces_is_known(self):
        link = self.connect()
        for byte in PREFACE:
            link.sendall(bytes([byte]))
        link.sendall(b"\0\0\0\4\0\0\0\0\0")  # settings
        self.assertEqual(link.recv(1 << 16)[3], 4)

    def test_other_beginnings_are_http1(self):
        for data in (b"PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n", b"PRI * HTTP/1.1\r\n\r\n", b"PUT / HTTP/1.1\r\n\r\n", b"P\r\n\r\n"):
            with self.subTest(data):
                link = self.connect()
                link.sendall(data)
                self.assertEqual(link.recv(1 << 16)[:7], b"HTTP/1.")
        self.assertEqual(self.site.value("ExecuteTool", {"name": "t.add", "input_json": '{"a": 1}'})["output_json"], "2")

    def test_half_a_beginning_harms_nobody(self):
        for length in (0, 1, 3, 23):
            self.connect().sendall(PREFACE[:length])
        gone = self.connect()
        gone.sendall(PREFACE[:10])
        gone.shutdown(socket.SHUT_WR)
        self.alive()

    def test_broken_frames_end_their_connection(self):
        for frame in (b"\xff" * 100, struct.pack(">I", 1 << 24)[1:] + b"\0\0\0\0\0\1", b"\0\0\0\1\5\0\0\0\1", b"\0\0\4\3\0\0\0\0\0\0\0\0\0"):
            with self.subTest(frame):
                link = self.connect()
                link.sendall(PREFACE + b"\0\0\0\4\0\0\0\0\0" + frame)
                self.ended(link)
        self.alive()

    def test_streams_that_are_begun_and_reset_end_their_connection(self):
        link, http = self.h2()
        token = self.site.tokens["call"]
        with contextlib.suppress(OSError):
            for number in range(20_000):
                stream = http.get_next_available_stream_id()
                http.send_headers(stream, self.head(token))
                http.reset_stream(stream)
                if number % 100 == 0:
                    link.sendall(http.data_to_send())
            link.sendall(http.data_to_send())
        self.ended(link)
        self.alive()
        self.assertEqual(self.site.value("health")["running"], 0)

    def test_a_head_without_an_end_is_refused(self):
        link, http = self.h2()
        http.send_headers(1, self.head() + [("x", "y" * 1000)] * 200)
        link.sendall(http.data_to_send())
        refused = False
        while not refused and (data := link.recv(1 << 16)):
            events = http.receive_data(data)
            refused = any(isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)) or
                          isinstance(event, h2.events.ResponseReceived) and dict(event.headers)[":status"] == "431" for event in events)
        self.assertTrue(refused or not data)
        self.alive()

    def test_strangers_make_room(self):
        links = [self.h2()[0] for _ in range(1000)]
        self.ended(links[0])
        self.alive()
        stub = rpc.ToolExecutorStub(channel := grpc.insecure_channel(f"127.0.0.1:{self.site.port}"))
        with channel:
            asked = pb.ExecuteToolRequest(name="t.add", input_json='{"a": 1}')
            self.assertEqual(stub.ExecuteTool(asked, metadata=metadata(self.site.tokens["call"]), timeout=PATIENCE).output_json, "2")


class OnTheSocket(Rpcs, Shared):
    def setUp(self):
        super().setUp()
        home, config = self.folder / "home", self.folder / "config" / "hostler"
        write_tool(home / "tools", "mine", "import os, time\n\ndef where() -> str:\n    return os.getcwd()\n\n"
                   "def wait(seconds: float = 600.0) -> float:\n    time.sleep(seconds)\n    return seconds\n")
        config.mkdir(parents=True)
        config_file(config, "")
        self.env |= {"HOME": str(home), "XDG_CONFIG_HOME": str(self.folder / "config")}

    def on_socket(self):
        path, = (self.folder / "run" / "hostler").glob("*.sock")
        # By itself this client names the path of the socket as the host, which HTTP/2 does not accept.
        return self.channel(f"unix:{path}", **{"grpc.default_authority": "localhost"})

    def running(self):
        return [call["tool"] for call in json.loads(self.run_hostler("calls", "list", "--running", "--json").stdout)]

    def test_running_calls_have_half_a_second_at_the_end(self):
        self.open()
        stub = rpc.ToolExecutorStub(self.on_socket())
        stub.ExecuteTool(pb.ExecuteToolRequest(name="mine.where"), timeout=PATIENCE)
        running = stub.ExecuteTool.future(pb.ExecuteToolRequest(name="mine.wait", input_json='{"seconds": 0.7}'))
        until(lambda: self.running() == ["mine.wait"])
        time.sleep(0.4)
        self.stop()
        self.assertEqual(running.result(PATIENCE).output_json, "0.7")

    def test_the_tools_of_the_home_folder_are_called_without_a_token(self):
        client = self.open()
        channel = self.on_socket()
        stub = rpc.ToolExecutorStub(channel)
        done = stub.ExecuteTool(pb.ExecuteToolRequest(name="mine.where"), timeout=PATIENCE)
        self.assertEqual(json.loads(done.output_json), str(self.folder / "home"))
        self.assertIn("mine.wait", [tool.name for tool in stub.ListAvailableTools(pb.ListAvailableToolsRequest()).tools])
        self.assertIn(SERVICE, ProtoReflectionDescriptorDatabase(channel).get_services())
        waiting = stub.ExecuteTool.future(pb.ExecuteToolRequest(name="mine.wait"))
        until(lambda: self.running() == ["mine.wait"])
        self.assertEqual(client.value(1, "a_pid")[1], 1)
        channel.close()
        until(lambda: self.running() == [])
        until(lambda: len(self.sessions()) == 1)
        self.assertTrue(waiting.done())
