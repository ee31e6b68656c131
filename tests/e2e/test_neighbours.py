"""What clients of one shared hostler cannot do to each other: read, hear, hold up."""

import asyncio
import json
import os
import subprocess
import threading
import time
import unittest
from pathlib import Path

from mcp import types

import test_walls
from harness import PATIENCE, connected, write_tool
from test_shared import SECRET, SECRETIVE, TOOL, Shared, until
from wire import Wire, call

TALK = """
import hostler, os

def say(word: str) -> list:
    hostler.log(word, level="warning")
    hostler.progress(1, message=word)
    print(word)
    return [word, os.getpid()]

def think(word: str) -> list:
    return [hostler.llm(word), os.getpid()]

def wait() -> int:
    import time
    hostler.progress(0, message=f"began {os.getpid()}")
    time.sleep(60)
"""


class Eras(Shared):
    """Two official clients of different eras."""

    async def both(self):
        heard = {"legacy": [], "auto": []}

        def client(mode):
            async def sample(_context, params):
                heard[mode].append(("model", params.messages[0].content.text))
                return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text=mode), model="m")

            async def hear(params):
                heard[mode].append(("log", params.data["message"]))

            options = {"log_level": "warning"} if mode == "auto" else {}
            env = {**self.env, "KEY": f"k-{mode}"}
            return connected(self.tools, env=env, cwd=self.folder, mode=mode, flags=("--shared", "-v"),
                             sampling_callback=sample, logging_callback=hear, **options)

        async with client("legacy") as old, client("auto") as new:
            await old.client.set_logging_level("warning")
            self.assertEqual(len(self.sessions()), 2)
            sessions = {"legacy": old, "auto": new}
            said = {mode: await session.call("talk_say", word=f"of {mode}") for mode, session in sessions.items()}
            thought = {mode: await session.value("talk_think", word=f"to {mode}") for mode, session in sessions.items()}
            pids = {answer.value[1] for answer in said.values()} | {pid for _, pid in thought.values()}
            self.assertEqual(len(pids), 1, "they share a worker")
            self.assertEqual({mode: word for mode, (word, _) in thought.items()}, {"legacy": "legacy", "auto": "auto"})
            self.assertEqual({mode: answer.output for mode, answer in said.items()}, {"legacy": "of legacy\n", "auto": "of auto\n"})
            keys = {mode: await session.value("secret_key") for mode, session in sessions.items()}
            self.assertEqual([keys[mode][0] for mode in ("legacy", "auto")], ["k-legacy", "k-auto"])
            self.assertNotEqual(keys["legacy"][1], keys["auto"][1])
            # The end of one client's call is not the other's.
            task, _ = await old.start("talk_wait")
            task.cancel()
            self.assertEqual((await new.value("talk_say", word="again"))[0], "again")
            logs = {mode: session.stderr() for mode, session in sessions.items()}
        self.assertEqual(heard, {"legacy": [("log", "of legacy"), ("model", "to legacy")],
                                 "auto": [("log", "of auto"), ("model", "to auto"), ("log", "again")]})
        for mode, other in (("legacy", "auto"), ("auto", "legacy")):
            self.assertIn(f"of {mode}", logs[mode])
            self.assertNotIn(f"of {other}", logs[mode])

    def test_they_share_a_worker_and_nothing_else(self):
        write_tool(self.tools, "talk", TALK)
        write_tool(self.tools, "secret", SECRET, header=SECRETIVE)
        asyncio.run(self.both())


class Loads(Shared):
    def rss(self, pid):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def test_a_client_that_sends_a_hundred_megabytes(self):
        greedy, usual = self.open(), self.open()
        pid = self.status()["pid"]
        self.assertEqual(usual.value(1, "a_wait", seconds=0), 0)
        before = self.rss(pid)
        line = call(7, "a_wait", seconds=0, unknown="x" * 100_000_000)
        sending = threading.Thread(target=greedy.send, args=(line,))
        sending.start()
        slowest, number = 0, 10
        while sending.is_alive() or number < 30:
            began = time.monotonic()
            self.assertEqual(usual.value(number, "a_wait", seconds=0), 0)
            slowest, number = max(slowest, time.monotonic() - began), number + 1
        sending.join()
        answer = greedy.answer(7)
        self.assertTrue("error" in answer or answer["result"]["isError"], answer)
        self.assertIsInstance(greedy.value(8, "a_pid")[0], int)
        # A debug build on a busy machine; a line that is parsed in one go would hold everybody up for seconds.
        self.assertLess(slowest, 5)
        until(lambda: self.rss(pid) < before + 40_000_000)
        greedy.end_input()
        greedy.ended(2)

    def test_a_disk_that_is_full_for_its_log(self):
        wire = self.open()
        log = Path(self.status()["log"])
        wire.end_input()
        wire.ended(1)
        self.stop()
        log.unlink()
        log.symlink_to("/dev/full")
        first, second = self.open(), self.open("-v")
        self.assertEqual(self.status()["log"], str(log))
        for number in range(20):
            first.send(call(number + 1, "a_wait", seconds="x"))
            self.assertTrue(first.answer(number + 1)["result"]["isError"])
        self.assertIsInstance(second.value(1, "a_pid")[0], int)
        self.assertEqual(len(self.sessions()), 2)
        second.end_input()
        self.assertEqual(second.ended(2), 0)
        self.assertIn("serving files", second.stderr(), "what concerns a session goes to it")


class Walls(unittest.TestCase):
    """A worker of one session, the processes of another."""

    setUp, refused = test_walls.Walls.setUp, test_walls.Walls.refused

    def attached(self, **variables):
        env = {**self.account.env, "XDG_RUNTIME_DIR": str(self.run_folder), **variables}
        wire = Wire(self.account.tools, env=env, arguments=("--shared",), cwd=self.account.folder,
                    program=[*self.account.become, self.account.hostler])
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def hostler(self, *words):
        env = {**self.account.env, "XDG_RUNTIME_DIR": str(self.run_folder)}
        return subprocess.run([*self.account.become, self.account.hostler, *words], env=env, cwd=self.account.folder,
                              capture_output=True, text=True, timeout=PATIENCE)

    def test_processes_of_another_session(self):
        self.run_folder = self.account.folder / "run"
        self.run_folder.mkdir(0o700)
        self.account.own(self.run_folder)
        self.addCleanup(self.hostler, "stop")
        spy = self.attached()
        other = self.attached(PATH=f"{self.account.env['PATH']}:/nowhere", SECRET_OF_CLIENT=test_walls.SECRET)
        worker = other.value(1, "other_pid")
        status = json.loads(self.hostler("status", "--json").stdout)
        attached = [wire.process.pid for wire in (spy, other)]
        self.assertEqual([session["pid"] for session in status["sessions"]], attached)
        keeper = int(Path(f"/proc/{status['pid']}/stat").read_text().rpartition(")")[2].split()[1])
        pids = [status["pid"], keeper, *attached, worker]
        users = {Path(f"/proc/{pid}/status").read_text().partition("Uid:")[2].split()[0] for pid in pids}
        self.assertEqual(users, {str(self.account.user)}, "as another user it would prove nothing")
        self.refused(spy.value(1, "spy_reached", pids=pids), pids)


if __name__ == "__main__":
    unittest.main()
