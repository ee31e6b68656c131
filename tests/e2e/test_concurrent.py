"""`concurrency`: several calls at once in one worker, async ones on a loop and others in threads, each with what is its own."""

import asyncio
import os
import unittest

from harness import Progress, alive, config_file, connected, environment, eventually_async, gone, scratch, write_tool

KINDS = ("", "_later")  # a function in a thread, and an async one
SECRET = "sesame-open-up"
ENV = {"E2E_SECRET": SECRET}
CONFIG = '[tool.together]\nconfig = { word = "shared" }\n'


class Together(unittest.IsolatedAsyncioTestCase):
    async def test_all_begin_before_one_ends_in_one_process(self):
        for kind in KINDS:
            with self.subTest(kind):
                gate = scratch(self) / "gate"
                async with connected() as hostler:
                    begun = [await hostler.start("together_wait_at" + kind, gate=str(gate)) for _ in range(8)]
                    self.assertEqual(len({pid for _, pid in begun}), 1)
                    gate.touch()
                    self.assertEqual([(await task).value for task, _ in begun], [pid for _, pid in begun])

    async def test_both_kinds_side_by_side_and_no_more_than_allowed(self):
        folder = scratch(self)
        gate = folder / "gate"
        config = config_file(folder, "[tool.together]\nconcurrency = 3\n")
        async with connected(config=config) as hostler:
            begun = [await hostler.start("together_wait_at" + KINDS[n % 2], gate=str(gate)) for n in range(3)]
            fourth = asyncio.ensure_future(hostler.start("together_wait_at_later", gate=str(gate)))
            done, _ = await asyncio.wait({fourth}, timeout=0.5)
            self.assertEqual(done, set(), "three are all there may be")
            gate.touch()
            pids = {(await task).value for task, _ in begun} | {(await (await fourth)[0]).value}
            self.assertEqual(len(pids), 1)

    async def test_not_a_word_of_another_call(self):
        config = config_file(scratch(self), CONFIG)
        async with connected(config=config, env=environment(**ENV)) as hostler:
            turns = asyncio.Semaphore(16)

            async def one(n):
                mark, progress = f"m{n}m", Progress()
                async with turns:
                    answer = await hostler.call("together_speak" + KINDS[n % 2], mark=mark, progress=progress)
                notes = [message for _, _, message in progress.notes if message.startswith("m")]
                return answer.value == [mark, len(SECRET), "shared"], answer.output == f"[{mark}]\n<{mark}>\n", notes == [mark], answer

            await hostler.call("together_add", a=1, b=2)
            for right in await asyncio.gather(*(one(n) for n in range(400))):
                self.assertEqual(right[:3], (True, True, True), (right[3].outcome, right[3].output))

    async def test_log_lines_go_to_the_callers_of_their_calls(self):
        config = config_file(scratch(self), CONFIG)
        async with connected(config=config, env=environment(**ENV), verbose=True) as hostler:
            answers = await asyncio.gather(*(hostler.call("together_speak" + KINDS[n % 2], mark=f"mark{n}x") for n in range(60)))
            calls = {f"mark{n}x": answer.outcome["call_id"] for n, answer in enumerate(answers)}
            said = [line for line in hostler.stderr().splitlines() if "call=" in line and "mark" in line and "fields=" in line]
            found = {mark: line for line in said for mark in calls if mark in line}
            self.assertEqual(set(found), set(calls))
            for mark, line in found.items():
                self.assertIn(calls[mark], line.split("fields=")[0], "its own, and not as the tool wrote it")

    async def test_faults_are_those_of_their_calls(self):
        async with connected() as hostler:
            names = [("fails" + KINDS[n % 2], f"m{n}m") for n in range(100)]
            answers = await asyncio.gather(*(hostler.call("together_" + name, mark=mark) for name, mark in names))
            for (name, mark), answer in zip(names, answers):
                self.assertEqual(answer.code, "TOOL_ERROR")
                self.assertRegex(answer.message, rf"^ValueError: {mark} \(together.py:\d+ in fails")
                frames = [line for line in answer.details["traceback"].splitlines() if " in " in line]
                self.assertEqual([line.split(" in ")[1] for line in frames], [name])

    async def test_what_goes_past_python_belongs_to_no_call(self):
        """A call that has ended may have written it. With one call at a time it belongs to that call, see test_mistakes."""
        async with connected(verbose=True) as hostler:
            self.assertEqual((await hostler.call("together_whispers")).output, "")
            await eventually_async(lambda: "from a child" in hostler.said(), "the log has it")


