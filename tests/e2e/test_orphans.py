"""That nothing of hostler, its tools and what those started is left, whatever hostler ends of."""

import os
import random
import signal
import subprocess
import time
import unittest
from pathlib import Path

from families import KILLED, below, busy, kill, kill_both, marked, names, stopped, swept, zombies
from harness import HOSTLER, ROOT, TOOLS, alive, children, config_file, environment, eventually, gone, parent, scratch, write_tool
from orphan_storm import storm
from wire import Wire, call

LIMIT = 1.0  # seconds until hostler is gone when it is asked to end


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
        self.assertIn(" WARN ", said)

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number):
                said = self.ends(lambda hostler: hostler.process.send_signal(number))
                self.assertIn(f"WARN {number.name}: ", said)

    def test_a_second_signal_skips_the_wait(self):
        def twice(hostler):
            for number in (signal.SIGTERM, signal.SIGINT):  # two of a kind may become one on the way
                hostler.process.send_signal(number)

        said = self.ends(twice, limit=0.45)
        self.assertRegex(said, r"WARN SIG\w+: the second")

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
            self.assertIn("the supervisor did not exit in time; killing it", hostler.stderr())


HIDER = """
import os, subprocess, sys

def hide() -> int:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    code = "import os, time; os.write(%d, b'%%d' %% os.getpid()); time.sleep(600)" % writer
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(sys.executable, [sys.executable, "-c", code], {})
        os._exit(0)
    return int(os.read(reader, 20))
"""


