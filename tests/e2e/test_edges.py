"""What only happens to the unlucky: clients that do not read, tools that never stop talking, files that are none."""

import json
import os
import re
import select
import signal
import threading
import time
import unittest
from pathlib import Path

from harness import HEADER, config_file, connected, environment, eventually, run, scratch, write_tool
from wire import Wire, call, request

TALK = '''
import os, threading, hostler

def chatter(notes: int, mark: str) -> str:
    """Say more than anybody reads."""
    for number in range(notes):
        hostler.progress(number, message="x" * 200)
        hostler.log("y" * 200)
    open(mark, "w").close()
    return "said"

def flood(megabytes: int) -> str:
    """Write past Python."""
    for _ in range(megabytes * 25):
        os.write(2, b"z\\n" * 20_000)
    return "flooded"

def warn(lines: int) -> str:
    """Fill the log."""
    for _ in range(lines):
        hostler.log("w" * 200, level="warning")
    return "warned"

def after() -> int:
    """Answer."""
    return 1
'''


def is_full(stream):
    """Whether nothing more fits into a pipe. How many bytes that are depends on the pages it may have, and on how much of
    each was left free by lines that did not fit whole."""
    writes = os.open(f"/proc/self/fd/{stream.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [writes], [], 0)[1]
    finally:
        os.close(writes)


def peak(pid):
    """The most memory a process ever held, in megabytes."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) // 1024


class Floods(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "talk", TALK)

    def open(self):
        wire = Wire(self.folder / "tools")
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def test_a_client_that_does_not_read_costs_no_memory(self):
        wire = self.open()
        wire.send(request(1, "logging/setLevel", level="debug"))
        wire.answer(1)
        mark = self.folder / "said"
        wire.send(call(2, "talk_chatter", "p", notes=100_000, mark=str(mark)))
        eventually(mark.exists, "everything was said", limit=60)
        self.assertLess(peak(wire.supervisor), 120)
        self.assertEqual(wire.answer(2)["result"]["structuredContent"], {"result": "said"})

    def test_a_tool_that_floods_waits_in_its_pipe(self):
        wire = self.open()
        self.assertEqual(wire.value(1, "talk_flood", megabytes=4), "flooded")
        self.assertLess(peak(wire.supervisor), 120)
        self.assertEqual(wire.value(2, "talk_after"), 1)

    def test_nobody_reads_the_log(self):
        write_tool(self.folder / "tools", "other", "def after() -> int:\n    return 1\n")
        wire = self.open()
        for number, name in ((1, "talk_after"), (2, "other_after")):
            self.assertEqual(wire.value(number, name), 1)
        wire.send(call(3, "talk_warn", lines=20_000))
        eventually(lambda: is_full(wire.process.stderr), "nothing more fits into the pipe")
        for number in range(4, 24):
            os.kill(wire.supervisor, signal.SIGUSR1)
            began = time.monotonic()
            self.assertEqual(wire.value(number, "other_after"), 1)
            self.assertLess(time.monotonic() - began, 1)
        self.assertEqual(wire.answer(3)["result"]["structuredContent"], {"result": "warned"})
        began = time.monotonic()
        wire.process.terminate()
        self.assertEqual(wire.ended(3), 0)
        self.assertLess(time.monotonic() - began, 1)

    def test_whoever_reads_the_log_late_is_told_what_is_missing(self):
        wire = self.open()
        self.assertEqual(wire.value(1, "talk_warn", lines=20_000), "warned")
        read = []
        reader = threading.Thread(target=lambda: read.extend(wire.process.stderr))
        reader.start()
        eventually(lambda: any(b" dropped: " in line for line in read), "the gap is told")
        wire.value(2, "talk_warn", lines=1)
        wire.end_input()
        self.assertEqual(wire.ended(3), 0)
        reader.join()
        whole = [line for line in read if b"w" * 200 in line]
        gaps = [int(line.split()[0]) for line in read if b" log lines were dropped: stderr was not read" in line]
        self.assertEqual(len(whole) + sum(gaps), 20_001, read[-3:])
        self.assertTrue(read.index(whole[-1]) > next(n for n, line in enumerate(read) if b" dropped: " in line), "it goes on")


class Calls(unittest.IsolatedAsyncioTestCase):
    async def test_two_files_that_wait_for_each_other(self):
        tools, gates = scratch(self) / "tools", scratch(self)
        for name, other in (("ca", "cb"), ("cb", "ca")):
            write_tool(tools, name, f'''
import os, time, hostler

def outer() -> int:
    """Wait until both run, then ask the other."""
    open({str(gates / name)!r}, "w").close()
    while not os.path.exists({str(gates / other)!r}):
        time.sleep(0.01)
    return hostler.call("{other}.inner")

def inner() -> int:
    """Answer."""
    return 5
''', header="")
        async with connected(tools) as hostler:
            import asyncio

            answers = await asyncio.gather(hostler.call("ca_outer"), hostler.call("cb_outer"))
            failed = [answer for answer in answers if answer.failed]
            self.assertEqual(len(failed), 1, [answer.text for answer in answers])
            self.assertRegex(failed[0].message, r"all workers of c. wait for c. \(c. → c. → c.\)")
            self.assertEqual([answer.value for answer in answers if not answer.failed], [5])

    async def test_children_of_any_thread_count_against_the_memory(self):
        tools = scratch(self) / "tools"
        header = '# /// script\n# dependencies = []\n# [tool.hostler]\n# max_memory = "150MB"\n# ///\n'
        body = ('import subprocess, sys, threading\n\ndef eat() -> None:\n    """Let a thread\'s child eat."""\n'
                '    code = "import time; held = bytearray(400 << 20); time.sleep(600)"\n'
                '    thread = threading.Thread(target=subprocess.run, args=([sys.executable, "-c", code],))\n'
                '    thread.start()\n    thread.join()\n')
        write_tool(tools, "greedy", body, header)
        async with connected(tools) as hostler:
            self.assertEqual((await hostler.call("greedy_eat")).code, "RESOURCE_EXHAUSTED")

    async def test_an_exit_status_is_one_where_no_launcher_stands_between(self):
        config = config_file(scratch(self), '[tool]\nlauncher = "direct"\n')
        async with connected(config=config) as hostler:
            answer = await hostler.call("hostile_exits", status=137)
            self.assertEqual((answer.code, answer.details["exit_code"]), ("TOOL_CRASHED", 137))

    async def test_a_secret_that_is_a_pipe(self):
        place = scratch(self)
        os.mkfifo(place / "key", 0o600)
        config = config_file(place, '[secrets]\nE2E_SECRET = { file = "key" }\n')
        async with connected(config=config, env=environment(E2E_SECRET=None)) as hostler:
            answer = await hostler.call("peek_secret_length")
            self.assertEqual(answer.code, "MISSING_CREDENTIALS")
            self.assertIn("is not a regular file", answer.message)
            self.assertIn("plain_greet", await hostler.tools())


