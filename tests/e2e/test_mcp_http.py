"""MCP over Streamable HTTP: the official client in both eras, and clients that break off, come back, or are many."""

import asyncio
import contextlib
import http.client
import json
import socket
import time
import unittest

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from harness import PATIENCE, Answer, Gate, Progress, eventually, write_tool
from test_http import Serving, until

TOOL = '''
import os, time
from dataclasses import dataclass
import hostler

@dataclass
class Name:
    name: str

def add(a: int, b: int = 1) -> int:
    return a + b

def steps(gate: str, label: str = "x") -> str:
    hostler.progress(1, message=f"began {os.getpid()} {label}")
    open(gate, "rb").read()
    hostler.progress(2, message="ends " + label)
    return label

def ask() -> str:
    answer = hostler.elicit("Who?", Name)
    return answer.data.name if answer.action == "accept" else answer.action

def wait() -> None:
    time.sleep(600)
'''
HEADER = "# /// script\n# dependencies = []\n# [tool.hostler]\n# concurrency = 4\n# ///\n"
MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"}}
BOTH = "application/json, text/event-stream"


class Mcp(Serving):
    def setUp(self):
        super().setUp()
        write_tool(self.folder / "tools", "m", TOOL, header=HEADER)
        until(lambda: self.site.post("tools.show", {"tool": "m.add"}).get("result"))

    @contextlib.asynccontextmanager
    async def client(self, mode="auto", **options):
        headers = {"Authorization": f"Bearer {self.site.tokens['call']}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http_client:
            url = f"http://127.0.0.1:{self.site.port}/mcp"
            async with Client(streamable_http_client(url, http_client=http_client), mode=mode, **options) as client:
                yield client

    def gate(self, name="gate"):
        return Gate(self.folder, name)

    def post(self, message, session=None, scope="call", accept=BOTH, kind="application/json", **headers):
        headers |= {"Accept": accept, "Content_Type": kind} | ({"Mcp_Session_Id": session} if session else {})
        body = message if isinstance(message, (str, bytes)) else json.dumps({"jsonrpc": "2.0", **message})
        return self.site.send("POST", "/mcp", body, scope, **headers)

    def begin(self, revision="2025-11-25"):
        """A session of the legacy era."""
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        answer = self.post({"id": 1, "method": "initialize", "params": params})
        self.assertEqual(answer.status, 200, answer.body)
        session = answer.headers["mcp-session-id"]
        self.assertEqual(self.post({"method": "notifications/initialized"}, session).status, 202)
        return session

    @contextlib.contextmanager
    def stream(self, message=None, session=None, last=None, revision="2025-11-25", **more):
        """The events of an answer, as (id, message)."""
        headers = {"Accept": BOTH, "Content-Type": "application/json", "MCP-Protocol-Version": revision,
                   "Authorization": f"Bearer {self.site.tokens['call']}", **more}
        headers |= {name: value for name, value in (("Mcp-Session-Id", session), ("Last-Event-ID", last)) if value}
        link = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=PATIENCE)
        try:
            body = json.dumps({"jsonrpc": "2.0", **message}) if message else None
            link.request("POST" if message else "GET", "/mcp", body, headers)
            response = link.getresponse()
            self.assertEqual((response.status, response.headers["content-type"]), (200, "text/event-stream"))
            yield events(response)
        finally:
            link.close()

    def begun(self, heard):
        """The event in which a tool says that it runs. Its worker may be prepared before."""
        return next(event for event in heard if event[1] and event[1]["params"]["message"].startswith("began "))

    def modern(self, id, method, params=None, token=None):
        meta = META | ({"progressToken": token} if token is not None else {})
        return {"id": id, "method": method, "params": {**(params or {}), "_meta": meta}}


def events(response):
    id, data = None, None
    late = time.monotonic() + PATIENCE
    for line in response:
        assert time.monotonic() < late, "the event did not come"  # an idle stream says that it is there
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "id":
            id = value
        elif name == "data":
            data = value
        elif name == "" and data is not None:
            yield id, json.loads(data) if data.strip() else None
            id, data = None, None


