"""Several workers and what all tools share: growth, limits, replacement, repeated deaths, what an operator sees."""

import asyncio
import contextlib
import os
import re
import signal
import unittest
from pathlib import Path

import shared_mode
from harness import alive, config_file, connected, eventually, eventually_async, gone, scratch, write_tool
from wire import Wire, call

WAITS = '''
import os, pathlib, time


def wait_at(gate: str) -> int:
    import hostler
    hostler.progress(0, message=f"began {os.getpid()}")
    while not pathlib.Path(gate).exists():
        time.sleep(0.005)
    return os.getpid()


def pid() -> int:
    return os.getpid()
'''

DIES = '''
import os, pathlib


def once(mark: str) -> int:
    """Dies the first time it is called."""
    if not pathlib.Path(mark).exists():
        pathlib.Path(mark).touch()
        os._exit(3)
    return os.getpid()


def always() -> None:
    os._exit(3)


def well() -> int:
    return os.getpid()
'''


def header(settings):
    lines = "".join(f"# {line}\n" for line in settings.splitlines())
    return f"# /// script\n# dependencies = []\n# [tool.hostler]\n{lines}# ///\n"


class Growth(unittest.IsolatedAsyncioTestCase):
    async def test_calls_that_wait_get_a_worker_of_their_own(self):
        folder = scratch(self)
        gate = folder / "gate"
        write_tool(folder / "tools", "many", WAITS, header("max_workers = 3"))
        async with connected(folder / "tools", verbose=True) as hostler:
            begun = [await hostler.start("many_wait_at", gate=str(gate)) for _ in range(3)]
            self.assertEqual(len({worker for _, worker in begun}), 3)
            gate.touch()
            self.assertEqual([(await task).value for task, _ in begun], [worker for _, worker in begun])
            for reason in ("a call waits and there is no worker", "calls wait too long"):
                self.assertIn(reason, hostler.said())

    async def test_short_calls_need_no_second_worker(self):
        folder = scratch(self)
        write_tool(folder / "tools", "many", WAITS, header("max_workers = 4"))
        async with connected(folder / "tools") as hostler:
            await hostler.call("many_pid")
            for _ in range(20):
                answers = await asyncio.gather(*(hostler.call("many_pid") for _ in range(4)))
            self.assertEqual(len({answer.worker for answer in answers}), 1)

    async def test_the_minimum_is_there_before_the_first_call_and_stays(self):
        folder = scratch(self)
        write_tool(folder / "tools", "many", f"import os, pathlib\npathlib.Path(r'{folder}', f'pid-{{os.getpid()}}').touch()\n" + WAITS)
        config = config_file(folder, '[tool.many]\nmin_workers = 2\nmax_workers = 2\nidle_timeout = "50ms"\n')
        async with connected(folder / "tools", config=config) as hostler:
            self.assertEqual(list(folder.glob("pid-*")), [], "nothing runs before the client wants something")
            await hostler.tools()
            await eventually_async(lambda: len(list(folder.glob("pid-*"))) == 2, "two workers are there")
            answer = await hostler.call("many_pid")
            self.assertFalse(answer.metadata["cold"] and answer.metadata["start_ms"] == 0)
            await asyncio.gather(*(hostler.call("many_pid") for _ in range(8)))
            self.assertEqual(len(list(folder.glob("pid-*"))), 2, "and no others")

    async def test_the_minimum_follows_an_edit_and_goes_with_the_file(self):
        folder = scratch(self)
        config = config_file(folder, '[tool.many]\nmin_workers = 1\n')
        write_tool(folder / "tools", "other", WAITS)
        path = write_tool(folder / "tools", "many", WAITS)
        async with connected(folder / "tools", config=config) as hostler:
            first = await hostler.value("many_pid")
            note = f"import os, pathlib\npathlib.Path(r'{folder}', f'pid-{{os.getpid()}}').touch()\n"
            write_tool(folder / "tools", "many", note + WAITS)
            await eventually_async(lambda: list(folder.glob("pid-*")), "the new version has a worker before it is called")
            await eventually_async(gone(first), "the one of the old version leaves when the new one has said hello")
            second = await hostler.call("many_pid")
            self.assertFalse(second.metadata["cold"])
            path.unlink()
            await eventually_async(gone(second.worker), "that of a file that is gone too")

    async def test_a_version_that_comes_back_keeps_its_worker(self):
        folder = scratch(self)
        counts = "number = 0\n\n\ndef count() -> int:\n    global number\n    number += 1\n    return number\n"
        write_tool(folder / "tools", "many", counts)
        async with connected(folder / "tools") as hostler:
            self.assertEqual(await hostler.value("many_count"), 1)
            begun, gate = folder / "begun", folder / "gate"
            held = (f"import pathlib, time\npathlib.Path(r'{begun}').touch()\n"
                    f"while not pathlib.Path(r'{gate}').exists():\n    time.sleep(0.005)\n")
            write_tool(folder / "tools", "many", held + counts)
            await hostler.tools()
            slow = asyncio.ensure_future(hostler.value("many_count"))
            await eventually_async(begun.exists, "the other version is being imported")
            write_tool(folder / "tools", "many", counts)
            await hostler.tools()
            self.assertEqual(await hostler.value("many_count"), 2)
            gate.touch()
            await slow
            self.assertEqual(await hostler.value("many_count"), 3, "also when the other version's worker has come")


