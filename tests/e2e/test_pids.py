"""Namespaces of pids: what a tool with a sandbox sees of other processes, how it ends, and what ends with it."""

import asyncio
import json
import os
import re
import signal
import sys
import unittest
from pathlib import Path

from harness import HOSTLER, Calling, alive, children, config_file, connected, environment, eventually, gone, run, scratch, write_tool

TOOL = '''
import ctypes, os, signal, subprocess, sys, time

def seen(path: str = "/proc") -> list[int]:
    return sorted(int(name) for name in os.listdir(path) if name.isdigit())

def group() -> int:
    return os.getpgid(0)

def hold(megabytes: int) -> int:
    held = bytearray(megabytes << 20)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(1.5)
    return len(held) >> 20

def pid() -> int:
    return os.getpid()

def arguments(pid: int) -> str:
    return open(f"/proc/{pid}/cmdline").read()

def own() -> list[str]:
    return [os.readlink("/proc/self"), os.readlink(f"/proc/{os.getpid()}/fd/2").split(":")[0]]

def first(way: str) -> str:
    try:
        if way == "kill":
            os.kill(1, signal.SIGKILL)
        elif way == "all":
            os.kill(-1, signal.SIGTERM)
        else:
            open("/proc/1/" + way).read()
    except OSError as error:
        return type(error).__name__
    return "done"

def orphan(seconds: float) -> int:
    """Leaves a process in a session of its own, and returns its pid."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        child = os.fork()
        if child:
            os.write(writer, b"%d" % child)
            os._exit(0)
        os.environ.clear()
        for number in (0, 1, 2):
            os.close(number)
        time.sleep(seconds)
        os._exit(0)
    os.wait()
    return int(os.read(reader, 20))

def state(pid: int) -> str:
    for _ in range(200):
        try:
            if (found := open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]) == "Z":
                return found
        except FileNotFoundError:
            return "gone"
        time.sleep(0.01)
    return found

def command(program: str, words: list[str]) -> list:
    done = subprocess.run([program, *words], env={"HOME": os.environ["HOME"]}, capture_output=True, text=True)
    return [done.returncode, done.stderr]

def wait(seconds: float = 600) -> None:
    import hostler
    hostler.progress(0, message=f"began {os.getpid()}")
    time.sleep(seconds)

def die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    os.kill(os.getpid(), number)
    time.sleep(600)

def leave(status: int) -> None:
    os._exit(status)
'''
PROGRAM = """#!/bin/sh
case "$1" in
--schema) echo '{"parameters": {"type": "object"}}' ;;
*) echo "[$$, $PPID]"; exit 0 ;;
esac
"""


def below(pid):
    """The pids of all processes below this one."""
    return [found for child in children(pid) for found in (child, *below(child))]


