"""Clients that people use: the TypeScript SDKs, FastMCP's client, the Inspector. `scripts/test world` provides them."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import fastmcp
from fastmcp.client.transports import StdioTransport

from harness import EXAMPLES, HOSTLER, TARGET, TOOLS, environment, write_tool
from test_neighbours import TALK
from test_shared import SECRET, SECRETIVE, Shared

HERE = Path(__file__).parent / "clients"
PACKAGES = TARGET / "e2e-tools" / "world"
INSPECTOR = PACKAGES / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
SERVE = [HOSTLER, "serve", "--standalone", "--tools", str(HERE / "tools")]
MEGABYTE = 1 << 20


def node(*words, env=None):
    return subprocess.run(["node", *map(str, words)], env=env or environment(), cwd=PACKAGES, capture_output=True, text=True, timeout=120)


class TypeScript(unittest.TestCase):
    def test_each_sdk_in_each_era(self):
        for which in ("v1", "v2", "v2-legacy"):
            with self.subTest(which):
                done = node(PACKAGES / "talk.mjs", which, *SERVE)
                self.assertEqual(done.returncode, 0, done.stderr)
                said = json.loads(done.stdout)
                self.assertIn("real_add", said["tools"])
                self.assertEqual((said["add"], said["after"]), ({"result": 5}, {"result": 2}))
                # 6 MB twice would end the session: this client takes 10 MiB.
                self.assertEqual(said["big"], {"length": 6 * MEGABYTE, "isError": False})
                self.assertTrue(said["huge"].startswith("INVALID_OUTPUT"), said["huge"])
                self.assertGreater(said["link"], 8 * MEGABYTE)
                self.assertEqual(said["steps"], [1, 2, 3])
                self.assertEqual(said["order"], {"action": "accept", "name": "Ada", "count": 3})
                self.assertEqual((said["model"], said["roots"]), ("a dot", {"result": ["/home/me"]}))
                self.assertEqual((said["wrong"], said["asked"]), (True, ["Who orders?"]))


class Neighbours(Shared):
    """Both SDKs at one shared hostler: the handshake of the one, the requests without one of the other."""

    def test_they_share_a_worker_and_nothing_else(self):
        write_tool(self.tools, "talk", TALK)
        write_tool(self.tools, "secret", SECRET, header=SECRETIVE)
        done = node(PACKAGES / "neighbours.mjs", HOSTLER, "serve", "--shared", "--tools", self.tools, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        for name, said in got.items():
            self.assertEqual((said["say"][0], said["think"][0], said["key"][0]), (f"of {name}", name, f"key of {name}"))
        self.assertEqual(len({said[call][1] for said in got.values() for call in ("say", "think")}), 1, "they share a worker")
        self.assertEqual(len({said["key"][1] for said in got.values()}), 2, "not one with secrets")
        self.assertEqual(got["v2"]["again"], ["again", got["v1"]["say"][1]])
        self.assertEqual(got["v1"]["heard"], [["log", "of v1"], ["model", "to v1"]])
        self.assertEqual(got["v2"]["heard"], [["log", "of v2"], ["model", "to v2"], ["log", "again"]])


class FastMcp(unittest.IsolatedAsyncioTestCase):
    async def test_its_client_gets_plain_values_and_answers_questions(self):
        asked = []

        async def elicit(message, _type, _params, _context):
            asked.append(message)
            return {"name": "Ada", "count": 3}

        async def sample(_messages, _params, _context):
            return "a dot"

        transport = StdioTransport(SERVE[0], SERVE[1:], env=environment())
        async with fastmcp.Client(transport, elicitation_handler=elicit, sampling_handler=sample, roots=["file:///home/me"]) as client:
            self.assertEqual((await client.call_tool("real_add", {"a": 2, "b": 3})).data, 5)
            self.assertEqual((await client.call_tool("real_order")).data, {"action": "accept", "name": "Ada", "count": 3})
            self.assertEqual((await client.call_tool("real_model")).content[0].text, "a dot")
            self.assertEqual((await client.call_tool("real_roots")).data, ["/home/me"])
        self.assertEqual(asked, ["Who orders?"])


class Inspector(unittest.TestCase):
    def run_it(self, *words, tools=HERE / "tools"):
        with tempfile.TemporaryDirectory() as home:
            command = [str(INSPECTOR), "--cli", *words, "--", HOSTLER, "serve", "--standalone", "--tools", str(tools)]
            return subprocess.run(["node", *command], env=environment(HOME=home, MCP_CATALOG_PATH=os.path.join(home, "mcp.json")),
                                  capture_output=True, text=True, timeout=120)

    def test_it_finds_nothing_wrong_with_schemas(self):
        for tools in (HERE / "tools", EXAMPLES, TOOLS):
            with self.subTest(tools):
                done = self.run_it("--strict", "--method", "tools/list", tools=tools)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(json.loads(done.stdout)["tools"])

    def test_it_calls_a_tool(self):
        done = self.run_it("--method", "tools/call", "--tool-name", "real_add", "--tool-arg", "a=2", "b=3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["structuredContent"], {"result": 5})
