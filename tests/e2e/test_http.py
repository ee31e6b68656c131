"""The control face over HTTP and WebSockets: who may ask, what is answered, and clients that misbehave."""

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from harness import HOSTLER, PATIENCE, config_file, environment, eventually, gone, run, scratch, write_tool
from test_control import TOOL
from test_shared import Shared, until

ORDER = ["observe", "call", "operate"]


class Answer:
    """What came back."""

    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["data"]["code"]


class Site:
    """An HTTP server of hostler, and the tokens of its person."""

    def __init__(self, port, env):
        self.port, self.env = port, env
        self.tokens = {scope: run("token", scope, env=env).stdout.strip() for scope in ORDER}

    def send(self, method, path, body=None, scope=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if scope:
            headers["Authorization"] = f"Bearer {self.tokens[scope]}"
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())

    def post(self, method, params=None, scope="operate", id=1):
        request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        return self.send("POST", "/rpc", json.dumps(request), scope).json

    def value(self, method, params=None, scope="operate"):
        answer = self.post(method, params, scope)
        assert "result" in answer, answer
        return answer["result"]

    def socket(self, path="/rpc", scope="operate", **options):
        headers = {"Authorization": f"Bearer {self.tokens[scope]}"} if scope else {}
        return connect(f"ws://127.0.0.1:{self.port}{path}", additional_headers=headers, open_timeout=PATIENCE,
                       max_size=None, **options)

    def raw(self, data):
        """Sends bytes; all that is answered until the server closes, or the first answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as link:
            with contextlib.suppress(OSError):  # it may be refused before it is sent whole
                link.sendall(data)
            return link.recv(1 << 16)


class Rpc:
    """The control face over a WebSocket."""

    def __init__(self, link):
        self.link, self.others = link, []

    def send(self, method, params=None, id=1):
        self.link.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}))

    def answer(self, id=1):
        while True:
            message = json.loads(self.link.recv(timeout=PATIENCE))
            if "method" not in message and message.get("id") == id:
                return message
            self.others.append(message)

    def value(self, method, params=None, id=1):
        self.send(method, params, id)
        answer = self.answer(id)
        assert "result" in answer, answer
        return answer["result"]

    def other(self, wanted):
        """The first message without an answer that fits."""
        while True:
            for message in self.others:
                if wanted(message):
                    return message
            self.others.append(json.loads(self.link.recv(timeout=PATIENCE)))


class Serving(unittest.TestCase):
    """A hostler that serves HTTP alone."""

    def setUp(self):
        self.folder = scratch(self)
        self.env = environment(XDG_STATE_HOME=self.folder / "state", HOSTLER_LOG="debug")
        write_tool(self.folder / "tools", "t", TOOL)
        self.site = self.serve()

    def serve(self, *words):
        self.log = open(self.folder / "log", "a+")  # appended to, see harness.connected
        self.log.truncate(0)  # without what one before it said
        self.addCleanup(self.log.close)
        self.process = subprocess.Popen(
            [HOSTLER, "serve", "--http", "127.0.0.1:0", *words], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.log, start_new_session=True)
        self.addCleanup(self.end)
        found = until(lambda: re.search(r"served at http://127\.0\.0\.1:(\d+)", self.said()))
        return Site(int(found[1]), self.env)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
            raise


class Served(Serving):
    def test_each_method_is_tried_with_each_token(self):
        document = json.loads(run("rpc", "--openrpc").stdout)
        methods = {method["name"]: method["x-scope"] for method in document["methods"]}
        self.assertGreater(len(methods), 25)
        for name, needed in methods.items():
            for scope in ORDER:
                with self.subTest(name, scope=scope):
                    # No method has this parameter: one that is permitted refuses it and does nothing.
                    answer = self.site.post(name, {"no_such_parameter": 1}, scope)
                    if name == "events.unsubscribe":
                        self.assertEqual(answer["result"], False, "there is no subscription")
                        continue
                    code = answer["error"]["data"]["code"]
                    if ORDER.index(scope) < ORDER.index(needed):
                        self.assertEqual(code, "FORBIDDEN")
                    else:
                        self.assertIn(code, ("INVALID_PARAMS", "NEEDS_CONNECTION"))
        own = self.site.value("calls.start", {"tool": "t.wait"}, "operate")["call"]
        refused = self.site.post("calls.cancel", {"call": own}, "call")["error"]
        self.assertEqual(refused["data"]["code"], "FORBIDDEN", "it is the call of another client")
        self.assertTrue(self.site.value("calls.cancel", {"call": own}))

    def test_who_may_not_ask(self):
        token = self.site.tokens["observe"]
        for host in ("evil.example", "evil.example:80", f"127.0.0.1.evil.example:{self.site.port}", ""):
            refused = self.site.send("GET", "/metrics", scope="observe", Host=host)
            self.assertEqual((refused.status, refused.code), (403, "FOREIGN_HOST"), host)
        for origin in ("http://evil.example", "null", "http://localhost:1"):
            for method, path in (("GET", "/metrics"), ("POST", "/rpc"), ("OPTIONS", "/rpc"), ("GET", "/healthz")):
                refused = self.site.send(method, path, scope="observe", Origin=origin)
                self.assertEqual((refused.status, refused.code), (403, "FOREIGN_ORIGIN"), origin)
                self.assertNotIn("access-control-allow-origin", refused.headers)
        for value in (None, "Bearer", "Bearer x", "Basic " + token, f"Bearer {token}0", f"Bearer {token[:-1]}", "Bearer ü"):
            for path in ("/metrics", "/api/metrics/tools", "/rpc", "/ws?conversation=1"):
                headers = {} if value is None else {"Authorization": value.encode("latin-1")}
                refused = self.site.send("GET", path, **headers)
                self.assertEqual((refused.status, refused.code), (401, "UNAUTHORIZED"), (value, path))
                self.assertEqual(refused.headers["www-authenticate"], "Bearer")
        self.assertEqual(self.site.send("GET", "/healthz").status, 200)
        own = self.site.send("GET", "/metrics", scope="observe", Origin=f"http://localhost:{self.site.port}")
        self.assertEqual((own.status, own.headers["access-control-allow-origin"]), (200, f"http://localhost:{self.site.port}"))

    def test_a_token_in_an_address_is_none_and_ends_in_no_log(self):
        token = self.site.tokens["operate"]
        for path in (f"/metrics?token={token}", f"/rpc?access_token={token}", f"/ws?conversation={token}"):
            self.assertEqual(self.site.send("GET", path).status, 401)
        self.assertEqual(self.site.send("GET", "/metrics", scope="operate").status, 200)
        with self.site.socket(f"/ws?conversation={token}"):
            pass
        self.assertNotIn(token, self.said())

    def test_a_token_is_renewed(self):
        old = self.site.tokens["call"]
        self.assertEqual(self.site.send("GET", "/metrics", scope="call").status, 200)
        new = run("token", "call", "--renew", env=self.env).stdout.strip()
        self.assertNotEqual(old, new)
        status = lambda token: self.site.send("GET", "/metrics", Authorization=f"Bearer {token}").status
        eventually(lambda: (status(old), status(new)) == (401, 200), "the new one is in force")
        self.assertEqual(status(self.site.tokens["operate"]), 200)

    def test_tools_are_called_and_reported(self):
        done = self.site.value("ExecuteTool", {"name": "t.add", "input_json": '{"a": 1}', "timeout_ms": 0}, "call")
        self.assertEqual((done["success"], done["output_json"]), (True, "2"))
        self.assertEqual(self.site.value("calls.run", {"tool": "t.ask", "can_ask": True}, "call")["error"]["code"], "NOT_SUPPORTED",
                         "a request has no way back to a person")
        begun = self.site.value("calls.start", {"tool": "t.loud", "arguments": {"count": 3}}, "call")["call"]
        self.assertEqual(self.site.value("calls.wait", {"call": begun}, "call")["result"], None)
        self.assertEqual(len(self.site.value("calls.output", {"call": begun}, "call")["chunks"]) > 0, True)
        metrics = self.site.send("GET", "/api/metrics/tools", scope="observe").json
        members = {"totalExecutions", "successfulExecutions", "failedExecutions", "averageExecutionTime", "activeTools", "queuedTools"}
        self.assertLessEqual(members, set(metrics))
        self.assertEqual((metrics["totalExecutions"], metrics["successfulExecutions"], metrics["failedExecutions"]), (3, 2, 1))
        text = self.site.send("GET", "/metrics", scope="observe")
        self.assertIn("openmetrics-text", text.headers["content-type"])
        self.assertIn('hostler_tool_calls_total{tool="t.add",outcome="success"} 1\n', text.body.decode())
        self.assertTrue(text.body.endswith(b"# EOF\n"))

    def test_requests_as_they_should_not_be(self):
        invalid = {"[]": -32600, "{": -32700, "": -32700, "7": -32600, '{"jsonrpc":"1.0","id":1,"method":"health"}': -32600}
        for body, code in invalid.items():
            answer = self.site.send("POST", "/", body, "observe")
            self.assertEqual((answer.status, answer.json["error"]["code"]), (200, code), body)
        for id in ("a", 7, None, "", 2**53):
            self.assertEqual(self.site.post("health", id=id)["id"], id)
        batch = [{"jsonrpc": "2.0", "id": n, "method": "health"} for n in range(3)] + [{"jsonrpc": "2.0", "method": "health"}]
        self.assertEqual([one["id"] for one in self.site.send("POST", "/", json.dumps(batch), "observe").json], [0, 1, 2])
        notified = self.site.send("POST", "/", '{"jsonrpc":"2.0","method":"health"}', "observe")
        self.assertEqual((notified.status, notified.body), (202, b""))
        for method, path, status in (("PUT", "/", 405), ("DELETE", "/metrics", 405), ("GET", "/none", 404), ("GET", "/rpc", 426),
                                     ("GET", "/ws?conversation=1", 426), ("GET", "/ws", 400)):
            self.assertEqual(self.site.send(method, path, scope="observe").status, status, path)
        head = f"Authorization: Bearer {self.site.tokens['observe']}\r\n"
        one = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.site.port), timeout=PATIENCE) as link:
            link.sendall((one + one).encode())
            answers = b""
            while answers.count(b"ok\n") < 2:
                answers += link.recv(4096)
        for data, status in ((b"\x16\x03\x01 TLS\r\n\r\n", b"400"), (b"GET /healthz HTTP/1.0\r\n\r\n", b"403"),
                             (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n", b"431"),
                             (f"GET http://evil.example/metrics HTTP/1.1\r\nHost: evil.example\r\n{head}\r\n".encode(), b"403")):
            self.assertIn(status, self.site.raw(data).split(b"\r\n")[0], data[:40])
        # Half a head and half a body do not hold up others.
        for data in (b"GET /hea", f"POST / HTTP/1.1\r\nHost: localhost\r\n{head}Content-Length: 100\r\n\r\n{{".encode()):
            self.enterContext(socket.create_connection(("127.0.0.1", self.site.port))).sendall(data)
        self.assertEqual(self.site.send("GET", "/healthz").status, 200)

    def test_connections_that_show_no_token_make_room_for_each_other(self):
        own = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=PATIENCE)
        self.addCleanup(own.close)
        def ask():
            own.request("GET", "/metrics", headers={"Authorization": f"Bearer {self.site.tokens['observe']}"})
            answer = own.getresponse()
            answer.read()
            return answer.status
        self.assertEqual(ask(), 200)
        before = own.sock
        silent = [self.enterContext(socket.create_connection(("127.0.0.1", self.site.port), timeout=PATIENCE)) for _ in range(200)]
        for first in silent[:72]:
            self.assertEqual(first.recv(1), b"")
        self.assertEqual(select.select(silent[72:], [], [], 0)[0], [])
        self.assertEqual(ask(), 200)
        self.assertIs(own.sock, before, "its connection was kept")

    def test_a_token_that_calls_nothing_sends_nothing_long(self):
        long = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "health", "params": {"x": "y" * 1_100_000}})
        self.assertEqual(self.site.send("POST", "/", long, "observe").status, 413)
        self.assertNotEqual(self.site.send("POST", "/", long, "call").status, 413)

    def test_a_client_that_goes_ends_its_call(self):
        link = socket.create_connection(("127.0.0.1", self.site.port))
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ExecuteTool", "params": {"name": "t.wait"}})
        head = f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.site.tokens['call']}\r\n"
        link.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        running = lambda: self.site.value("calls.list", {"states": ["running"]})
        call = until(running)[0]["call_id"]
        link.close()
        eventually(lambda: not running(), "it is cancelled")
        self.assertEqual(self.site.value("calls.get", {"call": call})["error"]["code"], "CANCELLED")

    def test_a_websocket_is_a_connection_of_the_control_face(self):
        with self.site.socket() as link:
            rpc = Rpc(link)
            self.assertEqual(rpc.value("ExecuteTool", {"name": "t.add", "input_json": '{"a": 1}'})["output_json"], "2")
            rpc.value("events.subscribe", {"tool": "t.loud"}, id=2)
            rpc.value("calls.run", {"tool": "t.loud", "arguments": {"count": 2}}, id=3)
            rpc.other(lambda message: message["method"] == "calls.event" and message["params"]["event"] == "output")
            event = rpc.other(lambda message: message["method"] == "events.event" and message["params"]["result"]["event"] == "tool_call_completed")
            self.assertEqual(event["params"]["result"]["tool_name"], "t.loud")
            rpc.send("calls.run", {"tool": "t.ask", "can_ask": True}, id=4)
            question = rpc.other(lambda message: message["method"] == "client.elicit")
            link.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}}))
            self.assertEqual(rpc.answer(4)["result"]["result"], "Ada")
            # Frames of several lines, bytes, and no JSON.
            link.send('{\n "jsonrpc": "2.0",\n "id": 5,\n "method": "health"}')
            self.assertIn("result", rpc.answer(5))
            link.send(b'{"jsonrpc":"2.0","id":6,"method":"health"}')
            self.assertIn("result", rpc.answer(6))
            for text in ("{", '{"a":\n"b\nc"}', "[" * 10_000):
                link.send(text)
                self.assertIn(rpc.answer(None)["error"]["code"], (-32700, -32600))
            large = "x" * 5_000_000
            self.assertEqual(len(rpc.value("calls.run", {"tool": "t.text", "arguments": {"length": len(large)}}, id=7)["result"]), len(large))
            sessions = self.site.value("sessions.list")
            self.assertEqual([session["client"] for session in sessions], ["http"])

    def test_a_websocket_with_a_browsers_means(self):
        protocols = ["hostler", "bearer." + self.site.tokens["observe"]]
        origin = f"http://127.0.0.1:{self.site.port}"
        with self.site.socket(scope=None, subprotocols=protocols, origin=origin) as link:
            self.assertEqual(link.subprotocol, "hostler")
            rpc = Rpc(link)
            rpc.send("stop")
            self.assertEqual(rpc.answer()["error"]["data"]["code"], "FORBIDDEN")
        for options in ({"origin": "http://evil.example"}, {"subprotocols": ["bearer.x"]}):
            with self.assertRaises(InvalidStatus):
                self.site.socket(scope=None, **options)

    def test_a_websocket_that_dies_ends_its_calls(self):
        link = self.enterContext(self.site.socket())
        Rpc(link).send("calls.run", {"tool": "t.wait"})
        running = lambda: self.site.value("calls.list", {"states": ["running"]})
        until(running)
        link.socket.shutdown(socket.SHUT_RDWR)
        eventually(lambda: not running(), "it is cancelled")

    def test_a_websocket_that_never_reads_costs_little(self):
        link = self.enterContext(self.site.socket(max_queue=1))
        rpc = Rpc(link)
        before = self.rss()
        for id in range(200):
            rpc.send("calls.run", {"tool": "t.text", "arguments": {"length": 1_000_000}}, id=id)
        self.assertEqual(self.site.value("ExecuteTool", {"name": "t.add", "input_json": '{"a": 1}'})["output_json"], "2")
        self.assertLess(self.rss() - before, 300 << 20)
        link.socket.shutdown(socket.SHUT_RDWR)

    def rss(self):
        return self.site.value("status")["rss"]

    def test_a_conversation_hears_its_calls_alone_in_four_messages(self):
        with self.site.socket("/ws?conversation=1", scope="observe") as own, self.site.socket("/ws?conversation=2") as other:
            tags = ["conversation:1", "prompt:10", "tool_call:5"]
            with self.site.socket() as link:
                rpc = Rpc(link)
                begun = rpc.value("calls.start", {"tool": "t.loud", "arguments": {"count": 1}, "tags": tags})["call"]
                rpc.value("calls.wait", {"call": begun})
                begun = rpc.value("calls.start", {"tool": "t.fail", "tags": ["conversation:1", "prompt:x"]})["call"]
                rpc.value("calls.wait", {"call": begun})
            heard = []
            while not heard or heard[-1]["type"] != "tool_error":
                heard.append(json.loads(own.recv(timeout=PATIENCE)))
            ids = {"promptId": 10, "toolCallId": 5}
            self.assertEqual(heard[0], {"type": "tool_started", **ids, "toolName": "t.loud"})
            outputs = [message for message in heard if message["type"] == "tool_output"]
            self.assertEqual("".join(message["output"] for message in outputs), "x" * 1000 + " 0\n")
            self.assertTrue(all(message == {"type": "tool_output", **ids, "output": message["output"]} for message in outputs))
            self.assertIn({"type": "tool_complete", **ids, "result": None}, heard)
            self.assertEqual(set(heard[-1]), {"type", "promptId", "toolCallId", "error"})
            self.assertEqual((heard[-1]["promptId"], heard[-1]["toolCallId"]), ("x", begun))
            self.assertIn("ValueError", heard[-1]["error"])
            self.site.value("calls.start", {"tool": "t.add", "arguments": {"a": 1}, "tags": ["conversation:2"]})
            self.assertEqual(json.loads(other.recv(timeout=PATIENCE))["toolName"], "t.add", "the first that it hears of")

    def test_their_session_can_be_ended(self):
        with self.site.socket() as link:
            rpc = Rpc(link)
            session, = rpc.value("sessions.list")
            rpc.send("sessions.end", {"session": session["session"]}, id=2)
            with self.assertRaises(ConnectionClosed):
                while True:
                    link.recv(timeout=PATIENCE)
        self.assertEqual(self.site.value("health")["accepting"], True, "others are served")
        with self.site.socket() as link:
            self.assertEqual(Rpc(link).value("health")["sessions"], 1)

    def test_a_request_under_way_ends_with_its_session_and_no_other(self):
        request = {"jsonrpc": "2.0", "id": 1, "method": "ExecuteTool", "params": {"name": "t.wait"}}
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(self.site.send, "POST", "/rpc", json.dumps(request), "call")
            until(lambda: self.site.value("calls.list", {"states": ["running"]}))
            self.site.post("sessions.end", {"session": self.site.value("sessions.list")[0]["session"]})
            self.assertEqual(waiting.result(PATIENCE).status, 503)
        for _ in range(10):
            self.assertEqual(self.site.value("health")["accepting"], True)

    def test_stop_ends_it(self):
        with self.site.socket() as link:
            Rpc(link).value("stop")
        self.assertEqual(self.process.wait(PATIENCE), 0)

    def test_a_signal_ends_it_with_calls_under_way(self):
        with self.site.socket() as link:
            rpc = Rpc(link)
            worker = rpc.value("calls.run", {"tool": "t.pid"})["result"]
            rpc.send("calls.run", {"tool": "t.wait"}, id=2)
            until(lambda: self.site.value("calls.list", {"states": ["running"]}))
            self.process.send_signal(signal.SIGTERM)
            self.assertEqual(self.process.wait(10), 0)
        eventually(gone(worker), "its workers are gone")

    def test_an_address_that_is_taken(self):
        taken = run("serve", "--http", f"127.0.0.1:{self.site.port}", env=self.env, cwd=self.folder)
        self.assertEqual(taken.returncode, 70)
        self.assertIn(f"127.0.0.1:{self.site.port}", taken.stderr)
        foreign = run("serve", "--http", "0.0.0.0:1", env=self.env, cwd=self.folder)
        self.assertEqual(foreign.returncode, 2)
        config_file(self.folder, '[control]\nlisten = "0.0.0.0:7411"\n')
        refused = run("list", env=self.env, cwd=self.folder)
        self.assertIn("loopback", refused.stderr)



class InTheShared(Shared):
    def setUp(self):
        super().setUp()
        home, config = self.folder / "home", self.folder / "config" / "hostler"
        write_tool(home / "tools", "mine", "import os\n\ndef where() -> str:\n    return os.getcwd()\n")
        config.mkdir(parents=True)
        self.env |= {"HOME": str(home), "XDG_CONFIG_HOME": str(self.folder / "config")}
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        config_file(config, f'[control]\nlisten = "localhost:{port}"\norigins = ["http://localhost:5173"]\n')
        self.port = port

    def test_it_listens_where_its_person_says_and_serves_the_tools_of_the_home_folder(self):
        client = self.open()
        pid, _ = client.value(1, "a_pid")
        until(lambda: self.status().get("http") == f"http://127.0.0.1:{self.port}")
        site = Site(self.port, self.env)
        done = site.value("ExecuteTool", {"name": "mine.where"}, "call")
        self.assertEqual(json.loads(done["output_json"]), str(self.folder / "home"))
        self.assertEqual(site.post("ExecuteTool", {"name": "a.pid"}, "call")["result"]["error_code"], "TOOL_NOT_FOUND")
        calls = site.value("calls.list", {"tool": "a.pid"}, "observe")
        self.assertEqual(len([call for call in calls if "error" not in call]), 1, "it shows the calls of all sessions")
        own = site.send("GET", "/metrics", scope="observe", Origin="http://localhost:5173")
        self.assertEqual(own.headers["access-control-allow-origin"], "http://localhost:5173")
        with site.socket() as link:
            sessions = Rpc(link).value("sessions.list")
            self.assertEqual(sorted(str(session["client"]) for session in sessions if session["client"] == "http"), ["http"])
        until(lambda: len(self.sessions()) == 1)

    def test_another_one_serves_it_after_that_one(self):
        client = self.open()
        client.value(1, "a_pid")
        until(lambda: (self.status() or {}).get("http"))
        before = self.status()["pid"]
        os.kill(before, signal.SIGKILL)
        until(lambda: (found := self.status()) and found["pid"] != before and found.get("http"))
        self.assertEqual(Site(self.port, self.env).send("GET", "/healthz").status, 200)

    def test_a_process_of_its_own_waits_for_the_address(self):
        with socket.create_server(("127.0.0.1", self.port)) as held:
            with open(self.folder / "log", "a") as log:
                alone = subprocess.Popen([HOSTLER, "serve", "--rpc", "--tools", self.tools], env=self.env, cwd=self.folder,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
                self.addCleanup(alone.stdout.close)
                until(lambda: "cannot listen" in (self.folder / "log").read_text())
                held.close()
                def answers():
                    with contextlib.suppress(OSError):
                        return Site(self.port, self.env).send("GET", "/healthz").status == 200
                eventually(answers, "it listens", 5)
                alone.stdin.close()
                self.assertEqual(alone.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
