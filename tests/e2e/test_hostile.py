"""Tools that do their worst, each in a row: what its caller is told, in which time, and that the calls of a neighbour were
all answered meanwhile. Each row has a hostler of its own; in the end nothing of it may be left."""

import asyncio
import time
import unittest
from pathlib import Path

import shared_mode
from harness import alive, config_file, connected, eventually, scratch, write_tool
from test_several import header

NEIGHBOUR = "def add(a: int, b: int) -> int:\n    return a + b\n"


class Row:
    """One tool, what is set for it, and what its call must come to."""

    def __init__(self, body, *, code=None, says="", settings="", limit=3.0, calls=1, stays=False):
        self.body = "import os, signal, subprocess, sys, time\n" + body + "\n\ndef well() -> int:\n    return os.getpid()\n"
        self.code, self.says, self.settings, self.limit, self.calls, self.stays = code, says, settings, limit, calls, stays


def function(body):
    """A tool `act` with these lines."""
    return "def act():\n" + "".join(f"    {line}\n" for line in body.splitlines())


PROTOCOL = '''
def ends():
    """The descriptors of the protocol, which a tool has no business to know."""
    found = []
    for fd in range(3, 64):
        try:
            if os.path.realpath(f"/proc/self/fd/{fd}").startswith("/proc") and "pipe:" in os.readlink(f"/proc/self/fd/{fd}"):
                found.append(fd)
        except OSError:
            pass
    return found


def frame(text):
    for fd in _ends():
        try:
            os.write(fd, text.encode())
        except OSError:
            pass
'''.replace("def ends", "def _ends").replace("def frame", "def _frame")

ROWS = {
    "ignores TERM": Row(
        function("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\ntime.sleep(600)"),
        code="TOOL_TIMEOUT", says="did not answer in 500ms", settings='timeout = "500ms"'),
    "forks a daemon": Row(
        function("if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        open(os.environ['NOTES'] + '/daemon', 'w').write(str(os.getpid()))\n"
                 "        time.sleep(600)\n    os._exit(0)\nwhile not os.path.exists(os.environ['NOTES'] + '/daemon'):\n    time.sleep(0.01)\nreturn 'forked'"),
        stays=True),
    "spawns grandchildren that hold the pipes": Row(
        function("subprocess.Popen(['sh', '-c', 'sleep 600 & sleep 600'], close_fds=False)\nos._exit(4)"),
        code="TOOL_CRASHED", says="exited with code 4"),
    "allocates without end": Row(
        function("held = []\nwhile True:\n    held.append(bytearray(b'x' * (10 << 20)))\n    time.sleep(0.005)"),
        code="RESOURCE_EXHAUSTED", says="120 MB", settings='max_memory = "120MB"', limit=10),
    "fills its descriptors": Row(
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n"
        + function("held = []\nwhile True:\n    held.append(open('/dev/null'))"),
        code="RESOURCE_EXHAUSTED", says="open files", stays=True),
    "holds the interpreter in an expression for ever": Row(
        "import re\n" + function("re.match(r'(a+)+$', 'a' * 64 + 'b')"),
        code="TOOL_TIMEOUT", says="act", settings='timeout = "500ms"', stays=True),
    "holds the interpreter in C for ever": Row(
        "import itertools\n" + function("all(itertools.repeat(True))"),
        code="TOOL_TIMEOUT", says="act", settings='timeout = "500ms"'),
    "closes its own output": Row(
        function("os.closerange(1, 256)\ntime.sleep(600)"), code="TOOL_CRASHED", says="closed its connection"),
    "writes frames that are none": Row(
        PROTOCOL + function("_frame('no json at all\\n{\"jsonrpc\":\\n[1,2\\n\\xff\\n{}\\n{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":7}\\n')\nreturn 'done'"),
        stays=True),
    "answers twice": Row(
        # In one write: the last of many might be taken for the answer to the next call, which it names by chance.
        PROTOCOL + function("_frame(''.join('{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":\"fake\"}\\n' % id for id in range(1, 40)))\nreturn 'true'"),
        stays=True),
    "answers what nobody asked": Row(
        PROTOCOL + function("_frame('{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":1}\\n{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}\\n')\nreturn 'done'"),
        stays=True),
    "dies in hello": Row("os._exit(9)\n" + function("return 1"), code="STARTUP_FAILED", says="exit status 9"),
    "hangs in hello": Row(
        "time.sleep(600)\n" + function("return 1"), code="STARTUP_FAILED", says="startup_timeout", settings='startup_timeout = "1s"'),
    "takes longer to import than its calls may take": Row(
        "time.sleep(1.5)\n" + function("return 1"), settings='timeout = "500ms"', stays=True),
    "dies at every second call": Row(
        "mark = os.environ['NOTES'] + '/mark'\n"
        + function("if os.path.exists(mark):\n    os.remove(mark)\n    os.abort()\nopen(mark, 'w').close()\nreturn 'lived'"),
        calls=6, code=(None, "TOOL_CRASHED"), says="SIGABRT", limit=8),
    "leaks a megabyte at each call": Row(
        "held = []\n" + function("held.append(bytearray(b'x' * (1 << 20)))\ntime.sleep(0.02)\nreturn os.getpid()"),
        calls=150, settings='max_rss = "60MB"', limit=60),
    "sits in a read that heeds no signal": Row(
        "import threading\n" + function(
            "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\nreader, writer = os.pipe()\nos.read(reader, 1)"),
        code="TOOL_TIMEOUT", says="act", settings='timeout = "500ms"'),
    "throws away what interrupts it": Row(
        function("while True:\n    try:\n        time.sleep(600)\n    except BaseException:\n        pass"),
        code="TOOL_TIMEOUT", says="act", settings='timeout = "500ms"'),
    "kills its own group": Row(function("os.killpg(0, signal.SIGKILL)"), code="PROCESS_KILLED", says="SIGKILL"),
    "stops itself": Row(function("os.kill(os.getpid(), signal.SIGSTOP)"), code="TOOL_TIMEOUT", settings='timeout = "500ms"'),
}