def name_of(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def heap(pid):
    """How much memory a process has in its heap, in kB."""
    found = re.search(r"\[heap\]\nSize:.*\n(?:.*\n)*?Rss: +(\d+) kB", Path(f"/proc/{pid}/smaps").read_text())
    return int(found[1]) if found else 0


@unittest.skipUnless(sys.platform == "linux", "only Linux has namespaces")
class Seclusion(Calling):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        self.env = environment(XDG_STATE_HOME=str(self.folder / "state"), HOME=str(self.folder / "home"))
        (self.folder / "home").mkdir()
        write_tool(self.tools, "a", TOOL)
        self.config = config_file(self.folder, 'tools = ["tools"]\n[tool.a]\nsandbox = "pure"\n[tool.program]\nsandbox = "pure"\n')
        found = run("doctor", "--offline", env=self.env, cwd=self.folder).stdout
        if "other processes" not in found.split("no walls for")[0]:
            self.skipTest("this system gives processes no namespaces of pids")

    def hostler(self):
        return connected(self.tools, config=self.config, env=self.env)

    def test_only_its_own_processes_are_seen(self):
        self.assertEqual(self.value("a.seen"), [1, 2])
        self.assertEqual(self.value("a.own"), ["2", "pipe"], "its own listing has its own numbers")
        self.assertEqual(self.value("a.arguments", "pid=1").strip("\0"), "", "hostler's are not shown")
        program = self.tools / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.assertEqual(self.value("program"), [2, 0])
        config_file(self.folder, 'tools = ["tools"]\n[tool.a]\nsandbox = { processes = 100 }\n')
        self.assertIn(os.getpid(), self.value("a.seen"), "where only amounts are limited")

    def test_every_list_of_files_lets_it_see_them(self):
        for sandbox in ('"reader"', '"network"', '{ read = [], write = [] }', '{ network = "off" }',
                        f'{{ preset = "pure", write = ["{self.folder}/home"] }}'):
            with self.subTest(sandbox):
                config_file(self.folder, f'tools = ["tools"]\n[tool.a]\nsandbox = {sandbox}\n')
                self.assertEqual(self.value("a.own"), ["2", "pipe"])

    def test_the_first_process_cannot_be_ended_or_looked_into(self):
        for way in ("environ", "mem", "maps"):
            self.assertEqual(self.value("a.first", f"way={way}"), "PermissionError", way)
        # Landlock refuses it, or the kernel ignores it.
        self.assertIn(self.value("a.first", "way=kill"), ("PermissionError", "done"))
        self.assertIn(self.value("a.first", "way=all"), ("PermissionError", "ProcessLookupError", "done"))

    def test_a_call_ends_as_the_program_does(self):
        for number, name, code in ((signal.SIGSEGV, "SIGSEGV", "TOOL_CRASHED"), (signal.SIGKILL, "SIGKILL", "PROCESS_KILLED"),
                                   (signal.SIGTERM, "SIGTERM", "PROCESS_KILLED"), (signal.SIGABRT, "SIGABRT", "TOOL_CRASHED")):
            error = self.error("a.die", f"number={int(number)}")
            self.assertEqual((error["code"], error["details"].get("signal")), (code, name), error)
        for status in (0, 7, 137):
            error = self.error("a.leave", f"status={status}")
            self.assertEqual((error["code"], error["details"].get("exit_code")), ("TOOL_CRASHED", status), error)

    def test_a_hostler_started_inside_knows_that_it_is_below_one(self):
        config_file(self.folder, 'tools = ["tools"]\n[tool.a]\nsandbox = { network = "off" }\n')
        status, said = self.value("a.command", f"program={HOSTLER}", 'words:=["mode", "ALERT"]')
        self.assertEqual(status, 2, said)
        self.assertIn("a tool", said)
        self.assertEqual(json.loads(run("mode", "--json", env=self.env, cwd=self.folder).stdout)["mode"], "normal")

    async def goes_on(self, hostler):
        """A call that comes before a death is noticed fails; the next one does not."""
        answers = [await hostler.call("a_pid") for _ in range(2)]
        self.assertFalse(answers[1].failed, answers[1].text)

    async def within(self, test):
        async with self.hostler() as hostler:
            await test(hostler)

    def test_its_pid_is_known_outside_and_its_call_is_cancelled_there(self):
        async def test(hostler):
            answer = await hostler.call("a_pid")
            self.assertEqual(answer.value, 2)
            self.assertTrue(Path(f"/proc/{answer.worker}/status").read_text().count("python"), "its name")
            waiting, inside = await hostler.start("a_wait")
            self.assertEqual(inside, 2)
            waiting.cancel()
            after = await hostler.call("a_pid")
            self.assertEqual(after.worker, answer.worker, "the call was interrupted, and the worker kept")

        asyncio.run(self.within(test))

    def test_orphans_are_reaped_and_end_with_the_worker(self):
        async def test(hostler):
            short = (await hostler.call("a_orphan", seconds=0)).value
            self.assertEqual((await hostler.call("a_state", pid=short)).value, "gone", "no zombie")
            await hostler.call("a_orphan", seconds=600)
            worker = (await hostler.call("a_pid")).worker
            inside = self.inside(worker)
            self.assertEqual(len(inside), 3, "init, the worker, the orphan")
            os.kill(worker, signal.SIGKILL)
            eventually(gone(*inside), "all inside have ended")
            await self.goes_on(hostler)

        asyncio.run(self.within(test))

    def inside(self, worker):
        """The processes of the namespace of a worker, by their pids outside."""
        space = os.readlink(f"/proc/{worker}/ns/pid")

        def is_inside(pid):
            try:
                return os.readlink(f"/proc/{pid}/ns/pid") == space
            except OSError:
                return False

        return [int(name) for name in os.listdir("/proc") if name.isdigit() and is_inside(name)]

    def test_nothing_survives_what_is_killed(self):
        async def test(hostler):
            for role in ("hostler-monitor", "hostler-init"):
                await hostler.call("a_orphan", seconds=600)
                worker = (await hostler.call("a_pid")).worker
                monitor = self.parent(worker)
                self.assertEqual(name_of(monitor), "hostler-monitor")
                inside = self.inside(worker)
                victim = next(pid for pid in (monitor, *inside) if name_of(pid) == role)
                waiting, _ = await hostler.start("a_wait")
                os.kill(victim, signal.SIGKILL)
                answer = await waiting
                self.assertEqual(answer.code, "PROCESS_KILLED", answer.message)
                eventually(gone(monitor, *inside), "all have ended")
                await self.goes_on(hostler)

        asyncio.run(self.within(test))

    def parent(self, pid):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    def test_a_signal_reaches_a_program_that_makes_its_own_group(self):
        program, told = self.tools / "program", self.folder / "home" / "told"
        program.write_text(f"""#!/bin/sh
[ "$1" = --schema ] && {{ echo '{{"parameters": {{"type": "object"}}}}'; exit; }}
exec timeout 60 sh -c 'trap "echo told > {told}; exit" TERM; sleep 60 & wait'
""")
        program.chmod(0o755)
        config_file(self.folder, 'tools = ["tools"]\n[tool.program]\ntimeout = "1s"\n'
                    f'sandbox = {{ preset = "pure", write = ["{told.parent}"] }}\n')
        self.assertEqual(self.error("program")["code"], "TOOL_TIMEOUT")
        self.assertEqual(told.read_text(), "told\n")

    def test_its_group_is_its_own(self):
        self.assertEqual(self.value("a.group"), 2, "a signal to it reaches nothing outside")

    def test_a_folder_in_the_listing_of_all_shows_no_other(self):
        done = run("call", "--json", "a.seen", "path=.", "--tools", str(self.tools), "--config", str(self.config), env=self.env, cwd="/proc")
        self.assertEqual(json.loads(done.stdout)["result"], [1, 2], done.stderr)

    def test_limits_count_the_program_alone(self):
        config_file(self.folder, 'tools = ["tools"]\n[tool.a]\nsandbox = "pure"\nmax_memory = "100MB"\n')
        self.assertEqual(self.value("a.hold", "megabytes=75"), 75)
        self.assertEqual(self.error("a.hold", "megabytes=150")["code"], "RESOURCE_EXHAUSTED")

    def test_nothing_survives_a_killed_hostler(self):
        async def test(hostler):
            await hostler.call("a_orphan", seconds=600)
            worker = (await hostler.call("a_pid")).worker
            monitor, inside = self.parent(worker), self.inside(worker)
            supervisor = self.parent(monitor)
            keeper = self.parent(supervisor)
            # Both at once, so that neither can clean up.
            for pid in (keeper, supervisor):
                os.kill(pid, signal.SIGSTOP)
            for pid in (keeper, supervisor):
                os.kill(pid, signal.SIGKILL)
            eventually(gone(monitor, *inside), "all have ended")

        try:
            asyncio.run(self.within(test))
        except BaseException as error:  # its client has lost it
            if isinstance(error, AssertionError):
                raise

    def test_helpers_keep_nothing_of_hostler_or_of_the_program(self):
        async def test(hostler):
            worker = (await hostler.call("a_pid")).worker
            monitor = self.parent(worker)
            init = next(pid for pid in self.inside(worker) if pid != worker)
            for pid in (monitor, init):
                self.assertEqual(os.listdir(f"/proc/{pid}/fd"), ["0"], "their pipe")
                self.assertEqual(heap(pid), 0)
                self.assertGreater(heap(self.parent(monitor)), 0)
                self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
                status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
                self.assertEqual((int(status["CapEff"], 16), status["NoNewPrivs"]), (0, "1"))
            self.assertTrue(alive(monitor))

        asyncio.run(self.within(test))


if __name__ == "__main__":
    unittest.main()
