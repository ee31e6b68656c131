"""`hostler top` at a terminal: what a person sees there, and what keys do."""

import contextlib
import fcntl
import itertools
import os
import pty
import select
import signal
import struct
import termios
import threading
import time

import pyte

from harness import HOSTLER, write_tool
from test_shared import Shared, until
from wire import call

TOOL = r'''
import os, time, hostler

def pid() -> int:
    return os.getpid()

def wait(seconds: float = 600.0) -> str:
    time.sleep(seconds)
    return "waited"

def paint():
    print("\x1b]0;pwned\x07\x1b[2J\x9b2Jpainted\u2028\u200b\U000e0041", flush=True)
    raise ValueError("\x1b[31mred")

def loud(count: int):
    for number in range(count):
        print(number, "x" * 500)
'''


class Terminal:
    """A terminal with one program, whose screen is kept as a person would see it."""

    def __init__(self, test, words, env, folder, size=(110, 40), kind="xterm-256color"):
        self.screen = pyte.Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        self.lock = threading.Lock()
        self.is_read = True
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            self.size(*size, terminal=0)
            os.execve(words[0], [str(word) for word in words], {**env, "TERM": kind})
        self.begin_reading()
        test.addCleanup(self.end)

    def begin_reading(self):
        self.is_read = True
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def stop_reading(self):
        self.is_read = False
        self.reader.join()

    def read(self):
        with contextlib.suppress(OSError):
            while self.is_read:
                if select.select([self.terminal], [], [], 0.05)[0]:
                    found = os.read(self.terminal, 1 << 16)
                    with self.lock:
                        self.bytes += found
                        self.stream.feed(found)

    def close(self):
        """What closing its window does."""
        self.stop_reading()
        os.close(self.terminal)
        self.terminal = None

    def size(self, width, height, terminal=None):
        with self.lock:
            self.screen.resize(height, width)
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(self.terminal if terminal is None else terminal, termios.TIOCSWINSZ, size)

    def text(self):
        with self.lock:
            return "\n".join(self.screen.display)

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def shows(self, *words):
        """Waits until all these words are seen."""
        try:
            until(lambda: all(word in self.text() for word in words))
        except AssertionError:
            raise AssertionError(f"{words} are not seen in\n{self.text()}") from None

    def echoes(self):
        return bool(termios.tcgetattr(self.terminal)[3] & termios.ECHO)

    def waits(self, options=0):
        """What the program's end, or its stop, was."""
        status = until(lambda: (found := os.waitpid(self.pid, options | os.WNOHANG))[0] and found)[1]
        if not os.WIFSTOPPED(status):
            self.pid = None
        return status

    def end(self):
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.terminal is not None:
            self.close()


