"""What clients are told about the server and its tools, besides their schemas."""

import json
import unittest
from base64 import b64encode

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from harness import HOSTLER, ROOT, config_file, connected, environment, run, scratch, write_tool
from mcp import MCPError
from wire import INLINE, Wire, request

SETTINGS = '''
[mcp]
instructions = "Ask the wiki first."
title = "House tools"
icon = "https://house.example/icon.png"
[tool.plain]
tags = ["web", "data"]
requires_approval = true
[tool."plain.rows"]
version = "2.1"
risk_level = "high"
'''
PNG = b"\x89PNG\r\n\x1a\n"
ICONS = '''# /// script
# dependencies = []
# [tool.hostler]
# icon = "icons/of_file.png"
# ///
import hostler

def own(): ...
def other(): ...

@hostler.resource("notes://{id}", icon="https://a.example/note.png")
def note(id: str) -> str: ...
@hostler.resource("notes://all")
def notes() -> str: ...
@hostler.prompt(icon="icons/absent.png")
def review() -> str: ...
@hostler.prompt
def plan() -> str: ...
'''
PROGRAM = """#!/bin/sh
echo '{"icon": "icons/of_file.png", "input_schema": {"type": "object"}}'
"""
BODY = '''
def rows() -> list[int]:
    return [1, 2]

def told() -> str:
    return "text"

def spot() -> dict[str, int]:
    return {"result": 1}
'''


class Presented(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "plain", BODY)
        write_tool(self.folder / "tools", "bare", BODY)
        self.config = config_file(self.folder, SETTINGS)

    def test_the_server_says_who_it_is_in_both_eras(self):
        words = ("--config", str(self.config))
        with Wire(self.folder / "tools", arguments=words) as wire:
            hello = wire.open()["result"]
            wire.send(request(1, "server/discover", _meta=INLINE))
            found = wire.answer(1)["result"]
            info = found["_meta"]["io.modelcontextprotocol/serverInfo"]
            for told, instructions in ((hello["serverInfo"], hello["instructions"]), (info, found["instructions"])):
                self.assertEqual(instructions, "Ask the wiki first.")
                self.assertEqual((told["name"], told["title"], told["icons"]), ("hostler", "House tools", [{"src": "https://house.example/icon.png"}]))

    async def test_the_policy_of_a_tool_is_in_its_metadata(self):
        async with connected(self.folder / "tools", config=self.config) as hostler:
            tools = await hostler.tools()
            policy = {"version": "2.1", "tags": ["web", "data"], "risk_level": "high", "requires_approval": True}
            self.assertEqual(tools["plain_rows"].meta, {"hostler/policy": policy})
            self.assertEqual(tools["plain_told"].meta, {"hostler/policy": {"tags": ["web", "data"], "requires_approval": True}})
            self.assertIsNone(tools["bare_rows"].meta)

    async def test_icons_of_tools_resources_and_prompts(self):
        tools = self.folder / "iconic"
        (tools / "icons").mkdir(parents=True)
        (tools / "icons" / "of_file.png").write_bytes(PNG)
        write_tool(tools, "a", ICONS, "")
        (tools / "program").write_text(PROGRAM)
        (tools / "program").chmod(0o755)
        (self.folder / "own.svg").write_text("<svg/>")
        config = config_file(self.folder, '[tool."a.own"]\nicon = "own.svg"\n')
        image = f"data:image/png;base64,{b64encode(PNG).decode()}"
        vector = f"data:image/svg+xml;base64,{b64encode(b'<svg/>').decode()}"
        async with connected(tools, config=config) as hostler:
            def icons(items, name="name"):
                return {getattr(item, name): item.icons and [icon.src for icon in item.icons] for item in items}

            await hostler.call("program")  # it is in the list once it has answered
            self.assertEqual(icons((await hostler.tools()).values()), {"a_own": [vector], "a_other": [image], "program": [image]})
            self.assertEqual(icons((await hostler.client.list_resource_templates()).resource_templates), {"note": ["https://a.example/note.png"]})
            self.assertEqual(icons((await hostler.client.list_resources()).resources), {"notes": [image]})
            self.assertEqual(icons((await hostler.client.list_prompts()).prompts), {"a_plan": [image], "a_review": None})
        found = json.loads(run("check", "--json", "--tools", tools).stdout)
        self.assertIn("icons/absent.png", json.dumps(found))
        self.assertNotIn("icons/of_file.png", json.dumps(found))

    async def test_fastmcp_unwraps_what_is_wrapped_and_nothing_else(self):
        words = ["serve", "--standalone", "--tools", str(self.folder / "tools")]
        async with Client(StdioTransport(HOSTLER, words, env=environment(), cwd=str(ROOT))) as client:
            self.assertEqual((await client.call_tool("plain_rows")).data, [1, 2])
            self.assertEqual((await client.call_tool("plain_told")).data, "text")
            self.assertEqual((await client.call_tool("plain_spot")).data, {"result": 1})

    async def test_a_name_that_cannot_be_hides_no_other_tool(self):
        tools = self.folder / "others"
        long = "x" * 61
        write_tool(tools, "a", "def b_c(): return 'of a'\n")
        write_tool(tools, "a_b", f"def c(): ...\ndef fine(): return 'fine'\ndef {long}(): ...\n")
        write_tool(tools, "broken", "def d(:\n")
        write_tool(tools, "later", "pack = 'broken'\ndef d(): return 'later'\n", "")
        async with connected(tools) as hostler:
            self.assertEqual(sorted(await hostler.tools()), ["a_b_c", "a_b_fine", "broken_d"])
            called = [await hostler.value(tool) for tool in ("a_b_c", "a_b_fine", "broken_d")]
            self.assertEqual(called, ["of a", "fine", "later"])
            with self.assertRaises(MCPError) as refused:
                await hostler.call(f"a_b_{long}")
            self.assertIn("65 characters, more than 64", str(refused.exception))
        rows = {row["name"]: row["status"] for row in json.loads(run("list", "--json", "--tools", tools).stdout)}
        self.assertEqual((rows["a_b.c"], rows[f"a_b.{long}"], rows["a_b.fine"]), ("broken", "broken", "ready"))
        self.assertIn(f"a_b.{long} is not served", run("serve", "--tools", tools, stdin="").stderr)


if __name__ == "__main__":
    unittest.main()
