"""That nothing of hostler, its tools and what those started is left, whatever hostler ends of."""

import contextlib
import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from families import below, kill, marked, names, zombies
from harness import HOSTLER, ROOT, TOOLS, alive, children, environment, eventually, gone, parent, scratch, supervisor, write_tool
from orphan_storm import storm
from test_starting import BODY, environments
from wire import Wire, call

LIMIT = 1.0  # seconds until hostler is gone when it is asked to end
KILLED = 2.0  # seconds until nothing is left when hostler itself is killed


class Family:
    """A hostler with a call under way, and everybody who belongs to it."""

    def __init__(self, hostler, number=1):
        self.keeper, self.supervisor = hostler.process.pid, hostler.supervisor
        self.tools = hostler.began(number, "families_found_and_stay")
        self.all = {self.supervisor, parent(self.tools[0]), *self.tools, *below(self.supervisor)}

    def lives(self):
        """Everybody has lived: a test that kills nobody proves nothing."""
        dead = [pid for pid in self.all if not alive(pid)]
        assert not dead and len(self.all) >= 7, f"supervisor, uv, worker and four more should live; dead: {dead} of {self.all}"
        carriers = set(marked(self.supervisor))
        assert set(self.tools) <= carriers, f"{self.tools} carry the mark; found {carriers}"
        return self

    def left(self):
        return [pid for pid in {*self.all, *marked(self.supervisor)} if alive(pid)]

    def is_gone(self, limit):
        try:
            eventually(lambda: not self.left(), "everybody is gone", limit)
        except AssertionError:
            raise AssertionError(f"left after {limit} s: {names(self.left())}") from None


@contextlib.contextmanager
def busy(**options):
    with Wire(TOOLS, **options) as hostler:
        hostler.open()
        family = Family(hostler).lives()
        try:
            yield hostler, family
        finally:
            for pid in family.left():  # a failed test leaves nothing either
                kill(pid, signal.SIGKILL)


def swept(hostler):
    """Waits until a hostler has looked for what others left; gives what it said till then."""
    said = ""
    while "looked for what killed hostlers had left behind" not in said:
        line = hostler.process.stderr.readline().decode()
        assert line, f"it ended before it looked: {said}"
        said += line
    return said


class Asked(unittest.TestCase):
    """hostler is asked to end while a tool with a family runs and hears no polite request."""

    def ends(self, way, status=0, limit=LIMIT, **options):
        with busy(**options) as (hostler, family):
            way(hostler)
            self.assertEqual(hostler.ended(limit), status)
            # Everybody is gone before hostler is, for whoever waits for it.
            self.assertEqual(names(family.left()), "")
            return hostler.stderr()

    def test_its_input_ends(self):
        said = self.ends(Wire.end_input)
        self.assertIn("calls were still under way; their workers are killed", said)

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number):
                said = self.ends(lambda hostler: hostler.process.send_signal(number))
                self.assertIn(f"{number.name}: ending; calls under way have 500 ms, or until a second signal", said)
                self.assertIn("calls were still under way; their workers are killed", said)

    def test_a_second_signal_skips_the_wait(self):
        def twice(hostler):
            for number in (signal.SIGTERM, signal.SIGINT):  # two of a kind may become one on the way
                hostler.process.send_signal(number)

        said = self.ends(twice, limit=0.45)
        self.assertIn("the second signal; calls under way are ended at once", said)

    def test_a_signal_to_keeper_and_supervisor_is_one(self):
        with Wire(TOOLS) as hostler:
            hostler.open()
            hostler.value(1, "slow_echo", number=1)
            hostler.began(2, "slow_nap", seconds=0.3)
            for pid in (hostler.supervisor, hostler.process.pid):  # as by the program's name
                os.kill(pid, signal.SIGTERM)
            self.assertEqual(hostler.answer(2)["result"]["structuredContent"], {"result": "slept"})
            self.assertEqual(hostler.ended(LIMIT), 0)

    def test_a_supervisor_that_is_stuck_is_killed_by_its_keeper(self):
        with busy() as (hostler, family):
            os.kill(family.supervisor, signal.SIGSTOP)
            for number in (signal.SIGTERM, signal.SIGINT):
                hostler.process.send_signal(number)
            self.assertEqual(hostler.ended(KILLED), -signal.SIGKILL)
            self.assertEqual(names(family.left()), "")
            self.assertIn("the supervisor did not end in time and is killed", hostler.stderr())