class Top(Shared):
    def setUp(self):
        super().setUp()
        write_tool(self.tools, "t", TOOL)

    def top(self, words=(HOSTLER, "top"), **options):
        return Terminal(self, words, self.env, self.folder, **options)

    def hears(self, wire, top):
        """Waits until events are seen, which begins a little after the first answer."""
        numbers = itertools.count(1000)
        until(lambda: wire.value(next(numbers), "t.pid") and "completed in" in top.text())

    def test_a_call_is_seen_and_cancelled(self):
        wire, top = self.open(), self.top()
        wire.send(call(7, "t.wait"))
        top.shows("t.wait", "running", "busy", "running 1 of")
        top.type("c")
        top.shows("Cancel the call", "y: yes")
        top.type("n")
        until(lambda: "Cancel the call" not in top.text())
        top.type("cy")
        self.assertEqual(wire.answer(7)["result"]["_meta"]["hostler/outcome"]["error"]["code"], "CANCELLED")
        top.shows("cancelled", "the call is cancelled", "running 0 of")
        top.type("\r")
        top.shows("details", "CANCELLED:", "session")

    def test_workers_are_restarted_and_drained(self):
        wire, top = self.open(), self.top()
        pids = lambda: top.text().partition("tool file")[2].partition("calls")[0]
        before = wire.value(1, "t.pid")
        top.type("\x1b[Z")
        for number, keys in ((2, "ry"), (3, "dy")):
            until(lambda: str(before) in pids())
            top.type(keys)
            until(lambda: str(before) not in pids())
            now = wire.value(number, "t.pid")
            self.assertNotEqual(now, before)
            before = now

    def test_it_follows_the_hostler_that_runs(self):
        top = self.top()
        top.shows("no shared hostler is running")
        for _ in range(2):
            wire = self.open()
            top.shows(f"process {self.status()['pid']} ", "sessions 1")
            self.hears(wire, top)
            self.stop()
            top.shows("no shared hostler is running")

    def test_the_terminal_is_given_back(self):
        self.open()
        for keys, number, status in (("q", None, 0), ("\x03", None, 0), ("", signal.SIGTERM, 130)):
            with self.subTest(keys=keys, signal=number):
                top = self.top()
                top.shows("sessions 1")
                self.assertFalse(top.echoes())
                top.type(keys)
                if number:
                    os.kill(top.pid, number)
                self.assertEqual(os.waitstatus_to_exitcode(top.waits()), status)
                self.assertTrue(top.echoes())
                until(lambda: b"\x1b[?1049l" in top.bytes and b"\x1b[?25h" in top.bytes)

    def test_it_ends_quietly_when_its_window_is_closed(self):
        self.open()
        error = self.folder / "error"
        for words in ((HOSTLER, "top"), ("/bin/sh", "-c", f'exec "{HOSTLER}" top 2>"{error}"')):
            with self.subTest(words=words):
                top = self.top(words)
                top.shows("sessions 1")
                top.close()
                self.assertEqual(os.waitstatus_to_exitcode(top.waits()), 130)
        self.assertEqual(error.read_text(), "")

    def test_it_is_whole_when_the_terminal_has_its_size_back(self):
        self.open()
        top = self.top()
        top.shows("sessions 1", "q quit")
        for _ in range(3):
            top.size(30, 10)
            time.sleep(0.02)
            top.size(110, 40)
            top.shows("sessions 1", "▸ calls 0", "┌ events", "└─", "q quit")

    def test_a_terminal_that_is_not_read_holds_up_no_end(self):
        self.open()
        for keys, number, status in (("q", None, 0), ("", signal.SIGTERM, 130)):
            with self.subTest(keys=keys, signal=number):
                top = self.top()
                top.shows("sessions 1")
                top.stop_reading()
                for width in range(300, 330):
                    top.size(width, 100)
                    time.sleep(0.11)  # until it is drawn: more than a terminal takes
                top.type(keys)
                if number:
                    os.kill(top.pid, number)
                self.assertEqual(os.waitstatus_to_exitcode(top.waits()), status)
                self.assertTrue(top.echoes())

    def test_it_stops_and_goes_on(self):
        self.open()
        top = self.top()
        top.shows("sessions 1")
        for stop in (lambda: top.type("\x1a"), lambda: os.kill(top.pid, signal.SIGTSTP)):
            before = len(top.bytes)
            stop()
            self.assertTrue(os.WIFSTOPPED(top.waits(os.WUNTRACED)))
            until(lambda: b"\x1b[?1049l" in top.bytes[before:] and b"\x1b[?25h" in top.bytes[before:])
            self.assertTrue(top.echoes())
            shown = len(top.bytes)
            os.kill(top.pid, signal.SIGCONT)
            until(lambda: b"\x1b[?1049h" in top.bytes[shown:] and b"sessions" in top.bytes[shown:])
            self.assertFalse(top.echoes())
        top.type("q")
        self.assertEqual(top.waits(), 0)

    def test_what_a_tool_writes_does_not_reach_the_terminal_raw(self):
        wire, top = self.open(), self.top()
        self.hears(wire, top)
        wire.send(call(9, "t.paint"))
        wire.answer(9)
        top.shows("painted", "TOOL_ERROR")
        top.type("\r")
        top.shows("details", "red")
        for sequence in (b"\x1b]0;", b"\x9b2J", b"\x1b[31mred", b"\x07", *map(str.encode, "\u2028\u200b\U000e0041")):
            self.assertNotIn(sequence, top.bytes)

    def test_a_tool_that_writes_much_does_not_hold_it_up(self):
        wire, top = self.open(), self.top()
        top.shows("sessions 1")
        wire.value(104, "t.loud", count=20_000)
        wire.value(105, "t.pid")
        top.shows("t.loud", "t.pid", "complete")
        top.type("\t")
        top.shows("▸ events")
        top.type("q")
        self.assertEqual(top.waits(), 0)

    def test_a_small_terminal_has_one_list(self):
        self.open().value(106, "t.pid")
        top = self.top(size=(40, 8))
        top.shows("▸ calls 1", "t.pid")
        top.type("\t\t")
        top.shows("▸ workers 1")

    def test_it_needs_a_terminal(self):
        done = self.run_hostler("top")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("hostler status --json", done.stderr)
        for kind in ("dumb", ""):
            with self.subTest(kind=kind):
                top = self.top(kind=kind)
                self.assertEqual(os.waitstatus_to_exitcode(top.waits()), 2)
                until(lambda: b"TERM" in top.bytes and b"hostler status --watch" in top.bytes)
                self.assertNotIn(b"\x1b[?1049h", top.bytes)