def may_make_groups():
    """Whether this user may make control groups of the second version that can be ended as a whole."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    mounts = [fields[4] for fields in mounts if "cgroup2" in fields[fields.index("-"):]]
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    if not (mounts and own):
        return False
    place = Path(mounts[0]) / own[0].lstrip("/") / f"hostler-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError:
        return False
    found = (place / "cgroup.kill").exists()
    place.rmdir()
    return found


class Killed(unittest.TestCase):
    """hostler is killed while a tool with a family runs."""

    def test_the_supervisor(self):
        for number in (signal.SIGKILL, signal.SIGABRT):  # the second as by a panic that ends everything
            with self.subTest(number), busy() as (hostler, family):
                os.kill(family.supervisor, number)
                self.assertEqual(hostler.ended(KILLED), -number, "the keeper ends as the supervisor did")
                self.assertEqual(names(family.left()), "")
                self.assertIn(f"the supervisor was killed by {number.name}; killed remaining processes: ", hostler.stderr())

    def test_the_keeper(self):
        with busy() as (hostler, family):
            os.kill(family.keeper, signal.SIGKILL)
            family.is_gone(KILLED)
            self.assertIn("was killed; hostler exits; killed remaining processes: ", hostler.stderr())

    def test_whose_worker_is_killed_with_the_keeper_is_told_no_other_reason(self):
        tools, chance = scratch(self), random.Random(3)
        for number in range(12):
            write_tool(tools, f"t{number}", "def wait() -> None:\n    import time\n    time.sleep(600)\n")
        for _ in range(12):
            with Wire(tools) as hostler:
                hostler.open()
                for number in range(12):
                    hostler.send(call(number + 1, f"t{number}_wait"))
                time.sleep(0.02 + chance.random() * 0.2)  # in the midst of their starts
                os.kill(hostler.process.pid, signal.SIGKILL)
                with self.assertRaises(EOFError):
                    hostler.answer(0)
                self.assertEqual([note for note in hostler.notes if "id" in note], [])

    def test_the_keeper_of_a_supervisor_that_is_stopped(self):
        with busy() as (_, family):
            os.kill(family.supervisor, signal.SIGSTOP)
            eventually(lambda: stopped(family.supervisor), "the supervisor is stopped")
            os.kill(family.keeper, signal.SIGKILL)
            # Its group has lost the last parent that could continue it, so the kernel does.
            family.is_gone(KILLED)

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

    def test_both_at_once_and_the_next_start_cleans_up(self):
        with busy() as (hostler, family):
            kill_both(family.keeper, family.supervisor)
            launcher = next(pid for pid in family.all if pid not in {family.supervisor, *family.tools})
            eventually(gone(launcher), "what the supervisor started itself died with it", KILLED)
            with Wire(TOOLS, arguments=("-vv",)) as another:
                another.open()
                said = swept(another)
                family.is_gone(KILLED)
        # Whoever else starts a hostler on this machine may have been faster, with some of them or all.
        told = [line for line in said.splitlines() if "ended a process left behind by a killed hostler" in line]
        self.assertLessEqual(sum(f"run={family.supervisor}" in line for line in told), len(family.tools), said)

    @unittest.skipUnless(may_make_groups(), "no control group can be made here")
    def test_both_at_once_and_the_next_start_finds_who_emptied_its_environment(self):
        folder = scratch(self)
        write_tool(folder / "tools", "hider", HIDER)
        with Wire(folder / "tools") as hostler:
            hostler.open()
            pid = hostler.value(1, "hider_hide")
            group = next(line for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::"))
            self.assertIn("/hostler.", group)
            self.assertEqual(Path(f"/proc/{pid}/environ").read_bytes(), b"")
            kill_both(hostler.process.pid, hostler.supervisor)
            self.assertTrue(alive(pid))
            with Wire(TOOLS, arguments=("-vv",)) as another:
                another.open()
                eventually(gone(pid), "a daemon with an empty environment", KILLED)

    def test_both_at_once_and_the_next_start_outruns_chains_that_fork_on(self):
        for _ in range(3):
            folder = scratch(self)

            def told():
                return [(folder / str(number)).read_text() for number in range(4) if (folder / str(number)).exists()]

            with Wire(TOOLS) as hostler:
                hostler.open()
                hostler.value(1, "families_chains", count=4, seconds=20, folder=str(folder))
                eventually(lambda: len(told()) == 4, "the chains run")
                before = told()
                eventually(lambda: all(old != new for old, new in zip(before, told())), "they fork on")
                kill_both(hostler.process.pid, hostler.supervisor)
                with Wire(TOOLS, arguments=("-vv",)) as another:
                    another.open()
                    swept(another)
                    last = told()
                    with self.assertRaises(AssertionError, msg="a chain goes on"):
                        eventually(lambda: told() != last, "", limit=0.5)

    def test_both_at_once_and_idle_workers_leave_by_themselves(self):
        with Wire(TOOLS) as hostler:
            hostler.open()
            worker = hostler.worker(1, "slow_echo", number=1)
            self.assertTrue(alive(worker))
            keeper, served = hostler.process.pid, hostler.supervisor
            kill_both(keeper, served)
            eventually(gone(worker), "the worker reads the end of its input", KILLED)

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

    def test_a_worker_that_is_replaced_takes_its_unmarked_children_along(self):
        config = config_file(scratch(self), "[tool.families]\nmax_calls = 1\n")
        with Wire(TOOLS, arguments=("--config", str(config))) as hostler:
            hostler.open()
            worker, child = hostler.value(1, "families_unmarked")
            self.addCleanup(kill, child, signal.SIGKILL)
            eventually(gone(worker), "the worker was replaced")
            eventually(gone(child), "its child went with it", KILLED)

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


DEEP = '''
import os, subprocess

def chain(place: str, depth: int) -> int:
    """Start a process that starts a process, and so on."""
    with open(place, "w") as script:
        script.write('#!/bin/sh\\nif [ $1 -gt 0 ]; then "$0" $(($1 - 1)); else echo there; sleep 600; fi; true\\n')
    os.chmod(place, 0o755)
    child = subprocess.Popen([place, str(depth)], stdout=subprocess.PIPE, start_new_session=True)
    child.stdout.readline()
    return child.pid

def die() -> None:
    """Leave it all behind."""
    os._exit(3)
'''


class Deep(unittest.TestCase):
    """A family of a thousand generations costs no more than any other family of a thousand."""

    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "deep", DEEP)
        write_tool(self.folder / "tools", "other", "def after() -> int:\n    return 1\n")
        self.hostler = Wire(self.folder / "tools")
        self.addCleanup(self.hostler.__exit__)
        self.hostler.open()
        self.assertEqual(self.hostler.value(1, "other_after"), 1)

    def chain(self, number):
        top = self.hostler.value(number, "deep_chain", place=str(self.folder / "chain"), depth=1000)
        family = [top, *below(top)]
        self.assertGreater(len(family), 1000)
        return family

    def test_its_end_holds_up_no_neighbour(self):
        family = self.chain(2)
        self.hostler.send(call(3, "deep_die"))
        slowest = 0
        limit = time.monotonic() + 20
        number = 4
        while any(map(alive, family[:1] + family[-1:])) or number < 50:
            began = time.monotonic()
            self.hostler.send(call(number, "other_after"))
            self.hostler.answer(number)
            slowest = max(slowest, time.monotonic() - began)
            self.assertLess(time.monotonic(), limit, "it is still there")
            number += 1
        self.assertLess(slowest, 0.5)
        eventually(gone(*family), "nobody is left", 5)
        eventually(lambda: not zombies(self.hostler.supervisor), "the dead are reaped")

    def test_hostler_ends_in_time(self):
        family = self.chain(2)
        self.hostler.process.terminate()
        self.assertEqual(self.hostler.ended(LIMIT), 0)
        self.assertEqual([pid for pid in family if alive(pid)], [])


class Neighbours(unittest.TestCase):
    """What is not hostler's, or another hostler's, is let be."""

    def test_a_start_sweeps_nothing_of_a_living_hostler(self):
        with busy() as (_, family), Wire(TOOLS) as another:
            another.open()
            with busy() as (_, dead):
                kill_both(dead.keeper, dead.supervisor)
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


class Storm(unittest.TestCase):
    def test_a_short_one(self):
        told = storm(rounds=5, seed=17)
        self.assertEqual((told.survivors, told.landed), (0, 5), told)
        self.assertGreater(told.lived, 40, told)


if __name__ == "__main__":
    unittest.main()