class Nested(unittest.IsolatedAsyncioTestCase):
    async def test_calls_that_tools_make_never_wait_for_the_seats_of_those_that_wait_for_them(self):
        folder = scratch(self)
        outer = "import hostler\n\n\ndef outer(n: int) -> int:\n    return hostler.call('b.inner', n=n)\n"
        write_tool(folder / "tools", "a", outer, header="")
        write_tool(folder / "tools", "b", "def inner(n: int) -> int:\n    return n + 1\n", header="")
        for settings in ("[limits]\nmax_workers = 1\n", "[limits]\nmax_workers = 4\n[tool.a]\nmax_workers = 4\n",
                         '[limits]\nmax_memory = "16MB"\n', "[limits]\nmax_concurrent_calls = 1\n"):
            with self.subTest(settings):
                config = config_file(folder, settings)
                async with connected(folder / "tools", config=config) as hostler:
                    calls = [hostler.value("a_outer", n=number) for number in range(7)]
                    self.assertEqual(await asyncio.wait_for(asyncio.gather(*calls), 30), list(range(1, 8)))


    async def test_a_call_that_waits_for_a_file_is_no_cycle_where_that_may_have_more_workers(self):
        folder = scratch(self)
        a = ("import hostler, pathlib, time\n\n\ndef wait_at(gate: str) -> None:\n    pathlib.Path(gate + '.begun').touch()\n"
             "    while not pathlib.Path(gate).exists():\n        time.sleep(0.005)\n\n\ndef outer() -> int:\n    return hostler.call('b.inner')\n")
        b = "import hostler\n\n\ndef inner() -> int:\n    return 7\n\n\ndef other(gate: str) -> None:\n    return hostler.call('a.wait_at', gate=gate)\n"
        write_tool(folder / "tools", "a", a, header="")
        write_tool(folder / "tools", "b", b, header="")
        config = config_file(folder, "[tool]\nmax_workers = 4\n")
        async with connected(folder / "tools", config=config) as hostler:
            gate = folder / "gate"
            other = asyncio.ensure_future(hostler.call("b_other", gate=str(gate)))
            await eventually_async((folder / "gate.begun").exists, "it waits for the other file")
            self.assertEqual(await hostler.value("a_outer"), 7)
            gate.touch()
            self.assertFalse((await other).failed)


    async def test_files_that_wait_for_each_other_with_all_they_have_are_told_so(self):
        body = """
import asyncio, hostler, pathlib, time


def meet(name, all):
    pathlib.Path(all, name).touch()
    while len(list(pathlib.Path(all).iterdir())) < 4:
        time.sleep(0.002)


def plain(name: str, all: str) -> str:
    meet(name, all)
    return hostler.call("OTHER.leaf")


async def later(name: str, all: str) -> str:
    await asyncio.to_thread(meet, name, all)
    return hostler.call("OTHER.leaf_later")


def leaf() -> str:
    return "leaf"


async def leaf_later() -> str:
    return "leaf"
"""
        tools = scratch(self)
        for name, other in (("f", "g"), ("g", "f")):
            write_tool(tools, name, body.replace("OTHER", other), header="")
        for kind, settings in (("plain", "concurrency = 2"), ("plain", "max_workers = 2"), ("later", "concurrency = 2")):
            with self.subTest(kind, settings=settings):
                all, config = scratch(self), config_file(scratch(self), f'[tool]\n{settings}\ntimeout = "20s"\n')
                async with connected(tools, config=config) as hostler:
                    calls = [hostler.call(f"{file}_{kind}", name=file + str(n), all=str(all)) for file in "fg" for n in range(2)]
                    answers = await asyncio.wait_for(asyncio.gather(*calls), 15)
                    well = [answer.value for answer in answers if not answer.failed]
                    told = [answer.message for answer in answers if answer.failed]
                    self.assertEqual(set(well), {"leaf"}, "whoever is not refused gets what it waits for")
                    # The last one to wait is one too many. A file whose loop is held up may lose its other call as well.
                    self.assertIn(len(told), (1,) if kind == "plain" else (1, 2))
                    for message in told:
                        self.assertIn("so this call would never start", message)
                    for file in "fg":
                        value = await hostler.value(f"{file}_{kind}", name="later", all=str(all))
                        self.assertEqual(value, "leaf", "what is over holds up nobody")


