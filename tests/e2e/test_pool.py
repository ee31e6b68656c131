"""The pool as its callers see it: warm workers, many calls at once, limits, cancellation, changed files."""

import asyncio
import unittest
from pathlib import Path

from harness import Gate, alive, config_file, connected, eventually_async, gone, scratch, write_tool


class Warm(unittest.IsolatedAsyncioTestCase):
    async def test_one_worker_serves_call_after_call(self):
        async with connected() as hostler:
            answers = [await hostler.call("slow_echo", number=number) for number in range(20)]
        self.assertEqual({answer.value["pid"] for answer in answers}, {answers[0].worker})
        self.assertEqual([answer.metadata["cold"] for answer in answers], [True] + [False] * 19)

    async def test_64_calls_at_once_are_answered_each_with_its_own(self):
        async with connected() as hostler:
            answers = await asyncio.gather(*(hostler.call("slow_echo", number=number) for number in range(64)))
            self.assertEqual([answer.value["number"] for answer in answers], list(range(64)))
            self.assertEqual(len({answer.worker for answer in answers}), 1)

    async def test_an_idle_worker_leaves_and_the_next_call_starts_another(self):
        config = config_file(scratch(self), '[tool]\nidle_timeout = "1s"\n')
        async with connected(config=config) as hostler:
            first = await hostler.call("slow_echo", number=1)
            await eventually_async(gone(first.worker), "the idle worker has left")
            second = await hostler.call("slow_echo", number=2)
            self.assertEqual(second.value["number"], 2)
            self.assertNotEqual(first.worker, second.worker)
            self.assertTrue(second.metadata["cold"])

    async def test_a_worker_that_is_kept_stays(self):
        config = config_file(scratch(self), '[tool]\nidle_timeout = "100ms"\n[tool.slow]\nidle_timeout = "never"\n')
        async with connected(config=config) as hostler:
            first = await hostler.call("slow_echo", number=1)
            other = await hostler.call("peek_path")  # another pool's worker comes and goes meanwhile
            await eventually_async(gone(other.worker), "the idle worker has left")
            second = await hostler.call("slow_echo", number=2)
            self.assertEqual((second.worker, second.metadata["cold"]), (first.worker, False))

    async def test_a_worker_that_works_is_not_idle(self):
        gate = Gate(scratch(self))
        config = config_file(gate.path.parent, '[tool]\nidle_timeout = "200ms"\n')
        async with connected(config=config) as hostler:
            task, worker = await hostler.start("slow_wait_at", gate=str(gate.path))
            other = await hostler.call("peek_path")  # another pool's worker comes and goes meanwhile
            await eventually_async(gone(other.worker), "the idle worker has left")
            self.assertTrue(alive(worker))
            gate.open()
            self.assertEqual((await task).value, {"pid": worker})


class Limits(unittest.IsolatedAsyncioTestCase):
    async def test_a_worker_that_left_its_group_is_stopped_all_the_same(self):
        folder = scratch(self)
        config = config_file(folder, '[tool.hostile]\ntimeout = "500ms"\n')
        async with connected(config=config) as hostler:
            answer = await hostler.call("hostile_flees", file=str(folder / "pid"))
            self.assertEqual(answer.code, "TOOL_TIMEOUT", answer.text)
            worker = int((folder / "pid").read_text())
            self.assertEqual(answer.worker, worker)
            await eventually_async(gone(worker), "the worker is dead", limit=5)

    async def test_a_full_queue_says_when_to_come_again(self):
        folder = scratch(self)
        gate = Gate(folder)
        config = config_file(folder, "[tool.slow]\nmax_queue = 2\n")
        async with connected(config=config) as hostler:
            holding, _ = await hostler.start("slow_wait_at", gate=str(gate.path))
            # Seven are written ahead to the worker, two wait, three are too many.
            calls = [asyncio.ensure_future(hostler.call("slow_echo", number=number)) for number in range(12)]
            refused = []
            for call in asyncio.as_completed(calls):
                answer = await call
                self.assertEqual(answer.code, "BUSY", answer.text)
                self.assertIn("`max_queue`", answer.message)
                self.assertIn(f"try again in {answer.details['retry_after_ms']} ms", answer.message)
                self.assertTrue(answer.error["retryable"])
                refused.append(answer)
                if len(refused) == 3:
                    break
            gate.open()
            self.assertFalse((await holding).failed)
            answers = await asyncio.gather(*calls)
            served = [number for number, answer in enumerate(answers) if not answer.failed]
            self.assertEqual(served, list(range(9)))
            self.assertEqual((await hostler.value("slow_echo", number=99))["number"], 99)


