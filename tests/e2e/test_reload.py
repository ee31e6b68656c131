"""Tool files that change while they are served, and the client that is told."""

import asyncio
import hashlib
import subprocess
import threading
import time
import unittest

from harness import CACHE, HEADER, PATIENCE, Gate, alive, connected, environment, eventually_async, gone, scratch, write_tool
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
            async with hostler.client.listen(tools_list_changed=True, resource_subscriptions=["a://b"]) as changes:
                self.assertTrue(changes.honored.tools_list_changed)
                self.assertFalse(changes.honored.resource_subscriptions)
                self.assertEqual(set(await hostler.tools()), {"greet_hello"})
                write_tool(folder, "greet", hello(more="def bye(): ...\n"))
                await asyncio.wait_for(anext(aiter(changes)), PATIENCE)
                self.assertEqual(set(await hostler.tools()), {"greet_hello", "greet_bye"})


class OnTheWire(unittest.TestCase):
    def listed(self, wire, number, **params):
        wire.send(request(number, "tools/list", **params))
        return {tool["name"] for tool in wire.answer(number)["result"]["tools"]}

    def told(self, wire):
        """What the client has been told by the time that a request sent now is answered."""
        told = [note for note in wire.notes if note["method"] == CHANGED]
        wire.notes.clear()
        return told

    def test_only_a_changed_list_is_announced(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        with Wire(folder) as wire:
            wire.open()
            self.assertEqual(wire.value(1, "greet.hello"), "hello")
            write_tool(folder, "greet", hello("'good day'"))
            self.assertEqual(wire.value(2, "greet.hello"), "good day")
            self.listed(wire, 3)
            self.assertEqual(self.told(wire), [])
            write_tool(folder, "later", hello())
            wire.until(CHANGED)
            self.assertEqual(wire.value(4, "later.hello"), "hello")
            (folder / "later.py").unlink()
            wire.until(CHANGED)
            self.assertEqual(self.listed(wire, 5), {"greet_hello"})
            self.assertEqual(self.told(wire), [])

    def test_a_session_without_a_handshake_is_told_where_it_asked_and_only_there(self):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        meta = {"_meta": INLINE}
        with Wire(folder) as wire:
            self.assertEqual(self.listed(wire, 1, **meta), {"greet_hello"})
            write_tool(folder, "greet", hello(more="def bye(): ...\n"))
            self.assertEqual(self.listed(wire, 2, **meta), {"greet_hello", "greet_bye"})
            self.assertEqual(self.told(wire), [])
            wire.send(request(3, "subscriptions/listen", notifications={"toolsListChanged": True}, **meta))
            acknowledged = wire.until("notifications/subscriptions/acknowledged")
            self.assertEqual(acknowledged["params"]["notifications"], {"toolsListChanged": True})
            write_tool(folder, "greet", hello())
            self.assertEqual(self.listed(wire, 4, **meta), {"greet_hello"})
            self.assertEqual(wire.until(CHANGED)["params"]["_meta"][SUBSCRIPTION], 3)
            wire.send(line(method="notifications/cancelled", params={"requestId": 3}))
            self.assertEqual(self.listed(wire, 5, **meta), {"greet_hello"}, "and the cancellation is read")
            write_tool(folder, "later", hello())
            self.assertEqual(self.listed(wire, 6, **meta), {"greet_hello", "later_hello"})
            self.listed(wire, 7, **meta)
            self.assertEqual(self.told(wire), [])

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
        for what in ("instances", "watches"):
            with self.subTest(what):
                self.looked_at(what)

    def limited(self, what):
        """Limits of one's own, in a namespace of one's own: not one folder may be watched."""
        limited = ["unshare", "--user", "--map-root-user", "sh", "-c",
                   f'echo 0 > /proc/sys/user/max_inotify_{what} && exec "$@"', "sh"]
        if subprocess.run([*limited, "true"], capture_output=True).returncode:
            self.skipTest("namespaces are not to be had here")
        return limited

    def test_where_no_tool_files_lie_nobody_hears_that_they_cannot_be_watched(self):
        home = scratch(self)
        env = environment(XDG_CONFIG_HOME=home, XDG_DATA_HOME=home, HOSTLER_LOG="debug")
        with Wire(None, before=self.limited("watches"), env=env, cwd=home) as wire:
            wire.open()
            self.assertEqual(self.listed(wire, 1), set())
            self.assertNotIn("cannot be watched", self.said_until(wire, "is not watched, but checked every"))
            write_tool(home / "tools", "greet", hello())
            wire.until(CHANGED)
            self.assertEqual(self.listed(wire, 1), {"greet_hello"})

    def said_until(self, wire, words):
        """What it has written to standard error, up to these words."""
        end = threading.Timer(PATIENCE, wire.process.kill)
        end.start()
        self.addCleanup(end.cancel)
        said = ""
        for line in wire.process.stderr:
            said += line.decode()
            if words in said:
                return said
        self.fail(f"it never said {words!r}, but: {said}")

    def looked_at(self, what):
        folder = scratch(self)
        write_tool(folder, "greet", hello())
        with Wire(folder, before=self.limited(what)) as wire:
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
        for text in ("greet changed: 2 tools", "later was added: 1 tool", "old was removed"):
            self.assertIn(text, log)


COAL = "def lit() -> str:\n    return 'old'\n"


def kept(path):
    """Whether hostler has a copy of a tool file as it is now."""
    name = hashlib.sha256(path.read_bytes()).hexdigest() + ".py"
    return lambda: (CACHE / "xdg" / "hostler" / "sources" / name).is_file()


class LastGood(unittest.IsolatedAsyncioTestCase):
    """Edits that break a file: the last good version goes on answering, and says so."""

    async def stale(self, hostler, *words, tool="engine.lit", value="old"):
        """A call that the last good version answers; gives its worker."""
        answer = await hostler.call(tool)
        self.assertEqual(answer.value, value)
        for word in words:
            self.assertIn(word, answer.metadata["stale"])
        return answer.worker

    async def current(self, hostler, value):
        answer = await hostler.call("engine.lit")
        self.assertEqual(answer.value, value)
        self.assertNotIn("stale", answer.metadata)
        return answer.worker

    async def test_of_a_file_that_cannot_be_read_any_more(self):
        breaks = {"syntax": HEADER + COAL + "def broken(:\n", "header": "# /// script\n# dependencies = []\n" + COAL}
        for name, broken in breaks.items():
            with self.subTest(name):
                folder, heard = scratch(self), Heard()
                write_tool(folder, "engine", COAL)
                async with connected(folder, mode="legacy", message_handler=heard, verbose=True) as hostler:
                    before = await hostler.tools()
                    worker = await self.current(hostler, "old")
                    write_tool(folder, "engine", broken, header="")
                    self.assertEqual(await self.stale(hostler, "line "), worker)
                    self.assertEqual(await hostler.tools(), before)
                    await hostler.kill(worker)
                    self.assertNotEqual(await self.stale(hostler, "line "), worker)
                    self.assertTrue(heard.changes.empty(), "the list is what it was")
                    write_tool(folder, "engine", COAL.replace("old", "new"))
                    await self.current(hostler, "new")
                    self.assertRegex(hostler.stderr(), r"WARN engine cannot be served \(line \d+: ")

    async def test_of_a_file_that_was_never_called(self):
        folder = scratch(self)
        path = write_tool(folder, "engine", COAL + f"# {folder}\n")
        async with connected(folder) as hostler:
            await eventually_async(kept(path), "a copy is kept")
            write_tool(folder, "engine", "def broken(:\n")
            await self.stale(hostler, "line ")

    async def test_of_a_file_whose_worker_does_not_start_any_more(self):
        folder = scratch(self)
        count = "\nfired = 0\n\ndef fire() -> int:\n    global fired\n    fired += 1\n    return fired\n"
        write_tool(folder, "engine", COAL + count)
        async with connected(folder, verbose=True) as hostler:
            self.assertEqual(await hostler.value("engine.fire"), 1)
            worker = await self.current(hostler, "old")
            before = set(await hostler.tools())
            write_tool(folder, "engine", COAL + count + "def more(): ...\n\nraise RuntimeError('no coal')\n")
            self.assertEqual(await self.stale(hostler, "RuntimeError: no coal", "line 16"), worker)
            await self.stale(hostler, "no coal", tool="engine.fire", value=2)
            self.assertEqual(set(await hostler.tools()), before, "what cannot be called is not offered")
            lost = await hostler.call("engine.more")
            self.assertEqual(lost.code, "STARTUP_FAILED", lost.text)
            self.assertIn("no coal", lost.message)
            self.assertIn("no coal", hostler.stderr())
            await hostler.kill(worker)
            again = await self.stale(hostler, "no coal", tool="engine.fire", value=1)
            write_tool(folder, "engine", COAL.replace("old", "new"))
            await self.current(hostler, "new")
            await eventually_async(gone(again), "nobody needs the last good version any more")

    async def test_of_a_file_whose_environment_cannot_be_built_any_more(self):
        folder = scratch(self)
        write_tool(folder, "engine", COAL)
        async with connected(folder) as hostler:
            await self.current(hostler, "old")
            header = HEADER.replace("[]", '["hostler-has-no-such-package"]')
            write_tool(folder, "engine", COAL, header=header)
            await self.stale(hostler, "hostler-has-no-such-package")

    async def test_arguments_are_those_of_the_version_that_answers(self):
        folder = scratch(self)
        write_tool(folder, "engine", "def burn(coal: int = 1) -> int:\n    return coal\n")
        async with connected(folder) as hostler:
            self.assertEqual(await hostler.value("engine.burn", coal=2), 2)
            write_tool(folder, "engine", "def burn(wood: int = 1) -> int:\n    return wood\n\n1 / 0\n")
            refused = await hostler.call("engine.burn", wood=3)
            self.assertEqual(refused.code, "STARTUP_FAILED", "the new version's fault is the one to mend")
            self.assertIn("ZeroDivisionError", refused.message)
            self.assertEqual(await hostler.value("engine.burn", coal=4), 4)

    async def test_a_traceback_shows_the_lines_that_ran(self):
        folder = scratch(self)
        write_tool(folder, "engine", "def burn():\n    raise RuntimeError('it ran')  # as it was\n")
        async with connected(folder) as hostler:
            await hostler.call("engine.burn")
            write_tool(folder, "engine", "def broken(:\n" + "# another line\n" * 20)
            answer = await hostler.call("engine.burn")
            self.assertIn("# as it was", answer.details["traceback"])
            self.assertNotIn("another line", answer.details["traceback"])


class Draining(unittest.IsolatedAsyncioTestCase):
    async def test_a_call_under_way_ends_on_the_version_it_began_with(self):
        folder = scratch(self)
        gate = Gate(folder)
        wait = ("def lit(path: str = '') -> str:\n    import hostler, os\n    if path:\n"
                "        hostler.progress(1, message=f'began {os.getpid()}')\n        open(path, 'rb').read()\n    return 'old'\n")
        write_tool(folder, "engine", wait)
        async with connected(folder) as hostler:
            running, old = await hostler.start("engine.lit", path=str(gate.path))
            write_tool(folder, "engine", wait.replace("'old'", "'new'"))
            answer = await hostler.call("engine.lit")
            self.assertEqual(answer.value, "new")
            self.assertNotEqual(answer.worker, old)
            self.assertTrue(alive(old) and not running.done(), "it is let finish")
            gate.open()
            ended = await running
            self.assertEqual((ended.value, ended.worker), ("old", old))
            await eventually_async(gone(old), "its worker has nothing to do any more")

    async def test_an_idle_worker_of_the_old_version_leaves_at_once(self):
        folder = scratch(self)
        write_tool(folder, "engine", COAL)
        async with connected(folder) as hostler:
            old = (await hostler.call("engine.lit")).worker
            write_tool(folder, "engine", COAL.replace("old", "new"))
            self.assertEqual(await hostler.value("engine.lit"), "new")
            await eventually_async(gone(old), "nobody will call it again", limit=3)


if __name__ == "__main__":
    unittest.main()
