"""What a worker is given, and what it is not; what uv is given while it builds."""

import os
import unittest

from harness import config_file, connected, environment, parent, scratch, write_tool
from test_starting import BODY, uv

SECRET = "a-secret-that-nobody-may-see-0123456789"


class WorkerEnvironment(unittest.IsolatedAsyncioTestCase):
    def person(self, **more):
        return environment(
            LANG="C.UTF-8", SSL_CERT_FILE=os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"),
            HTTPS_PROXY=os.environ.get("HTTPS_PROXY"), NO_PROXY="example.org", UV_CONCURRENT_DOWNLOADS="7",
            RANDOM_VARIABLE="random", PYTHONPATH="/nowhere", PYTHONSTARTUP="/nowhere/x.py", LD_LIBRARY_PATH="/nowhere/lib",
            E2E_SECRET=SECRET, LC_TIME="C", **more)

    async def test_it_is_an_allow_list(self):
        async with connected(env=self.person()) as hostler:
            seen = await hostler.value("peek_environment")
        for name in ("HOME", "PATH", "LANG", "LC_TIME"):
            self.assertIn(name, seen)
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "NO_PROXY", "RANDOM_VARIABLE", "PYTHONPATH", "PYTHONSTARTUP",
                     "LD_LIBRARY_PATH", "E2E_SECRET", "UV_CONCURRENT_DOWNLOADS", "UV_CACHE_DIR", "XDG_CACHE_HOME"):
            self.assertNotIn(name, seen)
        self.assertEqual([name for name in seen if name.startswith("UV")], [], "neither the person's nor what `uv run` adds")
        known = {"HOME", "USER", "LOGNAME", "PATH", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "VIRTUAL_ENV", "HOSTLER_RUN"}
        self.assertEqual([name for name in seen if name not in known and not name.startswith("LC_")], [])

    async def test_a_worker_is_started_by_uv_run(self):
        async with connected(env=self.person()) as hostler:
            answer = await hostler.call("peek_environment")
            shown = await hostler.value("peek_processes")
        self.assertEqual(shown[0]["pid"], answer.worker)
        words = shown[1]["cmdline"].replace("\0", " ").split()
        self.assertEqual((os.path.basename(words[0]), words[1]), ("uv", "run"))

    async def test_started_directly_it_is_the_same(self):
        config = config_file(scratch(self), '[tool]\nlauncher = "direct"\n')
        async with connected(env=self.person(), config=config) as hostler:
            answer = await hostler.call("peek_environment")
            shown = await hostler.value("peek_processes")
        self.assertEqual([name for name in answer.value if name.startswith("UV") or name == "VIRTUAL_ENV"], [])
        self.assertNotIn("RANDOM_VARIABLE", answer.value)
        self.assertEqual(shown[0]["pid"], answer.worker)
        self.assertIn("hostler", shown[1]["cmdline"], "no uv stands between")

    async def test_the_operator_passes_and_sets_variables(self):
        text = '[tool.peek]\npass_env = ["RANDOM_VARIABLE", "NOT_THERE"]\n[tool.peek.env]\nGIVEN = "by the operator"\nLANG = "C"\n'
        async with connected(env=self.person(), config=config_file(scratch(self), text)) as hostler:
            seen = await hostler.value("peek_environment")
        self.assertEqual((seen["RANDOM_VARIABLE"], seen["GIVEN"], seen["LANG"]), ("random", "by the operator", "C"))
        self.assertNotIn("NOT_THERE", seen)

    async def test_secrets_come_with_the_call_and_are_in_no_process_listing(self):
        for launcher in ("uv", "direct"):
            config = config_file(scratch(self), f'[tool]\nlauncher = "{launcher}"\n')
            async with connected(env=self.person(), config=config) as hostler:
                self.assertEqual(await hostler.value("peek_secret_length"), len(SECRET))
                shown = await hostler.value("peek_processes")
                hostler_pid = parent(shown[1]["pid"]) if launcher == "uv" else shown[1]["pid"]
            mine = [process for process in shown if process["pid"] != hostler_pid]
            self.assertEqual(len(mine), 2 if launcher == "uv" else 1)
            for process in mine:
                self.assertIn("peek.py", process["cmdline"])
                self.assertNotIn(SECRET, process["cmdline"] + process["environ"])

    async def test_secrets_from_the_operators_places(self):
        folder = scratch(self)
        (folder / "key").write_text("from a file\n")
        (folder / "key").chmod(0o600)
        sources = {
            '{ env = "RANDOM_VARIABLE" }': len("random"),
            '{ file = "key" }': len("from a file"),
            '{ command = ["echo", "said by a command"] }': len("said by a command"),
        }
        for source, length in sources.items():
            with self.subTest(source):
                config = config_file(folder, f"[secrets]\nE2E_SECRET = {source}\n")
                async with connected(env=self.person(), config=config) as hostler:
                    self.assertEqual(await hostler.value("peek_secret_length"), length)

    async def test_settings_are_handed_over_as_they_are(self):
        text = '[tool.peek.config]\nname = "Ü"\nratio = 1.5\nlist = [1, [2]]\nflag = true\n[tool.peek.config.deep]\nx = 1\n'
        async with connected(config=config_file(scratch(self), text)) as hostler:
            self.assertEqual(await hostler.value("peek_config"),
                             {"name": "Ü", "ratio": 1.5, "list": [1, [2]], "flag": True, "deep": {"x": 1}})

    async def test_the_folder_of_the_file_comes_last_on_the_path(self):
        async with connected() as hostler:
            path = await hostler.value("peek_path")
        self.assertTrue(path[-1].endswith("tests/tools"), path)
        self.assertNotIn("", path)
        config = config_file(scratch(self), '[tool.peek.env]\nPYTHONPATH = "/nowhere"\n')
        async with connected(config=config) as hostler:
            further = await hostler.value("peek_path")
        self.assertEqual([part for part in further if part != "/nowhere"], path)
        installed = next(part for part in path if part.endswith("-packages"))
        self.assertEqual(further.index("/nowhere") + 1, further.index(installed), "after the standard library, before what is installed")


