"""That a build which is interrupted leaves nothing, neither processes nor files."""

import contextlib
import os
import signal
import subprocess
import time
import unittest

from families import KILLED, below, marked, names
from harness import HOSTLER, ROOT, alive, environment, eventually, scratch, supervisor, write_tool
from test_starting import BODY, environments

LIMIT = 1.0  # seconds until hostler is gone when it is asked to end


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


if __name__ == "__main__":
    unittest.main()
