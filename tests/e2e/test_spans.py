"""Spans of calls, exported to collectors of all kinds."""

import json
import re
import socket
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from harness import META, PATIENCE, config_file, connected, environment, eventually, eventually_async, run, scratch, write_tool
from test_http import Serving
from test_mcp_http import META as STATELESS
from test_shared import Shared, until
from test_trace import PARENT, SPAN, STATE, TRACE
from wire import Wire, call

SERVER, INTERNAL, ERROR = 2, 1, 2
TOOL = '''
import hostler

def add(a: int, b: int = 1) -> int:
    return a + b

def outer(a: int) -> int:
    return hostler.call("inner.add", a=a)

def fail(key: str):
    raise ValueError("no " + hostler.secret("KEY"))
'''


class Collector:
    """What takes OTLP over HTTP. `answer` is a status, or None for one that never answers."""

    def __init__(self, test, answer=200, body=b"", **headers):
        self.requests, self.times, self.answer = [], [], answer
        collector, self.over = self, threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                asked = self.rfile.read(int(self.headers["content-length"]))
                collector.times.append(time.monotonic())
                collector.requests.append((self.path, dict(self.headers), asked))
                if collector.answer is None:
                    collector.over.wait()
                    return
                self.send_response(collector.answer)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)
        test.addCleanup(self.over.set)

    def spans(self):
        requests = [ExportTraceServiceRequest.FromString(body) for _, _, body in list(self.requests)]
        return [span for request in requests for process in request.resource_spans for scope in process.scope_spans
                for span in scope.spans]

    def resource(self):
        return attributes(ExportTraceServiceRequest.FromString(self.requests[0][2]).resource_spans[0].resource)


def attributes(span):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