def of_run(notes):
    """Every process that was started with this folder for its notes: workers, their children, those that fled."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and f"NOTES={notes}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass
    return [pid for pid in found if alive(pid)]


class Hostile(unittest.IsolatedAsyncioTestCase):
    async def row(self, name):
        row = ROWS[name]
        folder = scratch(self)
        write_tool(folder / "tools", "bad", row.body, header(row.settings))
        write_tool(folder / "tools", "good", NEIGHBOUR)
        config = config_file(folder, f'[tool.bad.env]\nNOTES = "{folder}"\n')
        async with connected(folder / "tools", config=config) as hostler:
            await hostler.call("good_add", a=0, b=0)
            over = asyncio.Event()
            neighbour = asyncio.ensure_future(self.neighbour(hostler, over))
            before = (await hostler.call("bad_well")).worker
            codes = row.code if isinstance(row.code, tuple) else (row.code,)
            for number in range(row.calls):
                began = time.monotonic()
                answer = await hostler.call("bad_act")
                took = time.monotonic() - began
                code = codes[number % len(codes)]
                self.assertEqual(answer.code, code, answer.text)
                self.assertLess(took, row.limit)
                if code is not None:
                    self.assertIn(row.says, answer.message)
                if code == "TOOL_CRASHED":
                    self.assertGreater(answer.details["peak_memory"], 5_000_000)
            if code != "STARTUP_FAILED":
                after = await hostler.call("bad_well")
                self.assertFalse(after.failed, after.text)
                self.assertEqual(after.worker == before, row.stays)
            over.set()
            self.assertEqual(await neighbour, [])
            self.assertTrue(of_run(folder) or code == "STARTUP_FAILED", "something of it lives while hostler does")
        shared_mode.end()
        eventually(lambda: not of_run(folder), f"nothing is left: {of_run(folder)}", limit=5)

    async def neighbour(self, hostler, over):
        """Calls the neighbour until it is told to stop, and says what went wrong."""
        count, wrong = 0, []
        while count < 20 or not over.is_set():
            answer = await hostler.call("good_add", a=count, b=1)
            if answer.failed or answer.value != count + 1:
                wrong.append(answer.text)
            count += 1
        return wrong

    async def test_it_ignores_term(self):
        await self.row("ignores TERM")

    async def test_it_forks_a_daemon(self):
        await self.row("forks a daemon")

    async def test_it_spawns_grandchildren_that_hold_the_pipes(self):
        await self.row("spawns grandchildren that hold the pipes")

    async def test_it_allocates_without_end(self):
        await self.row("allocates without end")

    async def test_it_fills_its_descriptors(self):
        await self.row("fills its descriptors")

    async def test_it_holds_the_interpreter_in_an_expression_for_ever(self):
        await self.row("holds the interpreter in an expression for ever")

    async def test_it_holds_the_interpreter_in_c_for_ever(self):
        await self.row("holds the interpreter in C for ever")

    async def test_it_closes_its_own_output(self):
        await self.row("closes its own output")

    async def test_it_writes_frames_that_are_none(self):
        await self.row("writes frames that are none")

    async def test_it_answers_twice(self):
        await self.row("answers twice")

    async def test_it_answers_what_nobody_asked(self):
        await self.row("answers what nobody asked")

    async def test_it_dies_in_hello(self):
        await self.row("dies in hello")

    async def test_it_hangs_in_hello(self):
        await self.row("hangs in hello")

    async def test_it_takes_longer_to_import_than_its_calls_may_take(self):
        await self.row("takes longer to import than its calls may take")

    async def test_it_dies_at_every_second_call(self):
        await self.row("dies at every second call")

    async def test_it_leaks_a_megabyte_at_each_call(self):
        await self.row("leaks a megabyte at each call")

    async def test_it_sits_in_a_read_that_heeds_no_signal(self):
        await self.row("sits in a read that heeds no signal")

    async def test_it_throws_away_what_interrupts_it(self):
        await self.row("throws away what interrupts it")

    async def test_it_kills_its_own_group(self):
        await self.row("kills its own group")

    async def test_it_stops_itself(self):
        await self.row("stops itself")


if __name__ == "__main__":
    unittest.main()
