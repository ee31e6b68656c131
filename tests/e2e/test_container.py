"""hostler in a namespace of processes of its own, as in a container."""

import contextlib
import os
import shutil
import signal
import subprocess
import unittest

from families import KILLED, below, busy, names
from harness import TOOLS, alive, children, supervisor
from wire import Wire, call

LIMIT = 1.0  # seconds until hostler is gone when it is asked to end


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
            self.assertIn("killed remaining processes: ", hostler.stderr())

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


if __name__ == "__main__":
    unittest.main()
