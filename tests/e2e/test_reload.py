"""Tool files that change while they are served, and the client that is told."""

import asyncio
import subprocess
import time
import unittest

from harness import PATIENCE, connected, scratch, write_tool
from mcp_types import ToolListChangedNotification
from wire import INLINE, Wire, line, request

CHANGED = "notifications/tools/list_changed"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def hello(body="'hello'", more=""):
    return f"def hello() -> str:\n    return {body}\n{more}"


class Heard:
    """What a client of the legacy era is told unasked."""

    def __init__(self):
        self.changes = asyncio.Queue()

    async def __call__(self, message):
        if isinstance(message, ToolListChangedNotification):
            self.changes.put_nowait(message)

    async def change(self):
        await asyncio.wait_for(self.changes.get(), PATIENCE)


class Announced(unittest.IsolatedAsyncioTestCase):
    """By the official client, in both eras."""

    async def test_a_client_of_the_handshake_is_told_of_a_new_tool(self):
        folder, heard = scratch(self), Heard()
        write_tool(folder, "greet", hello())
        async with connected(folder, mode="legacy", message_handler=heard) as hostler:
            self.assertTrue(hostler.client.server_capabilities.tools.list_changed)
            self.assertEqual(set(await hostler.tools()), {"greet_hello"})
            write_tool(folder, "greet", hello(more="def bye(): ...\n"))
            began = time.monotonic()
            await heard.change()
            self.assertLess(time.monotonic() - began, 1)
            self.assertEqual(set(await hostler.tools()), {"greet_hello", "greet_bye"})

    async def test_a_client_that_listens_is_told_of_a_new_tool(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        async with connected(folder, mode="2026-07-28") as hostler:
            async with hostler.client.listen(tools_list_changed=True, prompts_list_changed=True) as changes:
                self.assertTrue(changes.honored.tools_list_changed)
                self.assertFalse(changes.honored.prompts_list_changed)
                self.assertEqual(set(await hostler.tools()), {"greet_hello"})
                write_tool(folder, "greet", hello(more="def bye(): ...\n"))
                await asyncio.wait_for(anext(aiter(changes)), PATIENCE)
                self.assertEqual(set(await hostler.tools()), {"greet_hello", "greet_bye"})


class OnTheWire(unittest.TestCase):
    def listed(self, wire, number, **params):
        wire.send(request(number, "tools/list", **params))
        return {tool["name"] for tool in wire.answer(number)["result"]["tools"]}

    def told(self, wire):
        """How often the client has been told by the time that a request sent now is answered."""
        count = sum(note["method"] == CHANGED for note in wire.notes)
        wire.notes.clear()
        return count

    def test_only_a_changed_list_is_announced(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        with Wire(folder) as wire:
            wire.open()
            self.assertEqual(wire.value(1, "greet.hello"), "hello")
            write_tool(folder, "greet", hello("'good day'"))
            self.assertEqual(wire.value(2, "greet.hello"), "good day")
            self.listed(wire, 3)
            self.assertEqual(self.told(wire), 0)
            write_tool(folder, "later", hello())
            wire.until(CHANGED)
            self.assertEqual(wire.value(4, "later.hello"), "hello")
            (folder / "later.py").unlink()
            wire.until(CHANGED)
            self.assertEqual(self.listed(wire, 5), {"greet_hello"})
            self.assertEqual(self.told(wire), 0)

    def test_a_session_without_a_handshake_is_told_where_it_asked_and_only_there(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        meta = {"_meta": INLINE}
        with Wire(folder) as wire:
            self.assertEqual(self.listed(wire, 1, **meta), {"greet_hello"})
            write_tool(folder, "greet", hello(more="def bye(): ...\n"))
            self.assertEqual(self.listed(wire, 2, **meta), {"greet_hello", "greet_bye"})
            self.assertEqual(self.told(wire), 0)
            wire.send(request(3, "subscriptions/listen", notifications={"toolsListChanged": True}, **meta))
            acknowledged = wire.until("notifications/subscriptions/acknowledged")
            self.assertEqual(acknowledged["params"]["notifications"], {"toolsListChanged": True})
            write_tool(folder, "greet", hello())
            self.assertEqual(self.listed(wire, 4, **meta), {"greet_hello"})
            self.assertEqual(wire.until(CHANGED)["params"]["_meta"][SUBSCRIPTION], 3)
            wire.send(line(method="notifications/cancelled", params={"requestId": 3}))
            write_tool(folder, "later", hello())
            self.assertEqual(self.listed(wire, 5, **meta), {"greet_hello", "later_hello"})
            self.listed(wire, 6, **meta)
            self.assertEqual(self.told(wire), 0)

    def test_what_changed_between_the_list_and_the_wish_to_hear_of_it_is_told(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        meta = {"_meta": INLINE}
        with Wire(folder) as wire:
            self.listed(wire, 1, **meta)
            write_tool(folder, "later", hello())
            wire.send(request(2, "tools/call", name="later.hello", arguments={}, **meta))
            wire.answer(2)
            wire.send(request(3, "subscriptions/listen", notifications={"toolsListChanged": True}, **meta))
            wire.until(CHANGED)

    def test_a_subscription_ends_with_its_session_and_holds_nobody_up(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        with Wire(folder) as wire:
            notifications = {"toolsListChanged": True}
            wire.send(request(1, "subscriptions/listen", notifications=notifications, _meta=INLINE))
            wire.until("notifications/subscriptions/acknowledged")
            wire.process.terminate()
            self.assertEqual(wire.answer(1)["result"]["_meta"][SUBSCRIPTION], 1)
            self.assertEqual(wire.ended(0.4), 0)

    def test_where_nothing_can_be_watched_files_are_looked_at_and_that_is_said_once(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        # Limits of one's own, in a namespace of one's own: not one folder may be watched.
        limited = ["unshare", "--user", "--map-root-user", "sh", "-c",
                   'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"', "sh"]
        if subprocess.run([*limited, "true"], capture_output=True).returncode:
            self.skipTest("namespaces are not to be had here")
        with Wire(folder, before=limited) as wire:
            wire.open()
            for name in ("one", "two"):
                write_tool(folder, name, hello())
                wire.until(CHANGED)
            self.assertEqual(self.listed(wire, 1), {"greet_hello", "one_hello", "two_hello"})
            wire.process.terminate()
            wire.ended(2)
            log = wire.stderr()
        self.assertEqual(log.count("cannot be watched"), 1, log)

    def test_the_log_says_what_became_of_each_file(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        write_tool(folder, "old", hello())
        with Wire(folder, arguments=("-v",)) as wire:
            wire.open()
            write_tool(folder, "greet", hello(more="def bye(): ...\n"))
            write_tool(folder, "later", hello())
            (folder / "old.py").unlink()
            wire.until(CHANGED)
            self.listed(wire, 1)
            wire.process.terminate()
            wire.ended(2)
            log = wire.stderr()
        for text in ("greet changed: 2 tools, new calls go to the new version", "later was added: 1 tool", "old was removed"):
            self.assertIn(text, log)


if __name__ == "__main__":
    unittest.main()