class Killed(unittest.TestCase):
    """hostler is killed while a tool with a family runs."""

    def test_the_supervisor(self):
        for number in (signal.SIGKILL, signal.SIGABRT):  # the second as by a panic that ends everything
            with self.subTest(number), busy() as (hostler, family):
                os.kill(family.supervisor, number)
                self.assertEqual(hostler.ended(KILLED), -number, "the keeper ends as the supervisor did")
                self.assertEqual(names(family.left()), "")
                self.assertIn(f"the supervisor was ended by {number.name}; killed what was left: ", hostler.stderr())

    def test_the_keeper(self):
        with busy() as (hostler, family):
            os.kill(family.keeper, signal.SIGKILL)
            family.is_gone(KILLED)
            self.assertIn("was killed, so hostler ends at once; killed what was left: ", hostler.stderr())

    def test_the_keepers_whole_group(self):
        # As clients do that lose patience. The supervisor has left that group.
        with busy() as (hostler, family):
            os.killpg(family.keeper, signal.SIGKILL)
            family.is_gone(KILLED)

    def test_the_supervisor_and_its_group(self):
        with busy() as (hostler, family):
            os.killpg(os.getpgid(family.supervisor), signal.SIGKILL)
            self.assertEqual(hostler.ended(KILLED), -signal.SIGKILL)
            self.assertEqual(names(family.left()), "")

    def both_killed(self, hostler, family):
        """Neither can clean up after the other."""
        for pid in (family.keeper, family.supervisor):
            os.kill(pid, signal.SIGSTOP)
        for pid in (family.keeper, family.supervisor):
            os.kill(pid, signal.SIGKILL)
        hostler.process.wait()
        eventually(gone(family.supervisor), "the supervisor is dead")

    def test_both_at_once_and_the_next_start_cleans_up(self):
        with busy() as (hostler, family):
            self.both_killed(hostler, family)
            launcher = next(pid for pid in family.all if pid not in {family.supervisor, *family.tools})
            eventually(gone(launcher), "what the supervisor started itself died with it", KILLED)
            self.assertTrue(all(map(alive, family.tools)), "the others do not know yet")
            with Wire(TOOLS, arguments=("-vv",)) as another:
                another.open()
                said = swept(another)
                family.is_gone(KILLED)
            self.assertEqual(said.count("ended what a killed hostler had left behind"), len(family.tools), said)

    def test_both_at_once_and_idle_workers_leave_by_themselves(self):
        with Wire(TOOLS) as hostler:
            hostler.open()
            worker = hostler.worker(1, "slow_echo", number=1)
            self.assertTrue(alive(worker))
            keeper, served = hostler.process.pid, hostler.supervisor
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in (keeper, served):
                    os.kill(pid, number)
            eventually(gone(served, worker), "the worker reads the end of its input", KILLED)

    def test_at_any_moment_of_a_start(self):
        chance = random.Random(6)
        lived = 0
        for number in range(12):
            with Wire(TOOLS) as hostler:
                hostler.open()
                keeper, served = hostler.process.pid, hostler.supervisor
                hostler.send(call(1, "families_found_and_stay", 1))
                time.sleep(chance.random() * 0.15)  # any moment is the point
                members = {*below(served), *marked(served)}
                lived += bool(members)
                kill(served if number % 2 else keeper, signal.SIGKILL)
                left = lambda: [pid for pid in {served, *members, *marked(served)} if alive(pid)]  # noqa: E731
                with self.subTest(number, killed="supervisor" if number % 2 else "keeper", members=len(members)):
                    eventually(lambda: not left(), "everybody is gone", KILLED)
        self.assertGreater(lived, 3, "there was mostly nobody to kill")