class Lines(unittest.TestCase):
    def test_the_last_line_needs_no_end(self):
        with Wire() as wire:
            wire.open()
            wire.send(call(1, "plain_greet").rstrip(b"\n"))
            wire.end_input()
            self.assertEqual(wire.answer(1)["result"]["structuredContent"], {"result": "good morning, you"})

    def test_a_long_request_that_cannot_be_read(self):
        with Wire() as wire:
            wire.open()
            wire.send(call(1, "plain_greet", name="x" * 3_000_000).replace(b'xxx"', b'\\ud800"'))
            self.assertEqual(wire.answer(1)["error"]["code"], -32700)

    def test_parameters_in_a_list(self):
        with Wire() as wire:
            wire.open()
            wire.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["plain_greet"]}\n')
            self.assertEqual(wire.answer(1)["error"]["code"], -32602)

    def test_a_name_as_long_as_a_book(self):
        with Wire() as wire:
            wire.open()
            wire.send(call(1, "n" * 5_000_000))
            self.assertEqual(wire.answer(1)["error"]["code"], -32602)


class Files(unittest.TestCase):
    def test_check_does_not_wait_at_a_pipe(self):
        tools = scratch(self)
        os.mkfifo(tools / "pipe.py")
        done = run("check", tools, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error[unreadable]", done.stdout)

    def test_a_time_beyond_every_clock(self):
        tools = scratch(self)
        header = '# /// script\n# dependencies = []\n# [tool.hostler]\n# timeout = "18446744073709551615s"\n# ///\n'
        write_tool(tools, "eternal", "def well() -> int:\n    return 1\n", header)
        done = run("call", "--tools", tools, "eternal.well")
        self.assertEqual(done.returncode, 7)
        self.assertIn("tool.hostler.timeout", done.stderr)
        self.assertEqual(run("call", "--tools", tools, "eternal.well", "--timeout", "18446744073709551615s").returncode, 2)

    def test_long_integers_in_a_terminal(self):
        tools = scratch(self)
        write_tool(tools, "big", 'def number() -> int:\n    return 10**30\n\ndef inside() -> dict:\n    return {"n": 10**30}\n', HEADER)
        self.assertEqual(run("call", "--tools", tools, "big.number").stdout, "1" + "0" * 30 + "\n")
        self.assertEqual(json.loads(run("call", "--tools", tools, "big.inside").stdout), {"n": 10**30})


if __name__ == "__main__":
    unittest.main()
