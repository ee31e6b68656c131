"""Limits on the memory and the processor time of calls, for every kind of tool."""

import json
import sys
import unittest

from harness import Calling, config_file, environment, eventually, gone, run, scratch, write_tool
from wire import Wire, call

TOOL = """
import concurrent.futures, os, subprocess, sys, threading, time

def spin(seconds: float = 600, path: str = "") -> int:
    if path:
        with open(path, "w") as file:
            file.write(str(os.getpid()))
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return os.getpid()

def spin_below() -> None:
    threading.Thread(target=subprocess.run, args=([sys.executable, "-c", "while True: pass"],)).start()
    time.sleep(600)

def spin_in_turn() -> None:
    while True:
        subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.2: pass"])

def rest(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()

def thread_spin(seconds: float = 600) -> int:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return os.getpid()

def forge() -> None:
    pipes = []
    for fd in range(3, 64):
        try:
            if "pipe:" in os.readlink(f"/proc/self/fd/{fd}"):
                pipes.append(fd)
        except OSError:
            pass
    for count in range(10**9):
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        for fd in pipes:
            try:
                os.write(fd, b'{"jsonrpc":"2.0","id":%d,"result":1}\\n' % (900000 + count))
            except OSError:
                pass

def beside(seconds: float) -> int:
    return POOL.submit(thread_spin, seconds).result()

def pid() -> int:
    return os.getpid()

POOL = concurrent.futures.ThreadPoolExecutor(1)
"""
PROGRAM = """#!{python}
import sys
if "--schema" in sys.argv:
    print('{{"description": "Use a lot.", "parameters": {{"type": "object", "properties": {{"what": {{"type": "string"}}}}}}}}')
    sys.exit()
import json
held = []
while True:
    if json.loads('"{what}"') == "memory":
        held.append(bytearray(b"x" * (10 << 20)))
"""


@unittest.skipUnless(sys.platform == "linux", "only Linux shows what a process and its children use")
class Usage(Calling):
    def setUp(self):
        self.folder, self.env = scratch(self), environment()
        self.tools = self.folder / "tools"
        write_tool(self.tools, "busy", TOOL)

    def set(self, settings, more=""):
        self.config = config_file(self.folder, f'tools = ["tools"]\n[tool]\n{settings}\n{more}')

    def serve(self):
        return Wire(self.tools, env=self.env, arguments=["--config", str(self.config)], cwd=self.folder)

    def exceeds(self, error, limit="max_cpu"):
        self.assertEqual(error["code"], "RESOURCE_EXHAUSTED", error)
        self.assertIn(f"`{limit}` at {self.config}:", error["message"])

    def test_a_call_that_computes_without_end(self):
        self.set('max_cpu = "500ms"')
        for tool in ("busy.spin", "busy.spin_below", "busy.spin_in_turn", "busy.forge"):
            with self.subTest(tool):
                error = self.error(tool)
                self.exceeds(error)
                self.assertIn("of processor time and its limit is 500ms", error["message"])

    def test_what_it_started_ends_with_it(self):
        self.set('max_cpu = "500ms"')
        with self.serve() as hostler:
            hostler.open()
            self.assertIn("RESOURCE_EXHAUSTED", hostler.fault(1, "busy_spin", path=str(self.folder / "pid")))
            pid = int((self.folder / "pid").read_text())
            eventually(gone(pid), "its worker has ended")
            self.assertNotEqual(hostler.value(2, "busy_pid"), pid)

    def test_each_call_counts_alone(self):
        self.set('max_cpu = "1s"')
        with self.serve() as hostler:
            hostler.open()
            # Together far beyond the limit; written ahead, so that the worker is never idle between them.
            for number in range(1, 6):
                hostler.send(call(number, "busy_spin", seconds=0.4))
            pids = {hostler.answer(number)["result"]["structuredContent"]["result"] for number in range(1, 6)}
            self.assertEqual(len(pids), 1, "one worker answered them all")

    def test_waiting_is_not_computing(self):
        self.set('max_cpu = "300ms"')
        self.value("busy.rest", "seconds=1.5")

    def test_of_several_calls_at_once_the_one_that_computes_is_found(self):
        self.set('max_cpu = "600ms"\nconcurrency = 4')
        with self.serve() as hostler:
            hostler.open()
            hostler.value(1, "busy_pid")
            # Together beyond the limit, none of them alone.
            for number in range(2, 6):
                hostler.send(call(number, "busy_thread_spin", seconds=0.3))
            for number in range(2, 6):
                self.assertFalse(hostler.answer(number)["result"].get("isError"))
            self.assertIn("RESOURCE_EXHAUSTED", hostler.fault(7, "busy_thread_spin"))

    def test_a_thread_of_the_tools_own_is_not_charged_for_a_call_that_has_ended(self):
        self.set('max_cpu = "600ms"\nconcurrency = 4')
        with self.serve() as hostler:
            hostler.open()
            pids = {hostler.value(number, "busy_beside", seconds=0.2) for number in range(1, 9)}
            self.assertEqual(len(pids), 1, "one worker answered them all")

    def test_executables_and_commands(self):
        for what in ("memory", "time"):
            program = self.tools / f"uses_{what}"
            program.write_text(PROGRAM.format(python=sys.executable, what=what))
            program.chmod(0o755)
        self.set('max_cpu = "500ms"\nmax_memory = "150MB"', '[builtin]\nenable = ["bash"]\nroots = ["."]\n')
        self.exceeds(self.error("uses_time"))
        self.exceeds(self.error("uses_memory"), "max_memory")
        self.exceeds(self.error("bash", "command=while :; do :; done"))
        for tool in ("busy.spin", "uses_time", "bash"):
            shown = json.loads(run("show", "--json", tool, env=self.env, cwd=self.folder).stdout)
            self.assertEqual(shown["settings"]["max_cpu"]["value"], "500ms", tool)


if __name__ == "__main__":
    unittest.main()