class BuildEnvironment(unittest.IsolatedAsyncioTestCase):
    async def test_uv_builds_with_the_persons_certificates_and_the_operators_variables_and_without_secrets(self):
        folder = scratch(self)
        spy, record = folder / "uv-spy", folder / "record"
        spy.write_text(f'#!/bin/sh\necho "== $1" >> "{record}"\nenv >> "{record}"\nexec "{uv().resolve()}" "$@"\n')
        spy.chmod(0o755)
        header = '# /// script\n# dependencies = []\n# [tool.hostler]\n# secrets = ["E2E_SECRET"]\n# ///\n'
        write_tool(folder / "tools", "engine", BODY, header)
        text = f'[environment]\nuv = "{spy}"\n[environment.env]\nUV_CONCURRENT_BUILDS = "3"\nUV_CONCURRENT_DOWNLOADS = "9"\n'
        certificate = os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
        env = environment(XDG_CACHE_HOME=folder / "cache", SSL_CERT_FILE=certificate, E2E_SECRET=SECRET,
                          UV_CONCURRENT_DOWNLOADS="7", RANDOM_VARIABLE="random")
        async with connected(folder / "tools", config=config_file(folder, text), env=env) as hostler:
            self.assertEqual(await hostler.value("engine_well"), 1)
        _, sync, start = record.read_text().split("== ")
        self.assertTrue(sync.startswith("sync\n") and start.startswith("run\n"))
        for words in (f"SSL_CERT_FILE={certificate}", "UV_CONCURRENT_BUILDS=3", "UV_CONCURRENT_DOWNLOADS=9", "RANDOM_VARIABLE=random"):
            self.assertIn(words + "\n", sync)
        self.assertNotIn(SECRET, sync)
        for words in ("SSL_CERT_FILE", "UV_CONCURRENT", "RANDOM_VARIABLE", SECRET):
            self.assertNotIn(words, start)


if __name__ == "__main__":
    unittest.main()
