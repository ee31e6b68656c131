"""Several calls in one worker, of which one behaves badly: what becomes of those beside it."""

import asyncio
import unittest

from harness import config_file, connected, eventually_async, scratch, write_tool


class Beside(unittest.IsolatedAsyncioTestCase):
    def settings(self, text):
        return config_file(scratch(self), text)

    async def neighbours(self, hostler, *names):
        """Calls that wait until their gate opens, and the worker they are in."""
        gate = scratch(self) / "gate"
        begun = [await hostler.start(f"rude_{name}", gate=str(gate)) for name in names or ("wait_at", "wait_at_later")]
        (pid,) = {pid for _, pid in begun}

        async def unharmed(lives=True):
            gate.touch()
            self.assertEqual([(await task).value for task, _ in begun], [pid] * len(begun))
            self.assertEqual((await hostler.call("rude_wait_at", gate=str(gate))).value == pid, lives, "the worker lives")

        return unharmed, [task for task, _ in begun]

    async def test_whoever_asks_to_exit_or_stops_the_loop_ends_nobody_else(self):
        async with connected() as hostler:
            for tool, code in (("exits_in_a_task", "TOOL_ERROR"), ("exits_afterwards", None), ("stops_the_loop", None),
                               ("interrupts", None)):
                with self.subTest(tool):
                    unharmed, _ = await self.neighbours(hostler)
                    answer = await hostler.call(f"rude_{tool}")
                    self.assertEqual(answer.code, code, answer.text)
                    await unharmed()

    async def test_a_thread_that_speaks_on_costs_no_answer(self):
        async with connected() as hostler:
            for _ in range(60):
                self.assertEqual((await hostler.call("rude_speaks_on")).value, "spoke")

    async def test_destructors_may_print_at_any_moment(self):
        async with connected(config=self.settings('[tool.rude]\ntimeout = "20s"\n')) as hostler:
            for tool in ("mourns", "mourns_later"):
                unharmed, _ = await self.neighbours(hostler)
                answer = await hostler.call(f"rude_{tool}", lines=100)
                self.assertEqual(answer.value, "mourned")
                self.assertIn("gone", answer.output)
                self.assertEqual(sum(line.startswith("line ") for line in answer.output.splitlines()), 100)
                await unharmed()

    async def test_a_time_limit_beside_those_that_work(self):
        config = self.settings('[tool."rude.waits"]\ntimeout = "100ms"\n[tool."rude.sleeps"]\ntimeout = "100ms"\n')
        async with connected(config=config, verbose=True) as hostler:
            unharmed, _ = await self.neighbours(hostler, "works_until", "works_until", "wait_at_later")
            for _ in range(12):
                self.assertEqual((await hostler.call("rude_waits")).code, "TOOL_TIMEOUT")
            await unharmed()

    async def test_a_time_limit_says_where_the_call_was_and_not_the_others(self):
        config = self.settings('[tool."rude.sleeps"]\ntimeout = "200ms"\n')
        async with connected(config=config) as hostler:
            end, tasks = await self.neighbours(hostler, "works_until")
            answer = await hostler.call("rude_sleeps")
            self.assertIn("stopped at rude.py:", answer.message)
            self.assertIn("in sleeps", answer.message)
            self.assertFalse(tasks[0].done())
            await end(lives=False)

    async def test_of_two_past_their_time_limits_none_is_told_the_others_place(self):
        folder = scratch(self)
        naps = "import time\n\n\ndef first() -> None:\n    time.sleep(600)\n\n\ndef second() -> None:\n    time.sleep(600)\n"
        write_tool(folder / "tools", "naps", naps)
        config = self.settings('[tool.naps]\nconcurrency = 2\ntimeout = "300ms"\n[tool."naps.first"]\ntimeout = "200ms"\n')
        async with connected(folder / "tools", config=config) as hostler:
            first, second = await asyncio.gather(hostler.call("naps_first"), hostler.call("naps_second"))
            self.assertEqual((first.code, second.code), ("TOOL_TIMEOUT", "TOOL_TIMEOUT"))
            self.assertNotIn("in second", first.message)
            self.assertRegex(second.message, r"stopped at naps.py:\d+ in second")

    async def test_a_step_that_holds_up_the_loop_is_broken_off(self):
        config = self.settings('[tool."rude.blocks"]\ntimeout = "300ms"\n')
        async with connected(config=config) as hostler:
            unharmed, _ = await self.neighbours(hostler)
            answer = await hostler.call("rude_blocks")
            self.assertEqual(answer.code, "TOOL_TIMEOUT")
            self.assertIn("it was interrupted at rude.py:", answer.message)
            await unharmed()

    async def test_those_beside_one_that_holds_the_interpreter_wait_no_longer_than_it_takes_to_be_sure(self):
        config = self.settings('[tool."rude.matches"]\ntimeout = "300ms"\n[tool."rude.works_until"]\neffects = "pure"\n')
        async with connected(config=config) as hostler:
            gate = scratch(self) / "gate"
            beside = [await hostler.start(f"rude_{name}", gate=str(gate)) for name in ("wait_at", "works_until")]
            answer = await hostler.call("rude_matches")
            self.assertEqual(answer.code, "TOOL_TIMEOUT")
            self.assertIn("stopped at rude.py:", answer.message)
            told = await asyncio.wait_for(beside[0][0], 10)
            self.assertEqual(told.code, "TOOL_CRASHED")
            self.assertIn("another call in it ignored the interruption", told.message)
            gate.touch()
            again = await beside[1][0]
            self.assertNotEqual(again.value, beside[1][1], "what does no harm is made again")
            self.assertEqual(again.metadata["attempt"], 2)

    async def test_a_call_that_ends_its_worker_time_and_again_ends_its_neighbour_once(self):
        folder = scratch(self)
        here, begun, gate = (str(folder / name) for name in ("here", "begun", "gate"))
        body = """
import os, pathlib, time


def until(path):
    while not pathlib.Path(path).exists():
        time.sleep(0.005)


def ends(here: str, begun: str) -> None:
    pathlib.Path(here).touch()
    until(begun)
    os._exit(3)


def waits(begun: str, gate: str) -> int:
    pathlib.Path(begun).touch()
    until(gate)
    return os.getpid()
"""
        header = '# /// script\n# dependencies = []\n# [tool.hostler]\n# concurrency = 2\n# effects = "pure"\n# ///\n'
        write_tool(folder / "tools", "pair", body, header)
        async with connected(folder / "tools") as hostler:
            guilty = asyncio.ensure_future(hostler.call("pair_ends", here=here, begun=begun))
            await eventually_async((folder / "here").exists, "it has begun")
            innocent = asyncio.ensure_future(hostler.call("pair_waits", begun=begun, gate=gate))
            told = await guilty
            self.assertEqual((told.code, told.metadata["attempt"]), ("TOOL_CRASHED", 2))
            (folder / "gate").touch()
            answer = await innocent
            self.assertEqual((answer.code, answer.metadata["attempt"]), (None, 2), answer.text)

    async def test_a_call_that_obeys_nothing_holds_no_turn(self):
        text = '[limits]\nmax_concurrent_calls = 2\n[tool."rude.sleeps"]\ntimeout = "200ms"\n'
        async with connected(config=self.settings(text)) as hostler:
            end, tasks = await self.neighbours(hostler, "wait_at")
            self.assertEqual((await hostler.call("rude_sleeps")).code, "TOOL_TIMEOUT")
            self.assertEqual((await hostler.call("hostile_well", number=3)).value, 3)
            self.assertFalse(tasks[0].done(), "the neighbour is still at work")
            await end(lives=False)

    async def test_threads_of_cancelled_calls_hold_up_no_others(self):
        async with connected() as hostler:
            gate = scratch(self) / "gate"
            for _ in range(16):
                task, _ = await hostler.start("rude_in_a_thread", gate=str(gate))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            now = scratch(self) / "gate"
            now.touch()
            self.assertEqual((await hostler.call("rude_in_a_thread", gate=str(now))).value, "waited")
            gate.touch()

    async def test_what_nobody_said_is_nobodys(self):
        async with connected(verbose=True) as hostler:
            gate = scratch(self) / "gate"
            self.assertEqual((await hostler.call("rude_speaks_for_nobody", gate=str(gate))).value, "left")
            unharmed, (task,) = await self.neighbours(hostler, "wait_at")
            gate.touch()
            await eventually_async(gate.with_suffix(".said").exists, "it has spoken")
            await unharmed()
            answer = await task
            self.assertEqual(answer.output, "")
            (line,) = [line for line in hostler.said().splitlines() if "and this?" in line]
            self.assertNotIn(answer.outcome["call_id"], line)
