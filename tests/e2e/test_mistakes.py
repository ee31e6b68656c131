"""What bad tools and bad arguments get: the code, the words, and that the next call of the same tool file works."""

import asyncio
import os
import signal
import unittest

from harness import MCPError, config_file, connected, environment, eventually_async, gone, scratch, write_tool


class Mistakes(unittest.IsolatedAsyncioTestCase):
    async def fails(self, hostler, tool, code, *words, same_worker, **arguments):
        """The call fails as said; the next call of its file works, in the same worker or in a new one."""
        before = await hostler.call("hostile_well", number=1)
        answer = await hostler.call(tool, **arguments)
        self.assertEqual(answer.code, code, answer.text)
        self.assertEqual(answer.text, f"{code}: {answer.message}")
        for word in words:
            self.assertIn(word, answer.message)
        self.assertEqual(answer.outcome["success"], False)
        after = await hostler.call("hostile_well", number=2)
        self.assertEqual(after.value, 2)
        self.assertEqual(after.worker == before.worker, same_worker, (before.worker, after.worker))
        self.assertEqual(after.metadata["cold"], not same_worker)
        return answer

    async def test_an_exception(self):
        async with connected() as hostler:
            answer = await self.fails(hostler, "hostile_raises", "TOOL_ERROR", "ValueError: the boiler is cold", same_worker=True)
            self.assertEqual(answer.details["type"], "ValueError")
            self.assertIn('in raises\n    raise ValueError(text)', answer.details["traceback"])
            self.assertNotIn("hostler_worker", answer.details["traceback"])
            self.assertFalse(answer.error["retryable"])

    async def test_a_result_that_is_not_what_its_annotation_says(self):
        folder = scratch(self)
        write_tool(folder, "lies", "from typing import TypedDict\n\n\nclass Row(TypedDict):\n    n: int\n\n\n"
                   "def count() -> int:\n    return 'three'\n\n\ndef rows() -> list[Row]:\n    return [{'n': 1}, {'n': 'two'}]\n\n\n"
                   "def row() -> Row:\n    return {}\n\n\ndef many(size: int) -> list[str]:\n    return ['x' * 100] * size\n")
        words = {
            "lies.count": "the result of lies.count does not match its annotation: `result`: expected integer, got a string",
            "lies.rows": "`result[1].n`: expected integer",
            "lies.row": '`result`: missing "n"',
        }
        async with connected(folder) as hostler:
            for tool, said in words.items():
                answer = await hostler.call(tool)
                self.assertEqual(answer.code, "INVALID_OUTPUT", answer.text)
                self.assertIn(said, answer.message)
            self.assertEqual(len(await hostler.value("lies.many", size=20_000)), 20_000)
        config = config_file(folder, "[tool.lies]\nvalidate = false\n")
        async with connected(folder, config=config) as hostler:
            self.assertIsNone((await hostler.tools())["lies_count"].output_schema)
            self.assertEqual(await hostler.value("lies.count"), "three")

    async def test_a_polite_exit_is_an_exception(self):
        async with connected() as hostler:
            await self.fails(hostler, "hostile_asks_to_exit", "TOOL_ERROR", "asked to exit with status 3", same_worker=True)

    async def test_a_process_that_ends_itself(self):
        async with connected() as hostler:
            answer = await self.fails(
                hostler, "hostile_exits", "TOOL_CRASHED", "exited with code 3", "the next call starts a new worker", same_worker=False)
            self.assertEqual(answer.details["exit_code"], 3)
            answer = await self.fails(hostler, "hostile_exits", "TOOL_CRASHED", "exited with code 0", same_worker=False, status=0)
            # uv would report the same status for a signal.
            signalled = await self.fails(hostler, "hostile_exits", "TOOL_CRASHED", "exited with code 137", same_worker=False, status=137)
            self.assertEqual((signalled.details.get("exit_code"), signalled.details.get("signal")), (137, None))

    async def test_a_process_that_leaves_a_child_behind(self):
        told = scratch(self) / "pid"
        async with connected() as hostler:
            await self.fails(hostler, "hostile_abandons", "TOOL_CRASHED", "exited with code 3", same_worker=False, file=str(told))
            await eventually_async(gone(int(told.read_text())), "its child is gone")

    async def test_a_process_that_hangs_up(self):
        # Behind `uv run`, which holds the pipes as well, it cannot be told from one that is slow.
        config = config_file(scratch(self), '[tool]\nlauncher = "direct"\n')
        async with connected(config=config) as hostler:
            await self.fails(hostler, "hostile_hangs_up", "TOOL_CRASHED", "closed its connection", same_worker=False)

    async def test_a_process_that_crashes(self):
        async with connected() as hostler:
            answer = await self.fails(hostler, "hostile_segfaults", "TOOL_CRASHED", "crashed with SIGSEGV", same_worker=False)
            self.assertEqual(answer.details["signal"], "SIGSEGV")

    async def test_a_process_that_somebody_kills(self):
        async with connected() as hostler:
            for number, name in ((signal.SIGKILL, "SIGKILL"), (signal.SIGTERM, "SIGTERM")):
                task, worker = await hostler.start("hostile_waits")
                os.kill(worker, number)
                answer = await task
                self.assertEqual((answer.code, answer.details["signal"]), ("PROCESS_KILLED", name))
                self.assertIn(f"was killed with {name}", answer.message)
                self.assertTrue(answer.error["retryable"])
                after = await hostler.call("hostile_well")
                self.assertEqual(after.value, 1)
                self.assertNotEqual(after.worker, worker)

    async def test_calls_that_never_end(self):
        config = config_file(scratch(self), '[tool.hostile]\ntimeout = "400ms"\n')
        cases = {
            # tool: (the worker survives, where it was)
            "hostile_loops": (True, "in loops"),
            "hostile_waits": (True, "in waits"),
            "hostile_matches": (True, "in matches (inside re"),
            "hostile_loops_stubbornly": (False, "in loops_stubbornly"),
            "hostile_loops_in_c": (False, "in loops_in_c"),
        }
        for tool, (survives, place) in cases.items():
            with self.subTest(tool):
                async with connected(config=config) as hostler:
                    end = "it was interrupted at hostile.py:" if survives else "its worker was stopped at hostile.py:"
                    answer = await self.fails(
                        hostler, tool, "TOOL_TIMEOUT", f"{tool.replace('_', '.', 1)} did not answer in 400ms", end, place, "`timeout`",
                        same_worker=survives)
                    self.assertLess(answer.outcome["latency_ms"], 400 + 1000, "the caller is answered within a second")
                    self.assertRegex(answer.details["traceback"], rf'File ".*/hostile.py", line \d+, {place.split(" (")[0]}')
                    if not survives:
                        self.assertEqual(answer.details["signal"], "SIGKILL")
                        await eventually_async(gone(answer.worker), "the stuck worker is dead", limit=2)

    async def test_calls_behind_one_that_is_stopped_are_made_all_the_same(self):
        config = config_file(scratch(self), '[tool."hostile.loops_in_c"]\ntimeout = "300ms"\n')
        async with connected(config=config) as hostler:
            stuck = asyncio.ensure_future(hostler.call("hostile_loops_in_c"))
            behind = [asyncio.ensure_future(hostler.call("hostile_well", number=number)) for number in range(5)]
            self.assertEqual((await stuck).code, "TOOL_TIMEOUT")
            self.assertEqual([(await call).value for call in behind], list(range(5)))

    async def test_results_that_are_not_json(self):
        cases = {
            "hostile_not_a_number": "result.rows[1]: nan is not JSON",
            "hostile_a_range": "result.items[1].tags: range is not JSON",
            "hostile_an_object": "result.thing: object is not JSON",
            "hostile_itself": "result",
        }
        async with connected() as hostler:
            for tool, words in cases.items():
                with self.subTest(tool):
                    await self.fails(hostler, tool, "INVALID_OUTPUT", words, same_worker=True)

    async def test_arguments_that_do_not_fit(self):
        good = {"count": 1, "names": ["a"], "deep": {"x": 1}}
        cases = [
            ({**good, "count": "one"}, ["`count`: expected integer, got the string \"one\""]),
            ({**good, "names": ["a", 2]}, ["`names[1]`: expected string, got the number 2"]),
            ({**good, "deep": {"x": "y"}}, ["`deep.x`: expected integer"]),
            ({**good, "cuont": 1}, ["unknown argument `cuont`, did you mean `count`?"]),
            ({"count": 1}, ["missing argument `names` (array)", "missing argument `deep` (object)"]),
        ]
        async with connected() as hostler:
            for arguments, words in cases:
                with self.subTest(words):
                    answer = await hostler.call("hostile_wants", **arguments)
                    self.assertEqual(answer.code, "INVALID_PARAMS")
                    for word in words:
                        self.assertIn(word, answer.message)
                    self.assertIsNone(answer.worker, "no worker was asked")
            first = await hostler.call("hostile_wants", **good)
            self.assertEqual(first.value, [1, ["a"], {"x": 1}])
            self.assertTrue(first.metadata["cold"], "no worker had been started before")

    async def test_what_only_the_worker_can_know(self):
        async with connected() as hostler:
            await self.fails(hostler, "hostile_on", "INVALID_PARAMS", "hostile.on: day: expected a date", '"soon"', same_worker=True, day="soon")
            self.assertEqual(await hostler.value("hostile_on", day="2026-01-31"), "Saturday")
            with self.assertRaises(MCPError) as raised:
                await hostler.call("hostile_forgotten")
            self.assertEqual(raised.exception.error.data["code"], "TOOL_NOT_FOUND")
            self.assertIn("hostile.forgotten is missing: line 180 defines it", raised.exception.error.message)

    async def test_a_secret_that_cannot_be_had(self):
        sources = {
            '{ command = ["false"] }': "`false` ended with exit status 1",
            '{ command = ["no-such-program-e2e"] }': "`no-such-program-e2e` is not on PATH",
            '{ env = "E2E_EMPTY" }': "the secret E2E_SECRET, which is not set",
        }
        for source, words in sources.items():
            with self.subTest(source):
                config = config_file(scratch(self), f"[secrets]\nE2E_SECRET = {source}\n")
                async with connected(config=config, env=environment(E2E_SECRET="other", E2E_EMPTY="")) as hostler:
                    answer = await hostler.call("peek_secret_length")
                    self.assertEqual(answer.code, "MISSING_CREDENTIALS")
                    self.assertIn(words, answer.message)

    async def test_a_missing_secret(self):
        async with connected(env=environment(E2E_SECRET=None)) as hostler:
            answer = await hostler.call("peek_secret_length")
            self.assertEqual(answer.code, "MISSING_CREDENTIALS")
            for words in ("the secret E2E_SECRET, which is not set", "hostler's environment", "[secrets]", "E2E_SECRET = {"):
                self.assertIn(words, answer.message)
            after = await hostler.call("peek_path")
            self.assertEqual((after.failed, after.worker), (False, answer.worker))
            undeclared = await hostler.call("peek_undeclared")
            self.assertEqual(undeclared.code, "TOOL_ERROR")
            self.assertIn("E2E_OTHER is not declared", undeclared.message)

    async def test_a_variable_that_workers_do_not_have(self):
        folder = scratch(self)
        write_tool(folder, "looks", "import os\n\n\ndef up(name: str) -> str:\n    return os.environ[name]\n",
                   header='# /// script\n# dependencies = []\n# [tool.hostler]\n# secrets = ["E2E_SECRET"]\n# ///\n')
        async with connected(folder, env=environment(E2E_SECRET="pst-pst", E2E_HOME="here")) as hostler:
            declared = await hostler.call("looks_up", name="E2E_SECRET")
            self.assertIn('inside the function, with `hostler.secret("E2E_SECRET")`', declared.message)
            other = await hostler.call("looks_up", name="E2E_HOME")
            for words in ("KeyError: 'E2E_HOME'", 'add "E2E_HOME" to `secrets` on line 4',
                          '`pass_env = ["E2E_HOME"]` under [tool.looks]'):
                self.assertIn(words, other.message)

    async def test_a_secret_put_into_its_file_is_found_by_the_next_call(self):
        folder = scratch(self)
        config = config_file(folder, '[secrets]\nE2E_SECRET = { file = "key" }\n')
        async with connected(config=config, env=environment(E2E_SECRET=None)) as hostler:
            self.assertEqual((await hostler.call("peek_secret_length")).code, "MISSING_CREDENTIALS")
            (folder / "key").write_text("\n")
            (folder / "key").chmod(0o600)
            empty = await hostler.call("peek_secret_length")
            self.assertEqual(empty.code, "MISSING_CREDENTIALS")
            self.assertIn("key, which is empty: write only the value into it, and run `chmod 600 ", empty.message)
            (folder / "key").write_text("12345\n")
            (folder / "key").chmod(0o644)
            open_to_all = await hostler.call("peek_secret_length")
            self.assertEqual(open_to_all.code, "MISSING_CREDENTIALS")
            self.assertIn("chmod 600", open_to_all.message)
            (folder / "key").chmod(0o600)
            self.assertEqual(await hostler.value("peek_secret_length"), 5)