class OfficialClient(Mcp, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        pass

    async def test_both_eras_call_ask_and_make_progress(self):
        async def person(context, params):
            return ElicitResult(action="accept", content={"name": "Ada"})
        for number, mode in enumerate(("legacy", MODERN)):
            with self.subTest(mode):
                async with self.client(mode, elicitation_callback=person) as client:
                    tools = {tool.name for tool in (await client.list_tools()).tools}
                    self.assertLessEqual({"m_add", "t_add"}, tools)
                    self.assertEqual(Answer(await client.call_tool("m_add", {"a": 1})).value, 2)
                    self.assertEqual(Answer(await client.call_tool("m_ask", {})).value, "Ada")
                    progress, gate = Progress(), self.gate(f"gate{number}")
                    call = asyncio.ensure_future(client.call_tool("m_steps", {"gate": str(gate.path)}, progress_callback=progress))
                    await progress.began()
                    gate.open()
                    self.assertEqual(Answer(await call).value, "x")
                    large = "x" * 3_000_000
                    self.assertEqual(Answer(await client.call_tool("t_text", {"length": len(large)})).value, large)
                    many = await asyncio.gather(*(client.call_tool("m_add", {"a": n}) for n in range(50)))
                    self.assertEqual([Answer(one).value for one in many], [n + 1 for n in range(50)])


class Raw(Mcp):
    def test_a_session_lasts_until_its_client_ends_it(self):
        session = self.begin()
        listed = self.post({"id": "a", "method": "tools/list"}, session, MCP_Protocol_Version="2025-11-25")
        self.assertEqual((listed.status, listed.json["id"]), (200, "a"))
        self.assertEqual(self.post({"id": 1, "method": "ping"}, session, MCP_Protocol_Version="1999-01-01").status, 400)
        self.assertEqual(self.post({"id": 1, "method": "ping"}, session + "0").status, 404)
        delete = lambda: self.site.send("DELETE", "/mcp", scope="call", Mcp_Session_Id=session).status
        self.assertEqual((delete(), delete()), (204, 404))
        self.assertEqual(self.post({"id": 1, "method": "ping"}, session).status, 404)

    def test_what_is_refused(self):
        ping = {"id": 1, "method": "ping"}
        self.assertEqual(self.post(ping, scope="observe").status, 403)
        self.assertEqual(self.site.send("POST", "/mcp", "{}").status, 401)
        self.assertEqual(self.post(ping, kind="text/plain").status, 415)
        self.assertEqual(self.post(ping, accept="text/html").status, 406)
        self.assertEqual(self.site.send("GET", "/mcp", scope="call").status, 405)
        for body, code in (("{", -32700), (b"\xff", -32700), ("[]", -32600), ("7", -32600)):
            refused = self.post(body)
            self.assertEqual((refused.status, refused.json["error"]["code"]), (400, code), body)
        list = self.modern(1, "tools/list")
        for headers in ({}, {"Mcp_Method": "prompts/list"}, {"Mcp_Method": "tools/list", "MCP_Protocol_Version": "2025-11-25"}):
            refused = self.post(list, **{"MCP_Protocol_Version": MODERN} | headers)
            self.assertEqual((refused.status, refused.json["error"]["code"]), (400, -32020), headers)
        unknown = self.post(self.modern(1, "no/such"), MCP_Protocol_Version=MODERN, Mcp_Method="no/such")
        self.assertEqual((unknown.status, unknown.json["error"]["code"]), (404, -32601))

    def test_what_might_be_read_in_two_ways_is_not_carried(self):
        call = self.modern(1, "tools/call", {"name": "m_add", "arguments": {"a": 1}, "uri": 5})
        headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call"}
        for message in (call, {"id": 1, "method": "tools/call", "params": [1]}, {"id": 1, "method": "tools/list"}):
            refused = self.post(message, **headers)
            self.assertEqual((refused.status, refused.json["error"]["code"]), (400, -32602), message)
        refused = self.post({"id": 1, "method": "tools/call", "params": call["params"]}, self.begin())
        self.assertEqual((refused.status, refused.json["error"]["code"]), (400, -32602), "in a session too")
        begun = self.post({"id": 1, "method": "initialize", "params": {}}, MCP_Protocol_Version=MODERN, Mcp_Method="initialize")
        self.assertEqual((begun.status, begun.json["error"]["code"]), (404, -32601))
        failed = self.post({"id": 1, "method": "initialize", "params": {"protocolVersion": 5}})
        self.assertEqual((failed.status, failed.headers["mcp-session-id"]), (400, None))

    def test_a_cancelled_request_ends_its_stream_and_takes_no_place(self):
        session = self.begin()
        call = {"id": 5, "method": "tools/call", "params": {"name": "m_steps", "arguments": {"gate": str(self.gate().path)},
                                                            "_meta": {"progressToken": 1}}}
        with self.stream(call, session) as heard:
            self.begun(heard)
            self.post({"method": "notifications/cancelled", "params": {"requestId": 5}}, session)
            self.assertEqual(list(heard), [])
        eventually(lambda: not self.site.value("calls.list", {"states": ["running"]}), "it is cancelled")
        self.assertEqual(self.post({"id": 1, "method": "ping"}, session).status, 200)

    def test_a_client_that_loses_its_stream_comes_back_for_the_rest(self):
        session, gate = self.begin(), self.gate()
        call = {"id": 5, "method": "tools/call",
                "params": {"name": "m_steps", "arguments": {"gate": str(gate.path)}, "_meta": {"progressToken": "p"}}}
        with self.stream(call, session) as heard:
            first = next(heard)
            self.assertIsNone(first[1], "an empty event comes first")
            begun = self.begun(heard)
            self.assertEqual(begun[1]["params"]["progressToken"], "p")
        self.assertEqual(len(self.site.value("calls.list", {"states": ["running"]})), 1, "it goes on")
        with self.stream(session=session, last=begun[0]) as heard:
            next(heard)
            gate.open()
            rest = list(heard)
        self.assertEqual([message.get("id") for _, message in rest], [None, 5])
        self.assertEqual(rest[-1][1]["result"]["structuredContent"], {"result": "x"})
        with self.stream(session=session, last=first[0]) as heard:
            next(heard)
            again = [message for _, message in heard]
            self.assertEqual(again[again.index(begun[1]) + 1:], [message for _, message in rest], "all of it again")
        self.assertEqual(self.site.send("GET", "/mcp", scope="call", Accept=BOTH, Mcp_Session_Id=session, Last_Event_ID="99-0").status, 404)

    def test_a_client_without_a_session_that_goes_ends_its_call(self):
        call = self.modern(1, "tools/call", {"name": "m_wait", "arguments": {}})
        body = json.dumps({"jsonrpc": "2.0", **call})
        head = ("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Method: tools/call\r\nMcp-Name: m_wait\r\n"
                f"MCP-Protocol-Version: {MODERN}\r\nAuthorization: Bearer {self.site.tokens['call']}\r\nContent-Length: {len(body)}\r\n\r\n")
        running = lambda: self.site.value("calls.list", {"states": ["running"]})
        with socket.create_connection(("127.0.0.1", self.site.port)) as link:
            link.sendall((head + body).encode())
            until(running)
        eventually(lambda: not running(), "it is cancelled")

    def test_clients_that_choose_the_same_ids_and_tokens_hear_each_of_their_own_calls(self):
        names = {"Mcp-Method": "tools/call", "Mcp-Name": "m_steps"}
        gates = [self.gate("one"), self.gate("two")]
        calls = [self.modern(1, "tools/call", {"name": "m_steps", "arguments": {"gate": str(gate.path), "label": gate.path.name}}, token=1)
                 for gate in gates]
        with self.stream(calls[0], revision=MODERN, **names) as one, self.stream(calls[1], revision=MODERN, **names) as two:
            for heard, gate in ((two, gates[1]), (one, gates[0])):
                begun = self.begun(heard)[1]["params"]
                self.assertEqual((begun["progressToken"], begun["message"].split()[2]), (1, gate.path.name))
                gate.open()
                rest = [message for _, message in heard]
                self.assertEqual((rest[-1]["id"], rest[-1]["result"]["structuredContent"]), (1, {"result": gate.path.name}))
                self.assertEqual(rest[0]["params"]["message"], "ends " + gate.path.name)

    def test_news_that_belong_to_no_request_have_a_stream_of_their_own(self):
        session = self.begin()
        self.post({"id": 2, "method": "tools/list"}, session)
        with self.stream(session=session) as heard:
            self.assertIsNone(next(heard)[1])
            write_tool(self.folder / "tools", "fresh", "def f() -> int: return 1\n")
            self.assertEqual(next(heard)[1]["method"], "notifications/tools/list_changed")

    def test_a_thousand_sessions(self):
        before = self.site.value("status")["rss"]
        first = self.begin()
        sessions = [self.begin() for _ in range(1030)]
        self.assertEqual(self.post({"id": 1, "method": "ping"}, first).status, 404, "the one that was unused for longest")
        self.assertEqual(self.post({"id": 1, "method": "ping"}, sessions[-1]).status, 200)
        per_session = (self.site.value("status")["rss"] - before) / 1024
        self.assertLess(per_session, 64 << 10)
        self.assertEqual(len(self.site.value("sessions.list")), 1)

    def test_all_of_them_end_with_their_session(self):
        session = self.begin()
        number = self.site.value("sessions.list")[0]["session"]
        with self.stream(session=session) as heard:
            next(heard)
            self.site.value("sessions.end", {"session": number})
            self.assertEqual(list(heard), [])
        self.assertIn(self.post({"id": 1, "method": "ping"}, session).status, (404, 503))
        self.assertEqual(self.post({"id": 1, "method": "ping"}, self.begin()).status, 200)


if __name__ == "__main__":
    unittest.main()