def ticks(pid):
    """How long a process has computed, in hundredths of a second."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


class Cancellation(unittest.IsolatedAsyncioTestCase):
    async def test_a_running_call_makes_room_at_once(self):
        for tool in ("slow_nap", "slow_nap_async"):
            for mode in ("auto", "legacy"):
                with self.subTest(tool=tool, mode=mode):
                    async with connected(mode=mode) as hostler:
                        task, worker = await hostler.start(tool, seconds=600)
                        task.cancel()
                        after = await hostler.call("slow_echo", number=1)
                        self.assertEqual((after.value["number"], after.worker), (1, worker))
                        self.assertLess(after.metadata["queue_ms"], 2000)

    async def test_a_running_call_that_will_not_stop_is_stopped(self):
        async with connected() as hostler:
            task, worker = await hostler.start("hostile_loops_in_c")
            begun = ticks(worker)
            await eventually_async(lambda: ticks(worker) > begun + 5, "it goes round in C, and Python sees no signal")
            behind = asyncio.ensure_future(hostler.call("hostile_well", number=2))
            await hostler.call("peek_path")  # answered by another pool: what was sent before it has arrived
            task.cancel()
            after = await behind
            self.assertEqual(after.value, 2)
            self.assertNotEqual(after.worker, worker)
            await eventually_async(gone(worker), "the stuck worker is dead", limit=2)

    async def test_a_queued_call_is_never_begun(self):
        folder = scratch(self)
        gate = Gate(folder)
        async with connected() as hostler:
            holding, worker = await hostler.start("slow_wait_at", gate=str(gate.path))
            traces = [folder / f"trace-{number}" for number in range(12)]  # some in the worker's line, some in the queue
            waiting = [asyncio.ensure_future(hostler.call("slow_leave_trace", path=str(path))) for path in traces]
            kept = asyncio.ensure_future(hostler.call("slow_leave_trace", path=str(folder / "kept")))
            await hostler.call("peek_path")  # answered by another pool: what was sent before it has arrived
            for call in waiting:
                call.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await hostler.call("peek_path")
            gate.open()
            self.assertEqual((await holding).worker, worker)
            self.assertEqual((await kept).value, str(folder / "kept"))
            self.assertEqual([path.name for path in folder.iterdir() if path.name.startswith("trace")], [])


VERSION = """
import os

import hostler

def version() -> int:
    return {number}

def hold(gate: str) -> int:
    hostler.progress(1, message=f"began {{os.getpid()}}")
    open(gate).read()
    return version()
"""


class Changes(unittest.IsolatedAsyncioTestCase):
    async def test_a_changed_file_is_served_and_calls_in_flight_end_on_the_old_one(self):
        folder = scratch(self)
        gate, tools = Gate(folder), folder / "tools"
        write_tool(tools, "engine", VERSION.format(number=1))
        async with connected(tools) as hostler:
            old, worker = await hostler.start("engine_hold", gate=str(gate.path))
            write_tool(tools, "engine", VERSION.format(number=2))
            new = await hostler.call("engine_version")
            self.assertEqual(new.value, 2)
            self.assertNotEqual(new.worker, worker)
            self.assertTrue(alive(worker))
            gate.open()
            ended = await old
            self.assertEqual((ended.value, ended.worker), (1, worker))
            await eventually_async(gone(worker), "the old version's worker has left")
            again = await hostler.call("engine_version")
            self.assertEqual((again.value, again.worker), (2, new.worker))

    async def test_files_that_come_and_go(self):
        tools = scratch(self) / "tools"
        path = write_tool(tools, "engine", VERSION.format(number=1))
        async with connected(tools) as hostler:
            self.assertEqual(set(await hostler.tools()), {"engine_version", "engine_hold"})
            write_tool(tools, "tender", VERSION.format(number=5))
            self.assertEqual(await hostler.value("tender_version"), 5)
            path.unlink()
            self.assertEqual(set(await hostler.tools()), {"tender_version", "tender_hold"})

    async def test_a_helper_that_changed_is_a_change(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "helper", "NUMBER = 1\n", header="")
        write_tool(tools, "engine", "from helper import NUMBER\n\ndef version() -> int:\n    return NUMBER\n")
        async with connected(tools) as hostler:
            self.assertEqual(await hostler.value("engine_version"), 1)
            self.assertEqual(set(await hostler.tools()), {"engine_version"}, "a helper is no tool")
            # Another length: Python takes a cached helper for current by its size and the second of its change.
            write_tool(tools, "helper", "NUMBER = 22\n", header="")
            self.assertEqual(await hostler.value("engine_version"), 22)


if __name__ == "__main__":
    unittest.main()