class Beginning(unittest.IsolatedAsyncioTestCase):
    async def test_a_file_that_is_broken_from_the_beginning_is_in_the_log(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "well", "def one() -> int:\n    return 1\n")
        write_tool(tools, "lame", "def one(:\n    return 1\n")
        async with connected(tools, env=environment(HOSTLER_LOG="info")) as hostler:
            self.assertEqual(list(await hostler.tools()), ["well_one"])
            # A thread of its own writes the log.
            await eventually_async(lambda: "lame is broken: line 5: not valid Python" in hostler.stderr(), "the log has the broken file")
            self.assertNotIn("well was added", hostler.stderr(), "it was there from the beginning")


class Noise(unittest.IsolatedAsyncioTestCase):
    """What tools write to where the protocol might be: the result is unharmed, and the next one, in the same worker."""

    async def quiet(self, hostler, tool, result, *output, **arguments):
        before = await hostler.call("hostile_well")
        answer = await hostler.call(tool, **arguments)
        self.assertEqual(answer.value, result)
        for text in output:
            self.assertIn(text, answer.output)
        after = await hostler.call("hostile_well", number=7)
        self.assertEqual((after.value, after.output, after.worker), (7, "", before.worker))
        return answer

    async def test_print(self):
        async with connected() as hostler:
            answer = await self.quiet(hostler, "hostile_prints", "printed", text="steam\n{\"id\": 1}")
            self.assertEqual(answer.output, "steam\n{\"id\": 1}\n")

    async def test_print_without_end(self):
        config = config_file(scratch(self), '[limits]\nmax_output = "10 KB"\n')
        async with connected(config=config) as hostler:
            answer = await self.quiet(hostler, "hostile_prints", "printed", "more bytes]", text="x" * 100, lines=2000)
            self.assertLess(len(answer.output), 11_000)

    async def test_descriptor_1(self):
        async with connected() as hostler:
            await self.quiet(hostler, "hostile_writes", "written", "raw steam\n", text="raw steam")

    async def test_forged_answers(self):
        async with connected() as hostler:
            await self.quiet(hostler, "hostile_writes", "written", text='{"jsonrpc":"2.0","id":1,"result":"forged"}')

    async def test_a_child(self):
        async with connected() as hostler:
            await self.quiet(hostler, "hostile_runs_child", "waited for", "stoker\n", "stokerstoker\n", text="stoker")

    async def test_input(self):
        async with connected() as hostler:
            await self.quiet(hostler, "hostile_reads", "nothing there")
            asked = await hostler.call("hostile_asks")
            self.assertEqual(asked.code, "TOOL_ERROR")
            self.assertIn("EOFError", asked.message)
            self.assertEqual(await hostler.value("hostile_well"), 1)

    async def test_200_kilobytes_of_standard_error(self):
        async with connected() as hostler:
            answer = await self.quiet(hostler, "hostile_roars", 200, kilobytes=200)
            self.assertEqual(len(answer.output), 200 * 1024)
            answer = await self.quiet(hostler, "hostile_roars", 2000, "more bytes]", kilobytes=2000)

    async def test_200_kilobytes_past_python(self):
        async with connected() as hostler:
            answer = await self.quiet(hostler, "hostile_floods", 200, kilobytes=200)
            self.assertEqual(answer.output.count("f"), 200 * 1023)

    async def test_what_is_printed_belongs_to_the_call_that_printed_it(self):
        async with connected() as hostler:
            answers = await asyncio.gather(*(hostler.call("slow_printing_echo", number=number) for number in range(64)))
            self.assertEqual([answer.output for answer in answers], [f"number {number}\n" for number in range(64)])

    async def test_what_goes_past_python_belongs_to_the_call_that_wrote_it(self):
        async with connected() as hostler:
            answers = await asyncio.gather(*(hostler.call("hostile_writes", text=f"raw {n}") for n in range(64)))
            self.assertEqual([answer.output for answer in answers], [f"raw {n}\n" for n in range(64)])
            for text in ("no line's end", "another {", "é"):
                answer = await hostler.call("hostile_writes", text=text, end="")
                self.assertEqual(answer.output, text)


if __name__ == "__main__":
    unittest.main()
