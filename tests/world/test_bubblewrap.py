"""Tools that a launcher starts in namespaces of their own."""

import os
import shutil
import subprocess
import unittest

from families import below
from harness import eventually, gone
from launched import Launched
from wire import Wire

PROGRAM = shutil.which("bwrap")
BWRAP = [PROGRAM, "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink",
         "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
         ["--ro-bind", "{path}", "{path}"], "--"]

MOUNTS = "new_privileges = true\n"


@unittest.skipUnless(PROGRAM, "bubblewrap is not there")
class Bubblewrap(Launched):
    def setUp(self):
        super().setUp()
        words = [PROGRAM, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
        if subprocess.run(words, capture_output=True).returncode != 0:
            self.skipTest("this system gives bubblewrap no namespaces")
        self.config = self.set(BWRAP, MOUNTS)

    def test_a_tool_sees_itself_alone(self):
        seen = self.value("far.look")
        self.assertLess(seen["pid"], 10)
        self.assertLess(len(seen["all"]), 5, seen)
        self.assertEqual(self.value("program")["key"], "value")
        self.assertEqual(self.value("bash", "command=ls /")["exit_code"], 0)

    def test_a_call_is_interrupted_by_its_real_pid(self):
        self.set(BWRAP, f'{MOUNTS}timeout = "1s"\n')
        with Wire(self.tools, env=self.env, arguments=["--config", str(self.config)], cwd=self.folder) as hostler:
            hostler.open()
            own = hostler.value(1, "far_look")
            error = hostler.fault(2, "far_spin", path="/tmp/pid")
            self.assertTrue(error.startswith("TOOL_TIMEOUT"), error)
            self.assertIn("interrupted at far.py", error, "its worker goes on")
            self.assertEqual(hostler.value(3, "far_pid"), own["pid"])

    def test_nothing_is_left_when_hostler_is_killed(self):
        with Wire(self.tools, env=self.env, arguments=["--config", str(self.config)], cwd=self.folder) as hostler:
            hostler.open()
            hostler.value(1, "far_pid")
            family = below(hostler.supervisor)
            os.kill(hostler.supervisor, 9)
            eventually(gone(*family), "all of its processes have ended")

    def test_without_leave_to_mount_the_setting_is_named(self):
        self.set(BWRAP)
        error = self.error("far.pid")
        self.assertEqual(error["code"], "STARTUP_FAILED")
        self.assertIn("new_privileges = true", error["message"])


if __name__ == "__main__":
    unittest.main()