class Exported(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "one", TOOL, header="")
        write_tool(self.tools, "inner", TOOL.split("def outer")[0])
        secret = '# /// script\n# dependencies = []\n# [tool.hostler]\n# secrets = ["KEY"]\n# ///\n'
        write_tool(self.tools, "secret", TOOL, header=secret)

    def config(self, collector):
        return config_file(self.folder, f'[telemetry]\notlp = "{collector.address}"\n')

    async def test_each_call_is_a_span_with_its_parent_and_its_end(self):
        collector = Collector(self)
        env = environment(KEY="hunter2-hunter2", OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20b, x-other=c",
                          OTEL_SERVICE_NAME="tools", OTEL_RESOURCE_ATTRIBUTES="deployment.environment=test")
        before = time.time_ns()
        async with connected(self.tools, config=self.config(collector), env=env) as hostler:
            answer = await hostler.call("one_outer", a=1, meta={"traceparent": PARENT, "tracestate": STATE})
            alone = await hostler.call("one_add", a=2)
            failed = await hostler.call("secret_fail", key="hunter2-hunter2")
            unknown = "no.such\u0000\u202e\"\n" + "x" * 5000
            with self.assertRaises(Exception):
                await hostler.call(unknown)
            skipped = await hostler.call("one_add", a=2, meta={"traceparent": PARENT[:-1] + "0"})
            await eventually_async(lambda: len(collector.spans()) >= 5, "the spans come")
        spans = {span.span_id.hex(): span for span in collector.spans()}
        self.assertEqual(len(spans), 5)
        _, trace, own, _ = answer.result.meta["traceparent"].split("-")
        span = spans.pop(own)
        self.assertEqual((trace, span.trace_id.hex(), span.parent_span_id.hex(), span.trace_state), (TRACE, TRACE, SPAN, STATE))
        self.assertEqual((span.name, span.kind, span.status.code), ("tools/call one.outer", SERVER, 0))
        self.assertTrue(before < span.start_time_unix_nano < span.end_time_unix_nano < time.time_ns())
        known = attributes(span)
        self.assertLessEqual({"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "one.outer",
                              "gen_ai.tool.call.id": answer.outcome["call_id"], "hostler.cold_start": True}.items(), known.items())
        self.assertNotIn("error.type", known)
        self.assertEqual({type(known[name]) for name in ("hostler.queue_ms", "hostler.run_ms", "hostler.start_ms")}, {float})
        (inner,) = [span for span in spans.values() if span.name.endswith("inner.add")]
        self.assertEqual((inner.trace_id.hex(), inner.parent_span_id.hex(), inner.kind, inner.name),
                         (TRACE, own, INTERNAL, "execute_tool inner.add"))
        root = spans[alone.result.meta["traceparent"].split("-")[2]]
        self.assertEqual((root.parent_span_id, root.trace_id.hex() == TRACE), (b"", False))
        wrong = spans[failed.result.meta["traceparent"].split("-")[2]]
        self.assertEqual((wrong.status.code, attributes(wrong)["error.type"]), (ERROR, "TOOL_ERROR"))
        self.assertIn("no [secret KEY]", wrong.status.message)
        (stray,) = [span for span in spans.values() if span.name == "tools/call"]
        self.assertEqual((attributes(stray)["error.type"], stray.status.message), ("TOOL_NOT_FOUND", "TOOL_NOT_FOUND"))
        self.assertNotIn("no.such", str(stray), "the name is the client's")
        self.assertEqual(skipped.result.meta["traceparent"][-2:], "00")
        self.assertFalse(any(b"hunter2" in body for _, _, body in collector.requests))
        path, headers, _ = collector.requests[0]
        headers = {name.lower(): value for name, value in headers.items()}
        self.assertEqual((path, headers["content-type"], headers["x-key"], headers["x-other"]),
                         ("/v1/traces", "application/x-protobuf", "a b", "c"))
        self.assertLessEqual({"service.name": "tools", "deployment.environment": "test"}.items(), collector.resource().items())

    async def test_no_argument_is_exported(self):
        collector = Collector(self)
        write_tool(self.tools, "many", "def f(counts: dict[str, int], spots: list[int] = []) -> dict[str, int]:\n    return {'PRIVATE': 'x'}\n")
        write_tool(self.tools, "passed", 'import hostler\ndef on(a: str):\n    return hostler.call("inner.add", a=a)\n', header="")
        config = config_file(self.folder, f'[telemetry]\notlp = "{collector.address}"\n[builtin]\nenable = ["read_file", "bash"]\nroots = ["."]\n')
        calls = [("one_add", {"a": "PRIVATE"}, "INVALID_PARAMS: a"),
                 ("one_add", {"a": {"card": "PRIVATE"}, "b": []}, "INVALID_PARAMS: a, b"),
                 ("one_add", {"a": 1, "PRIVATE": 5}, "INVALID_PARAMS: *"),
                 ("many_f", {"counts": {"PRIVATE": "x"}, "spots": [1, "PRIVATE"]}, "INVALID_PARAMS: counts.*, spots[]"),
                 ("many_f", {"counts": {}}, "INVALID_OUTPUT: *"),
                 ("passed_on", {"a": "PRIVATE"}, "TOOL_ERROR"),
                 ("read_file", {"path": "PRIVATE.txt"}, "TOOL_ERROR"),
                 ("read_file", {"path": "/PRIVATE"}, "PERMISSION_DENIED"),
                 ("bash", {"command": "PRIVATE\0"}, "INVALID_PARAMS")]
        spans = lambda: {span.span_id.hex(): span for span in collector.spans()}
        async with connected(self.tools, config=config) as hostler:
            for tool, arguments, said in calls:
                with self.subTest(tool, said=said):
                    answer = await hostler.call(tool, **arguments)
                    self.assertTrue(answer.failed)
                    own = answer.result.meta["traceparent"].split("-")[2]
                    await eventually_async(lambda: own in spans(), "the span comes")
                    self.assertEqual(spans()[own].status.message, said, answer.message)
        self.assertFalse(any(b"PRIVATE" in body for _, _, body in collector.requests))

    def test_the_end_of_a_command_exports_what_waits(self):
        collector = Collector(self)
        for env in ({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address + "/", "OTEL_TRACES_EXPORTER": "otlp,console"},
                    {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.address + "/v1/traces"}):
            collector.requests.clear()
            done = run("call", "one.add", "a=1", "--json", "--tools", self.tools, env=environment(**env))
            (span,) = collector.spans()
            self.assertEqual(span.span_id.hex(), json.loads(done.stdout)["metadata"]["traceparent"].split("-")[2])
            self.assertEqual(collector.requests[0][0], "/v1/traces")

    def test_what_switches_it_off_or_cannot_be_used(self):
        collector = Collector(self)
        for env, said in [({"OTEL_SDK_DISABLED": "true"}, ""), ({"OTEL_TRACES_EXPORTER": "none"}, ""),
                          ({"OTEL_TRACES_EXPORTER": "console"}, ""),
                          ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "hostler speaks http/protobuf"),
                          ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is http/json"),
                          ({"OTEL_EXPORTER_OTLP_ENDPOINT": "not an address"}, "OTEL_EXPORTER_OTLP_ENDPOINT is not an HTTP address"),
                          # Ports are sixteen bits; another one was taken as 80, which got the headers.
                          ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:99999"}, "TRACES_ENDPOINT is not an HTTP address"),
                          ({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address + "?a=b"}, "not an HTTP address"),
                          ({"OTEL_EXPORTER_OTLP_HEADERS": "a b=c"}, "OTEL_EXPORTER_OTLP_HEADERS: an entry has a name"),
                          ({"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "host=evil.example"}, "OTEL_EXPORTER_OTLP_TRACES_HEADERS: `host`")]:
            env = environment(**{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, **env})
            done = run("call", "one.add", "a=1", "--json", "--tools", self.tools, env=env)
            self.assertEqual((done.returncode, json.loads(done.stdout)["metadata"].get("traceparent")), (0, None))
            listed = run("list", "--tools", self.tools, env=env)
            self.assertIn(said, listed.stderr)
            self.assertEqual(listed.stderr.count("spans are not exported"), bool(said))
        self.assertEqual(collector.requests, [])
        for address in ("localhost:4318", "http://127.0.0.1:65536", "http://127.0.0.1/?key=1"):
            done = run("list", "--config", config_file(self.folder, f'[telemetry]\notlp = "{address}"\n'))
            self.assertEqual(done.returncode, 2)
            self.assertIn("`telemetry.otlp`: expected the HTTP address of a collector", done.stderr)

    def test_no_collector_holds_up_a_call(self):
        """One that is away, hangs, refuses, fails or redirects; and the end comes within a second."""
        gone = socket.create_server(("127.0.0.1", 0))
        away = SimpleNamespace(address=f"http://127.0.0.1:{gone.getsockname()[1]}")
        gone.close()
        target = Collector(self)
        for collector, said in [(away, "refused"), (Collector(self, None), "timeout"), (Collector(self, 400), "400"),
                                (Collector(self, 503), "503"), (Collector(self, 307, location=target.address + "/v1/traces"), "redirects")]:
            with self.subTest(said):
                wire = Wire(self.tools, arguments=("--standalone", "--config", str(self.config(collector))))
                self.addCleanup(wire.__exit__)
                wire.open()
                wire.value(1, "one_add", a=1)
                if collector is not away:
                    eventually(lambda: collector.requests, "the first span is sent")
                for number in range(2, 40):
                    wire.send(call(number, "one_add", a=number))
                    answer = wire.answer(number)["result"]
                    self.assertLess(answer["_meta"][META]["latency_ms"], 500)
                wire.end_input()
                self.assertEqual(wire.ended(1.5), 0)
                text = wire.stderr()
                self.assertEqual(text.count("spans are not exported"), 1, text)
                self.assertIn(collector.address, text)
                if said != "timeout":
                    self.assertIn(said, text)
        self.assertEqual(target.requests, [])


    async def test_what_a_collector_rejects_is_counted_and_said(self):
        partly = ExportTraceServiceResponse()
        partly.partial_success.rejected_spans = 1
        partly.partial_success.error_message = "no\x1b[31m\nroom" + "!" * 500
        collector = Collector(self, body=partly.SerializeToString())
        wire = Wire(self.tools, arguments=("--standalone", "--config", str(self.config(collector))))
        self.addCleanup(wire.__exit__)
        wire.open()
        wire.value(1, "one_add", a=1)
        eventually(lambda: collector.requests, "the span is sent")
        wire.end_input()
        self.assertEqual(wire.ended(PATIENCE), 0)
        (line,) = [line for line in wire.stderr().splitlines() if "spans are not exported" in line]
        self.assertIn("rejected 1 of 1 spans: no [31m room!!!", line)
        self.assertIn("dropped=1", line)
        self.assertLess(len(line), 600)

    def test_a_collector_says_when_it_takes_more(self):
        collector = Collector(self, 503, Retry_After="3")
        wire = Wire(self.tools, arguments=("--standalone", "--config", str(self.config(collector))))
        self.addCleanup(wire.__exit__)
        wire.open()
        wire.value(1, "one_add", a=1)
        eventually(lambda: len(collector.times) == 2, "the span is sent again")
        self.assertGreater(collector.times[1] - collector.times[0], 2.9)


class OverHttp(Serving):
    def setUp(self):
        self.collector = Collector(self)
        super().setUp()
        write_tool(self.folder / "tools", "traced", "import hostler\ndef seen() -> dict:\n    return dict(hostler.trace)\n")
        until(lambda: self.site.post("tools.show", {"tool": "traced.seen"}).get("result"))

    def serve(self, *words):
        config_file(self.folder, f'[telemetry]\notlp = "{self.collector.address}"\n')
        return super().serve(*words)

    def span(self, id):
        """The exported span of a call."""
        own = lambda: [span for span in self.collector.spans() if attributes(span)["gen_ai.tool.call.id"] == id]
        return until(own)[0]

    def rpc(self, method, params, **headers):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.site.send("POST", "/rpc", json.dumps(body), "call", **headers).json["result"]

    def belongs(self, span, parent=SPAN, kind=SERVER, state=STATE):
        self.assertEqual((span.trace_id.hex(), span.parent_span_id.hex(), span.kind, span.trace_state), (TRACE, parent, kind, state))

    def test_requests_go_on_with_the_trace_of_their_headers(self):
        headers = {"traceparent": PARENT, "tracestate": STATE}
        done = self.rpc("ExecuteTool", {"name": "traced.seen"}, **headers)
        self.assertIn(TRACE, done["output_json"])
        self.belongs(self.span(done["call"]))
        self.belongs(self.span(self.rpc("calls.start", {"tool": "traced.seen"}, **headers)["call"]))
        self.belongs(self.span(self.rpc("calls.run", {"tool": "traced.seen"}, **headers)["call_id"]))
        # A message has a context of its own, or none is known.
        other = PARENT.replace(SPAN, "a" * 16)
        own = self.rpc("ExecuteTool", {"name": "traced.seen", "traceparent": other, "tracestate": "b=2"}, **headers)
        self.belongs(self.span(own["call"]), "a" * 16, state="b=2")
        for context in ({}, {"traceparent": "00-1"}, {"tracestate": STATE}):
            alone = self.span(self.rpc("ExecuteTool", {"name": "traced.seen"}, **context)["call"])
            self.assertEqual((alone.parent_span_id, alone.kind, alone.trace_state), (b"", INTERNAL, ""))

    def test_so_do_requests_of_mcp(self):
        def answer(meta, **headers):
            params = {"name": "traced_seen", "arguments": {}, "_meta": {**STATELESS, **meta}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            headers |= {"Content_Type": "application/json", "Mcp_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call",
                        "Mcp_Name": "traced_seen"}
            return self.site.send("POST", "/mcp", body, "call", **headers).json["result"]

        id = lambda result: result["_meta"][META]["call_id"]
        headers = {"traceparent": PARENT, "tracestate": STATE}
        self.belongs(self.span(id(answer({}, **headers))))
        own = answer({"traceparent": PARENT.replace(SPAN, "a" * 16)}, **headers)
        self.belongs(self.span(id(own)), "a" * 16, state="")
        self.assertEqual(self.span(id(answer({}))).parent_span_id, b"")


class OfSessions(Shared):
    def test_spans_go_to_the_collector_of_their_session_and_lost_ones_are_counted(self):
        one, other = Collector(self), Collector(self, 400)
        traced = self.open(OTEL_EXPORTER_OTLP_ENDPOINT=one.address, OTEL_EXPORTER_OTLP_HEADERS="x-key=one")
        lost = self.open(OTEL_EXPORTER_OTLP_ENDPOINT=other.address, OTEL_EXPORTER_OTLP_HEADERS="x-key=other")
        plain = self.open()
        for wire in (traced, lost, plain):
            wire.value(1, "a_pid")
        self.assertEqual(len(set(self.sessions())), 3)
        count = lambda outcome: int(re.search(r'hostler_spans_total\{outcome="%s"\} (\d+)' % outcome, self.metrics())[1])
        until(lambda: (count("exported"), count("dropped")) == (1, 1))
        self.assertEqual((len(one.spans()), len(other.spans())), (1, 1))
        self.assertEqual([collector.requests[0][1]["x-key"] for collector in (one, other)], ["one", "other"])
        # What waits is exported when the shared hostler ends.
        traced.value(2, "a_pid")
        self.stop()
        self.assertEqual(len(one.spans()), 2)

    def metrics(self):
        return json.loads(self.run_hostler("rpc", "metrics.text").stdout)


if __name__ == "__main__":
    unittest.main()
