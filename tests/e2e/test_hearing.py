"""What a client hears while its call is under way: progress where it asked, logs where it wants them."""

import unittest

from harness import Progress, connected, scratch, write_tool
from wire import Wire, line, request


class Hearing(unittest.IsolatedAsyncioTestCase):
    async def test_progress_comes_whole_and_before_the_answer(self):
        for mode in ("auto", "legacy"):
            async with connected(mode=mode) as hostler:
                await hostler.call("talker_count", to=1)
                for _ in range(20):
                    progress = Progress()
                    answer = await hostler.call("talker_count", progress=progress, to=5)
                    self.assertEqual(answer.value, 5)
                    self.assertEqual(progress.notes, [(number, 5, f"at {number}") for number in range(1, 6)])

    async def test_progress_grows_whatever_a_tool_says(self):
        tools = scratch(self) / "tools"
        body = "import hostler\ndef walk():\n    for number in (2, 1, 1, 3):\n        hostler.progress(number, 4, str(number))\n"
        write_tool(tools, "engine", body)
        progress = Progress()
        async with connected(tools) as hostler:
            await hostler.call("engine_walk", progress=progress)
        self.assertEqual([(total, message) for _, total, message in progress.notes if total], [(4, text) for text in "2113"])
        values = [value for value, _, _ in progress.notes]
        self.assertEqual(values, sorted(set(values)))
        self.assertEqual(values[-1], 3)

    async def test_logs_reach_a_client_of_yesterday_after_set_level(self):
        heard = []

        async def hear(params):
            heard.append(params)

        async with connected(mode="legacy", logging_callback=hear) as hostler:
            await hostler.call("talker_log", text="before anybody asked")
            await hostler.client.set_logging_level("warning")
            await hostler.call("talker_log", text="too quiet", level="info")
            await hostler.call("talker_log", text="loud enough", level="warning")
        self.assertEqual([params.data["message"] for params in heard], ["loud enough"])
        self.assertEqual((heard[0].level, heard[0].logger), ("warning", "talker_log"))
        self.assertEqual(heard[0].data["fields"], {"pages": 3})

    async def test_logs_reach_a_client_of_today_that_asks_with_its_request(self):
        heard = []

        async def hear(params):
            heard.append(params.data["message"])

        async with connected(logging_callback=hear, log_level="info") as hostler:
            await hostler.call("talker_log", text="too quiet", level="debug")
            await hostler.call("talker_log", text="said", level="info")
        self.assertEqual(heard, ["said"])

    async def test_logs_of_tools_reach_the_log_of_hostler(self):
        async with connected(verbose=True) as hostler:
            answer = await hostler.call("talker_log", text="the gauge says nine")
            log = hostler.stderr()
        found = next(text for text in log.splitlines() if "the gauge says nine" in text)
        self.assertIn(answer.outcome["call_id"], found)
        self.assertIn("talker.py", found)


class Silence(unittest.TestCase):
    def test_who_asked_for_nothing_hears_nothing(self):
        with Wire() as hostler:
            hostler.open()
            self.assertEqual(hostler.value(1, "talker_count", to=5), 5)
            self.assertEqual(hostler.value(2, "talker_log", text="to nobody"), "logged")
            self.assertEqual(hostler.notes, [])

    def test_a_cancelled_call_is_not_answered(self):
        with Wire() as hostler:
            hostler.open()
            worker, = hostler.began(1, "slow_nap", seconds=600)
            hostler.send(line(method="notifications/cancelled", params={"requestId": 1, "reason": "changed my mind"}))
            self.assertEqual(hostler.worker(2, "slow_echo", number=2), worker)
            hostler.send(request(3, "ping"))
            hostler.answer(3)
            self.assertEqual([note for note in hostler.notes if note.get("id") == 1], [])


if __name__ == "__main__":
    unittest.main()