class Ends(unittest.IsolatedAsyncioTestCase):
    async def test_one_is_cancelled_and_the_others_go_on(self):
        for name in ("sleeps_later", "loops"):
            with self.subTest(name):
                gate = scratch(self) / "gate"
                async with connected() as hostler:
                    others = [await hostler.start("together_wait_at" + kind, gate=str(gate)) for kind in KINDS]
                    task, worker = await hostler.start("together_" + name)
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    self.assertEqual(await hostler.value("together_add", a=1, b=2), 3)
                    gate.touch()
                    self.assertEqual([(await other).value for other, _ in others], [worker, worker])
                    self.assertEqual((await hostler.call("together_add", a=1, b=2)).worker, worker)

    async def test_time_is_over_and_the_worker_lives(self):
        folder = scratch(self)
        config = config_file(folder, '[tool."together.sleeps_later"]\ntimeout = "300ms"\n[tool."together.loops"]\ntimeout = "300ms"\n')
        gate = folder / "gate"
        async with connected(config=config) as hostler:
            other, worker = await hostler.start("together_wait_at", gate=str(gate))
            for name in ("sleeps_later", "loops"):
                answer = await hostler.call("together_" + name)
                self.assertEqual((answer.code, answer.worker), ("TOOL_TIMEOUT", worker), answer.text)
                self.assertIn("it was interrupted at together.py:", answer.message)
                self.assertIn(f"in {name}", answer.message)
            gate.touch()
            self.assertEqual((await other).value, worker)
            self.assertEqual((await hostler.call("together_add", a=1, b=2)).worker, worker)

    async def test_one_in_a_system_call_costs_the_worker_when_the_others_have_ended(self):
        folder = scratch(self)
        config = config_file(folder, '[tool."together.sleeps"]\ntimeout = "300ms"\n')
        gate = folder / "gate"
        async with connected(config=config) as hostler:
            others = [await hostler.start("together_wait_at" + kind, gate=str(gate)) for kind in KINDS]
            worker = others[0][1]
            stuck = await hostler.call("together_sleeps")
            self.assertEqual((stuck.code, stuck.worker), ("TOOL_TIMEOUT", worker), stuck.text)
            self.assertLess(stuck.outcome["latency_ms"], 300 + 1000 + stuck.metadata["start_ms"])
            self.assertIn("in sleeps", stuck.message)
            self.assertTrue(alive(worker), "the others are still at it")
            fresh = await hostler.call("together_add", a=1, b=2)
            self.assertNotEqual(fresh.worker, worker)
            gate.touch()
            self.assertEqual([(await other).value for other, _ in others], [worker, worker])
            await eventually_async(gone(worker), "the worker with the stuck call is gone")
            self.assertEqual((await hostler.call("together_add", a=1, b=2)).worker, fresh.worker)

    async def test_a_death_answers_all_calls(self):
        gate = scratch(self) / "gate"
        async with connected() as hostler:
            others = [await hostler.start("together_wait_at" + kind, gate=str(gate)) for kind in KINDS * 2]
            answer = await hostler.call("together_dies")
            answers = [answer] + [await task for task, _ in others]
            self.assertEqual([one.code for one in answers], ["TOOL_CRASHED"] * 5)
            self.assertNotEqual((await hostler.call("together_add", a=1, b=2)).worker, others[0][1])


ASKS = '''
import asyncio
import hostler


def ask(n: int) -> list:
    return [n, hostler.call("answers.double", n=n)]


async def ask_later(n: int) -> list:
    return [n, hostler.call("answers.double", n=n)]


async def ask_elsewhere(n: int) -> list:
    return [n, await asyncio.to_thread(hostler.call, "answers.double", n=n)]


async def names() -> list:
    return sorted(tool["name"] for tool in await asyncio.to_thread(hostler.tools))
'''

ANSWERS = '''
import hostler


def double(n: int) -> int:
    return hostler.call("deep.twice", n=n)
'''

DEEP = '''
async def twice(n: int) -> int:
    return 2 * n
'''


class Asked(unittest.IsolatedAsyncioTestCase):
    async def test_calls_within_calls(self):
        folder = scratch(self)
        for name, text in (("asks", ASKS), ("answers", ANSWERS), ("deep", DEEP)):
            write_tool(folder / "tools", name, text, header="")
        config = config_file(folder, "[tool]\nconcurrency = 6\n")
        async with connected(folder / "tools", config=config) as hostler:
            kinds = ("", "_later", "_elsewhere")
            answers = await asyncio.gather(*(hostler.call("asks_ask" + kinds[n % 3], n=n) for n in range(150)))
            self.assertEqual([answer.value for answer in answers], [[n, 2 * n] for n in range(150)])
            self.assertEqual(len({answer.worker for answer in answers}), 1)
            self.assertIn("deep.twice", await hostler.value("asks_names"))