class Builds(unittest.TestCase):
    """hostler ends while uv builds, and what uv started does not end by itself."""

    def setUp(self):
        self.cache = scratch(self)
        self.told = self.cache / "told"
        source = self.cache / "slowlib"
        source.mkdir()
        (source / "pyproject.toml").write_text(
            '[project]\nname = "slowlib"\nversion = "1.0"\n'
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
        (source / "backend.py").write_text(
            "import os, signal, subprocess, sys, time\n"
            "def build_wheel(*_):\n"
            "    for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\n"
            "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
            f"    with open({str(self.told) + '.new'!r}, 'w') as told: told.write(f'{{os.getpid()}} {{child.pid}}')\n"
            f"    os.rename({str(self.told) + '.new'!r}, {str(self.told)!r})\n"
            "    time.sleep(600)\n"
            "build_editable = build_wheel\n")
        header = f'# /// script\n# dependencies = ["slowlib"]\n# [tool.uv.sources]\n# slowlib = {{ path = "{source}" }}\n# ///\n'
        write_tool(self.cache / "tools", "engine", BODY, header)
        self.env = environment(XDG_CACHE_HOME=self.cache, UV_CACHE_DIR=self.cache / "uv")

    @contextlib.contextmanager
    def building(self, *words):
        self.told.unlink(missing_ok=True)
        with subprocess.Popen([HOSTLER, *words, "--tools", str(self.cache / "tools")], env=self.env, cwd=ROOT, text=True,
                              stdin=subprocess.DEVNULL if words[0] != "dev" else subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, start_new_session=True) as hostler:
            try:
                if words[0] == "dev":
                    hostler.stdin.write("well\n")
                    hostler.stdin.flush()
                eventually(self.told.exists, "the backend runs", limit=60)
                served = supervisor(hostler.pid)
                builders = {*map(int, self.told.read_text().split()), *below(served)}
                self.assertTrue(len(builders) >= 3 and all(map(alive, builders)), "uv, the backend and its child live")
                yield hostler, served, builders
            finally:
                hostler.kill()

    def test_it_is_asked_to_end(self):
        for words in (["warm"], ["call", "engine.well"], ["dev", str(self.cache / "tools" / "engine.py")]):
            for numbers in ([signal.SIGTERM], [signal.SIGINT], [signal.SIGTERM, signal.SIGINT]):
                with self.subTest(words[0], numbers=numbers), self.building(*words) as (hostler, served, builders):
                    began = time.monotonic()
                    for number in numbers:
                        hostler.send_signal(number)
                    status = hostler.wait(30)
                    self.assertLess(time.monotonic() - began, LIMIT)
                    self.assertEqual(status, 0 if words[0] == "dev" else 130)
                    self.assertEqual(names([pid for pid in {served, *builders, *marked(served)} if alive(pid)]), "")
                    self.assertEqual(environments(self.cache), ([], []), "what was half built is thrown away")
                    self.assertRegex(hostler.stderr.read(), "|".join(number.name for number in numbers))

    def test_it_is_killed(self):
        for who in ("supervisor", "keeper"):
            with self.subTest(who), self.building("warm") as (hostler, served, builders):
                os.kill(served if who == "supervisor" else hostler.pid, signal.SIGKILL)
                left = lambda: [pid for pid in {served, *builders, *marked(served)} if alive(pid)]  # noqa: E731
                eventually(lambda: not left(), "everybody is gone", KILLED)
                self.assertEqual(environments(self.cache)[0], [])
        # What the killed ones left on the disk goes with the next build.
        with self.building("warm") as (hostler, _, _):
            self.assertEqual(len(environments(self.cache)[1]), 1, "its own and no other")
            hostler.send_signal(signal.SIGTERM)
            hostler.wait(30)
        self.assertEqual(environments(self.cache), ([], []))


class Workers(unittest.TestCase):
    """What a tool started lives as long as its worker, and no longer."""

    def setUp(self):
        self.hostler = Wire(TOOLS)
        self.addCleanup(self.hostler.__exit__)
        self.hostler.open()
        self.supervisor = self.hostler.supervisor

    def test_a_family_lives_on_after_the_call_and_goes_with_its_worker(self):
        worker, *family = self.hostler.value(1, "families_found")
        self.assertTrue(all(map(alive, [worker, *family])))
        self.assertEqual(parent(family[-1]), self.supervisor, "the daemon was adopted")
        other = self.hostler.worker(2, "slow_echo", number=1)
        self.assertTrue(all(map(alive, [worker, *family])), "another worker's start changes nothing")
        os.kill(other, signal.SIGKILL)
        eventually(gone(other), "the other worker is gone")
        eventually(lambda: len(children(self.supervisor)) == 2, "its launcher too")
        self.assertTrue(all(map(alive, [worker, *family])), "another worker's end neither")
        os.kill(worker, signal.SIGKILL)
        eventually(gone(worker, *family), "the family went with its worker", KILLED)
        eventually(lambda: not zombies(self.supervisor), "the dead are reaped")
        self.assertEqual(self.hostler.value(3, "slow_echo", number=3)["number"], 3)

    def test_a_family_goes_with_a_worker_that_was_stopped(self):
        self.hostler.send(call(1, "families_found_and_stay", 1))
        family = []
        while not family:
            text = (self.hostler.read().get("params") or {}).get("message") or ""
            family = [int(word) for word in text.split()[1:]] if text.startswith("began ") else []
        self.hostler.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n')
        try:
            eventually(gone(*family), "the family went with its worker", 5)
        except AssertionError:
            raise AssertionError(f"left: {names(filter(alive, family))}") from None
        eventually(lambda: not zombies(self.supervisor), "the dead are reaped")

    def test_who_cannot_be_told_apart_goes_with_hostler(self):
        worker, child = self.hostler.value(1, "families_unmarked")
        self.addCleanup(kill, child, signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        eventually(gone(worker), "the worker is gone")
        eventually(lambda: parent(child) == self.supervisor, "its child was adopted")
        self.assertTrue(alive(child))
        self.hostler.end_input()
        self.assertEqual(self.hostler.ended(LIMIT), 0)
        self.assertFalse(alive(child))

    def test_a_family_goes_with_a_finished_command(self):
        done = subprocess.run([HOSTLER, "call", "--tools", str(TOOLS), "families.found"], env=environment(), cwd=ROOT,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        pids = [int(word) for word in done.stdout.strip("[]\n ").replace(",", " ").split()]
        self.assertEqual(len(pids), 5)
        self.assertEqual(names([pid for pid in pids if alive(pid)]), "")


class Neighbours(unittest.TestCase):
    """What is not hostler's, or another hostler's, is let be."""

    def test_a_start_sweeps_nothing_of_a_living_hostler(self):
        with busy() as (_, family), Wire(TOOLS) as another:
            another.open()
            with busy() as (_, dead):
                for number in (signal.SIGSTOP, signal.SIGKILL):
                    for pid in (dead.keeper, dead.supervisor):
                        os.kill(pid, number)
                with Wire(TOOLS, arguments=("-vv",)) as third:
                    third.open()
                    swept(third)
                    dead.is_gone(KILLED)
                    third.end_input()
                    third.ended(LIMIT)  # whoever was killed by mistake has died by now, too
                self.assertEqual(another.value(1, "slow_echo", number=1)["number"], 1)
                family.lives()

    def test_children_from_before_are_let_be(self):
        # A script that starts something and then becomes hostler: that child is hostler's by the table, and not its own.
        words = ["sh", "-c", 'sleep 600 & echo $! >&2; exec "$@"', "sh"]
        with Wire(TOOLS, before=words) as hostler:
            neighbour = int(hostler.process.stderr.readline())
            self.addCleanup(kill, neighbour, signal.SIGKILL)
            hostler.open()
            hostler.worker(1, "slow_echo", number=1)
            self.assertEqual(parent(neighbour), hostler.process.pid)
            hostler.end_input()
            self.assertEqual(hostler.ended(LIMIT), 0)
            self.assertTrue(alive(neighbour))


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


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def may_unshare():
    words = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"]
    return shutil.which("unshare") is not None and subprocess.run(words, capture_output=True).returncode == 0


@unittest.skipUnless(may_unshare(), "this system lets nobody make a namespace of processes")
class Container(unittest.TestCase):
    """hostler as the first process of a container."""

    BEFORE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")

    @contextlib.contextmanager
    def contained(self):
        with Wire(TOOLS, before=self.BEFORE) as hostler:
            hostler.open()
            keeper, = children(hostler.process.pid)
            served = supervisor(keeper)
            hostler.send(call(1, "families_found_and_stay", 1))
            while not ((hostler.read().get("params") or {}).get("message") or "").startswith("began "):
                pass
            family = {keeper, served, *below(served)}
            self.assertGreaterEqual(len(family), 8, "keeper, supervisor, uv, the worker and its family")
            yield hostler, keeper, served, family

    def test_it_hears_signals_and_leaves_nobody(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number), self.contained() as (hostler, keeper, served, family):
                os.kill(keeper, number)
                self.assertEqual(hostler.ended(LIMIT), 0)
                self.assertEqual(names([pid for pid in family if alive(pid)]), "")
                self.assertIn(f"{number.name}: ending", hostler.stderr())

    def test_it_cleans_up_after_its_supervisor(self):
        with self.contained() as (hostler, keeper, served, family):
            os.kill(served, signal.SIGKILL)
            self.assertEqual(hostler.ended(KILLED), 128 + signal.SIGKILL, "no signal of its own ends the first process")
            self.assertEqual(names([pid for pid in family if alive(pid)]), "")
            # The kernel would kill them all with the first process, too; it was not left to that.
            self.assertIn("killed what was left: ", hostler.stderr())

    def test_a_namespace_whose_table_shows_other_numbers_hits_nobody(self):
        # Without a /proc of its own, numbers read there are strangers'.
        before = [word for word in self.BEFORE if word != "--mount-proc"]
        with Wire(TOOLS, before=before) as hostler, busy() as (_, neighbours):
            hostler.open()
            self.assertEqual(hostler.value(1, "plain_greet", name="x"), "good morning, x")
            keeper, = children(hostler.process.pid)
            os.kill(keeper, signal.SIGTERM)
            self.assertEqual(hostler.ended(LIMIT), 0)
            neighbours.lives()


class Storm(unittest.TestCase):
    def test_a_short_one(self):
        told = storm(rounds=5, seed=17)
        self.assertEqual((told.survivors, told.landed), (0, 5), told)
        self.assertGreater(told.lived, 40, told)


if __name__ == "__main__":
    unittest.main()