class Caps(unittest.IsolatedAsyncioTestCase):
    async def test_five_of_eight_run_and_the_sixth_begins_when_the_first_ends(self):
        for limit in ("max_concurrent_calls", "max_workers"):
            with self.subTest(limit):
                folder = scratch(self)
                for number in range(8):
                    write_tool(folder / "tools", f"t{number}", WAITS)
                config = config_file(folder, f"[limits]\n{limit} = 5\n")
                async with connected(folder / "tools", config=config) as hostler:
                    gates = [folder / f"gate-{number}" for number in range(8)]
                    begun = [await hostler.start(f"t{number}_wait_at", gate=str(gates[number])) for number in range(5)]
                    late = [asyncio.ensure_future(hostler.start(f"t{number}_wait_at", gate=str(gates[number]))) for number in range(5, 8)]
                    done, _ = await asyncio.wait(late, timeout=1)
                    self.assertEqual(done, set(), "five are all there may be")
                    gates[0].touch()
                    await begun[0][0]
                    sixth, waiting = await asyncio.wait(late, timeout=60, return_when=asyncio.FIRST_COMPLETED)
                    self.assertEqual((len(sixth), len(waiting)), (1, 2))
                    for gate in gates:
                        gate.touch()
                    tasks = [task for task, _ in begun] + [(await one)[0] for one in late]
                    self.assertEqual([(await task).failed for task in tasks], [False] * 8)

    async def test_tools_that_can_run_nothing_do_not_take_each_others_workers(self):
        folder = scratch(self)
        for number in range(6):
            write_tool(folder / "tools", f"t{number}", WAITS)
        config = config_file(folder, "[limits]\nmax_workers = 4\nmax_concurrent_calls = 2\n")
        async with connected(folder / "tools", config=config, verbose=True) as hostler:
            gate = folder / "gate"
            begun = [await hostler.start(f"t{number}_wait_at", gate=str(gate)) for number in range(2)]
            waiting = [asyncio.ensure_future(hostler.call(f"t{number}_pid")) for number in range(2, 6)]
            await asyncio.sleep(1)
            self.assertLess(hostler.said().count("starting a worker"), 6)
            gate.touch()
            self.assertEqual([(await task).failed for task, _ in begun] + [(await task).failed for task in waiting], [False] * 6)

    async def test_the_worker_that_was_idle_longest_makes_room(self):
        folder = scratch(self)
        for name in ("a", "b", "c"):
            write_tool(folder / "tools", name, WAITS)
        config = config_file(folder, "[limits]\nmax_workers = 2\n")
        async with connected(folder / "tools", config=config, verbose=True) as hostler:
            first, second = await hostler.value("a_pid"), await hostler.value("b_pid")
            self.assertEqual(await hostler.value("a_pid"), first)
            third = await hostler.value("c_pid")
            self.assertEqual((alive(first), alive(second), alive(third)), (True, False, True))
            for reason in ("the limit is reached", "evicted for a worker of another tool"):
                self.assertIn(reason, hostler.said())

    async def test_the_largest_idle_worker_leaves_when_all_hold_too_much(self):
        folder = scratch(self)
        body = WAITS + "\n\nheld = []\n\n\ndef hold(megabytes: int) -> int:\n    held.append(b'x' * (megabytes << 20))\n    return os.getpid()\n"
        for name in ("small", "large"):
            write_tool(folder / "tools", name, body)
        config = config_file(folder, '[limits]\nmax_memory = "150MB"\n')
        async with connected(folder / "tools", config=config) as hostler:
            small = await hostler.value("small_hold", megabytes=1)
            large = await hostler.value("large_hold", megabytes=200)
            await eventually_async(gone(large), "the large one has left")
            self.assertTrue(alive(small))


