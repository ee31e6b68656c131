"""hostler at a terminal: Ctrl-C, Ctrl-Z, and a terminal that is closed."""

import contextlib
import os
import pty
import select
import signal
import sys
import threading
import unittest

from families import KILLED, below, kill, marked, names, state
from harness import HOSTLER, ROOT, TOOLS, alive, environment, eventually, parent, supervisor

# As shells do it: the command gets a group of its own and the terminal; stopped, it gets both back when it is told to.
SHELL = """
import os, signal, sys
told, orders = int(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
command = os.fork()
if command == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.close(told), os.close(orders)
    os.execv(sys.argv[3], sys.argv[3:])
os.write(told, b"%d\\n" % command)
while True:
    status = os.waitpid(command, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(0, os.getpgrp())
    os.write(told, b"stopped\\n")
    os.read(orders, 1)
    os.tcsetpgrp(0, command)
    os.killpg(command, signal.SIGCONT)
os.write(told, b"ended %d\\n" % os.waitstatus_to_exitcode(status))
"""


class Terminal(unittest.TestCase):
    """`hostler call` at a terminal: the keys do what they do for other programs."""

    def begin(self, redirect=False):
        """Starts it from a shell. With its streams elsewhere, the supervisor leaves the terminal's group."""
        told, tell = os.pipe()
        orders, self.orders = os.pipe()
        words = [HOSTLER, "call", "--tools", str(TOOLS), "families.found_and_stay"]
        if redirect:
            words = ["/bin/sh", "-c", 'exec "$@" </dev/null >/dev/null 2>&1', "sh", *words]
        shell, self.terminal = pty.fork()
        if shell == 0:
            os.chdir(ROOT)
            os.set_inheritable(tell, True), os.set_inheritable(orders, True)
            os.execve(sys.executable, [sys.executable, "-c", SHELL, str(tell), str(orders), *words], environment())
        os.close(tell), os.close(orders)
        self.told = os.fdopen(told)
        self.addCleanup(self.told.close)
        self.addCleanup(os.close, self.orders)
        self.addCleanup(os.waitpid, shell, 0)
        self.addCleanup(kill, shell, signal.SIGKILL)
        self.addCleanup(self.close)
        # The terminal is read, or what is said would hold hostler.
        threading.Thread(target=self.listen, args=[os.dup(self.terminal)], daemon=True).start()
        self.keeper = int(self.told.readline())
        self.addCleanup(kill, self.keeper, signal.SIGKILL)
        self.supervisor = supervisor(self.keeper)
        eventually(lambda: len(marked(self.supervisor)) >= 6, "uv, the worker and its family live", limit=30)
        self.family = {self.supervisor, *below(self.supervisor), *marked(self.supervisor)}

    def listen(self, terminal):
        with contextlib.suppress(OSError):
            while select.select([terminal], [], [])[0] and os.read(terminal, 1 << 16):
                pass
        os.close(terminal)

    def close(self):
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None

    def nobody_is_left(self):
        self.assertEqual(names([pid for pid in self.family if alive(pid)]), "")

    def test_ctrl_c(self):
        for redirect in (False, True):
            with self.subTest(redirect=redirect):
                self.begin(redirect)
                same = os.getpgid(self.supervisor) == self.keeper
                self.assertEqual(same, not redirect, "only a terminal's reader needs to be in its group")
                os.write(self.terminal, b"\x03")
                self.assertEqual(self.told.readline(), "ended 130\n")
                self.nobody_is_left()

    def test_ctrl_z_and_back(self):
        for redirect in (False, True):
            with self.subTest(redirect=redirect):
                self.begin(redirect)
                os.write(self.terminal, b"\x1a")
                self.assertEqual(self.told.readline(), "stopped\n")
                eventually(lambda: state(self.supervisor) == "T", "both are stopped")
                os.write(self.orders, b"g")
                eventually(lambda: "T" not in (state(self.keeper), state(self.supervisor)), "both go on")
                os.write(self.terminal, b"\x03")
                self.assertEqual(self.told.readline(), "ended 130\n")
                self.nobody_is_left()

    def test_a_terminal_that_is_killed(self):
        self.begin()
        # What a terminal's window does when it is closed: the shell is gone, and the kernel hangs up on its group.
        os.kill(parent(self.keeper), signal.SIGKILL)
        eventually(lambda: not any(map(alive, {self.keeper, *self.family})), "hostler is gone", limit=KILLED)


if __name__ == "__main__":
    unittest.main()