class Replacement(unittest.IsolatedAsyncioTestCase):
    async def test_a_worker_that_made_its_calls_is_replaced_and_nobody_waits_for_that(self):
        folder = scratch(self)
        write_tool(folder / "tools", "many", WAITS, header("max_calls = 3"))
        async with connected(folder / "tools", verbose=True) as hostler:
            first = await hostler.call("many_pid")
            seen, colds = {first.worker}, 0

            async def another():
                nonlocal colds
                answer = await hostler.call("many_pid")
                colds += answer.metadata["start_ms"] > 0
                seen.add(answer.worker)

            for _ in range(3):
                before = len(seen)
                while len(seen) == before:
                    await another()
            self.assertEqual(colds, 0, "the successor was ready each time")
            await eventually_async(gone(first.worker), "the first has left")
            for reason in ("reached max_calls", "its predecessor is about to stop"):
                self.assertIn(reason, hostler.said())

    async def test_a_worker_that_leaks_is_replaced(self):
        folder = scratch(self)
        body = WAITS + "\n\nheld = []\n\n\ndef leak() -> int:\n    held.append(b'x' * (60 << 20))\n    return os.getpid()\n"
        write_tool(folder / "tools", "many", body, header('max_rss = "50MB"'))
        async with connected(folder / "tools", verbose=True) as hostler:
            worker = await hostler.value("many_leak")
            await eventually_async(gone(worker), "it has left")
            self.assertIn("exceeded max_rss", hostler.said())


class Deaths(unittest.IsolatedAsyncioTestCase):
    async def test_a_call_that_does_no_harm_is_made_once_more(self):
        for effects, code, attempt in (("pure", None, 2), ("idempotent", None, 2), ("once", "TOOL_CRASHED", 1)):
            with self.subTest(effects):
                folder = scratch(self)
                write_tool(folder / "tools", "dies", DIES, header(f'effects = "{effects}"'))
                async with connected(folder / "tools") as hostler:
                    answer = await hostler.call("dies_once", mark=str(folder / "mark"))
                    self.assertEqual((answer.code, answer.metadata["attempt"]), (code, attempt), answer.text)
                    twice = await hostler.call("dies_always")
                    self.assertEqual((twice.code, twice.metadata["attempt"]), ("TOOL_CRASHED", attempt))

    async def test_after_five_deaths_calls_are_refused_until_one_is_answered(self):
        folder = scratch(self)
        write_tool(folder / "tools", "dies", DIES)
        async with connected(folder / "tools", verbose=True) as hostler:
            for _ in range(5):
                answer = await hostler.call("dies_always")
                self.assertIsNotNone(answer.worker)
            refused = await hostler.call("dies_always")
            self.assertEqual((refused.code, refused.worker), ("TOOL_CRASHED", None))
            self.assertIn("its worker died 5 times in a row", refused.message)
            self.assertIn("exited with code 3", refused.message)
            wait = refused.details["retry_after_ms"]
            self.assertTrue(0 < wait <= 1000, wait)
            await asyncio.sleep(wait / 1000)
            self.assertFalse((await hostler.call("dies_well")).failed)
            again = await hostler.call("dies_always")
            self.assertIsNotNone(again.worker, "the row has ended")
            for words in ("the next start is delayed", "calls are refused for a while", "trying one call", "calls are answered again"):
                self.assertIn(words, hostler.said())


    async def test_workers_that_die_between_calls_are_told_with_how_they_ended(self):
        folder = scratch(self)
        dies = "import os, threading\n\nthreading.Timer(0.05, os._exit, (4,)).start()\n\n\ndef one() -> int:\n    return 1\n"
        write_tool(folder / "tools", "fades", dies)
        config = config_file(folder, "[tool.fades]\nmin_workers = 1\n")
        async with connected(folder / "tools", config=config) as hostler:
            await hostler.tools()
            # Nobody calls before: an answer would end the row.
            await eventually_async(lambda: "calls are refused for a while" in hostler.said(), "five have died")
            answer = await hostler.call("fades_one")
            self.assertIn("its worker died 5 times in a row", answer.message)
            self.assertIn("Last death: it exited between two calls, with exit status 4", answer.message)


def share_of_text(pid):
    """How much of its program's text a process has in memory, between 0 and 1."""
    program = os.readlink(f"/proc/{pid}/exe")
    text = Path(f"/proc/{pid}/smaps").read_text()
    found = re.search(rf" r-xp .* {re.escape(program)}\nSize: +(\d+) kB\n(?:.*\n)*?Rss: +(\d+) kB", text)
    return int(found[2]) / int(found[1])


class Operator(unittest.TestCase):
    @contextlib.contextmanager
    def after_a_call(self):
        folder = scratch(self)
        write_tool(folder / "tools", "many", WAITS)
        with Wire(folder / "tools") as wire:
            wire.open()
            yield wire, wire.value(1, "many_pid")

    @unittest.skipUnless(Path("/proc/self/status").exists(), "memory is released on Linux only")
    def test_program_text_is_released_after_a_call_and_the_next_is_answered(self):
        with self.after_a_call() as (wire, worker):
            # Not compared with before: a slow start has its release before the call ends.
            eventually(lambda: share_of_text(wire.supervisor) < 0.4, "most of it is released")
            wire.send(call(2, "many_pid"))
            self.assertEqual(wire.answer(2)["result"]["structuredContent"]["result"], worker)

    def test_usr1_shows_how_everything_stands(self):
        with self.after_a_call() as (wire, worker):
            os.kill(wire.process.pid, signal.SIGUSR1)
            told = b""
            while str(worker).encode() not in told:
                told += os.read(wire.process.stderr.fileno(), 65536)
            text = told.decode()
            self.assertIn("workers 1 of 32", text)
            if not shared_mode.IS_ON:  # there it is the status of all
                self.assertRegex(text, rf"worker +idle +{worker} +\d+ s +1 .*MB")


if __name__ == "__main__":
    unittest.main()
