"""What stands between a call and its tool: uv, the environment, the file itself. Every fault says what to do, and once
that is done the next call works, in the same hostler."""

import asyncio
import os
import subprocess
import sys
import unittest
from pathlib import Path

from harness import HEADER, HOSTLER, Progress, config_file, connected, environment, run, scratch, write_tool

BODY = "def well(number: int = 1) -> int:\n    return number\n"


def uv():
    """The uv of these tests, which is on their PATH."""
    return next(place / "uv" for place in map(Path, os.environ["PATH"].split(os.pathsep)) if (place / "uv").is_file())


def with_dependencies(*names, python=">=3.9"):
    return f'# /// script\n# requires-python = "{python}"\n# dependencies = {list(names)!r}\n# ///\n'.replace("'", '"')


def elsewhere():
    """Whether uv stands in a place where hostler looks whatever PATH says."""
    return any(Path(place, "uv").is_file() for place in ("/usr/local/bin", "/opt/homebrew/bin", "/usr/bin"))


def environments(cache):
    """Finished environments, and what builds left behind."""
    folder = cache / "hostler" / "environments"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    whole = [name for name in names if not name.startswith(".")]
    return whole, [name for name in names if name.startswith(".staging.")]


class Files(unittest.IsolatedAsyncioTestCase):
    """Files that cannot be served, and what happens once they are mended."""

    async def mended(self, code, *words, body=BODY, header=HEADER, mend=None):
        tools = scratch(self) / "tools"
        path = write_tool(tools, "engine", body, header)
        write_tool(tools, "other", BODY)
        async with connected(tools) as hostler:
            for _ in range(2):
                answer = await hostler.call("engine_well", number=1)
                self.assertEqual(answer.code, code, answer.text)
                for word in words:
                    self.assertIn(word, answer.message)
            self.assertEqual(await hostler.value("other_well", number=2), 2, "other files are not touched")
            write_tool(tools, "engine", BODY, mend or HEADER)
            self.assertEqual(await hostler.value("engine_well", number=3), 3)
        return answer, path

    async def test_a_broken_header(self):
        header = '# /// script\n# dependencies = [\n# ///\n'
        await self.mended("STARTUP_FAILED", "engine.py is broken: line 2", header=header)

    async def test_a_header_without_end(self):
        await self.mended("STARTUP_FAILED", "engine.py is broken: line 3", header="# /// script\n# dependencies = []\n\n")

    async def test_a_header_with_a_key_nobody_knows(self):
        header = '# /// script\n# dependencies = []\n# [tool.hostler]\n# timeuot = "3s"\n# ///\n'
        await self.mended("STARTUP_FAILED", "line 4", "timeuot", "`timeout`", header=header)

    async def test_a_syntax_error(self):
        await self.mended("STARTUP_FAILED", "engine.py is broken: line 7", body=BODY + "def broken(:\n")

    async def test_an_import_error(self):
        answer, _ = await self.mended(
            "STARTUP_FAILED", "engine could not be started", "ModuleNotFoundError", "no_such_module_e2e", "(engine.py line 6)",
            body="\nimport no_such_module_e2e\n" + BODY)
        self.assertIn("import no_such_module_e2e", answer.details["traceback"])

    async def test_an_exception_at_import(self):
        await self.mended("STARTUP_FAILED", "ZeroDivisionError", "(engine.py line 7)", body=BODY + "x = 1 / 0\n")

    async def test_an_exit_at_import(self):
        await self.mended("STARTUP_FAILED", "exit", "(engine.py line 8)", body=BODY + "import sys\nsys.exit(4)\n")

    async def test_a_hard_exit_at_import(self):
        body = BODY + "import os, sys\nsys.stderr.write('no coal\\n')\nsys.stderr.flush()\nos._exit(4)\n"
        await self.mended("STARTUP_FAILED", "exit status 4", "last line of stderr: no coal", body=body)

    async def test_an_import_that_takes_too_long(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "engine", BODY + "import time\ntime.sleep(600)\n")
        config = config_file(tools.parent, '[tool.engine]\nstartup_timeout = "500ms"\n')
        async with connected(tools, config=config) as hostler:
            answer = await hostler.call("engine_well")
            self.assertEqual(answer.code, "STARTUP_FAILED")
            self.assertRegex(answer.message, r"not ready within 500ms; it was at engine.py:\d+ in <module>. .*`startup_timeout` at .*hostler.toml:2, which is in force")
            self.assertIn('if __name__ == "__main__":', answer.message)
            write_tool(tools, "engine", BODY)
            self.assertEqual(await hostler.value("engine_well"), 1)

    async def test_a_server_or_an_agent_that_runs_at_import(self):
        tools = scratch(self) / "tools"
        server = "from http.server import HTTPServer, BaseHTTPRequestHandler as Any\ndef serve():\n    HTTPServer(('127.0.0.1', 0), Any).serve_forever()\nserve()\n"
        agent = "import asyncio\nasync def run():\n    await asyncio.sleep(600)\n\nasyncio.run(run())\n"
        write_tool(tools, "server", BODY + server)
        write_tool(tools, "agent", BODY + agent)
        config = config_file(tools.parent, '[tool]\nstartup_timeout = "1s"\n')
        async with connected(tools, config=config) as hostler:
            for pack, text in (("server", server), ("agent", agent)):
                answer = await hostler.call(f"{pack}_well")
                self.assertEqual(answer.code, "STARTUP_FAILED")
                line = (tools / f"{pack}.py").read_text().rstrip().count("\n") + 1
                self.assertIn(f"{pack}.py line {line} runs a server or an event loop when the file is imported", answer.message)

    async def test_a_dependency_that_does_not_exist(self):
        header = with_dependencies("hostler-has-no-such-package")
        await self.mended("ENVIRONMENT_FAILED", "\"hostler-has-no-such-package\" (", "correct the name", header=header)

    async def test_a_python_that_does_not_exist(self):
        header = with_dependencies(python=">=3.99")
        await self.mended("ENVIRONMENT_FAILED", 'requires-python = ">=3.99" (', header=header)

    async def test_nothing_is_left_of_a_build_that_failed(self):
        cache = scratch(self)
        tools = cache / "tools"
        write_tool(tools, "engine", BODY, with_dependencies("hostler-has-no-such-package"))
        done = run("call", "--tools", tools, "engine.well", env=environment(XDG_CACHE_HOME=cache))
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(environments(cache), ([], []))


class Uv(unittest.IsolatedAsyncioTestCase):
    """uv itself: found, fetched, or asked for."""

    def person(self, python, **changes):
        """Somebody with a fresh cache, no uv, and this Python on PATH."""
        home = scratch(self)
        (home / "bin").mkdir()
        if python is not None:
            (home / "bin" / "python3").symlink_to(python)
        return home, environment(HOME=home, PATH=home / "bin", XDG_CACHE_HOME=home / "cache", **changes)

    def setUp(self):
        if elsewhere():
            self.skipTest("uv is installed where hostler always looks")
        self.tools = scratch(self) / "tools"
        write_tool(self.tools, "engine", BODY)

    async def test_no_uv_and_no_pip(self):
        bare = scratch(self) / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True, capture_output=True)
        home, env = self.person(None)
        env["PATH"] = str(bare / "bin")
        async with connected(self.tools, env=env) as hostler:
            for _ in range(2):
                answer = await hostler.call("engine_well")
                self.assertEqual(answer.code, "ENVIRONMENT_FAILED")
                for words in ("uv is not installed", "No module named pip", "install it (https://", "[environment]"):
                    self.assertIn(words, answer.message)
            (bare / "bin" / "uv").symlink_to(uv().resolve())
            self.assertEqual(await hostler.value("engine_well"), 1)
        left = [path.name for path in (home / "cache" / "hostler").iterdir() if path.name.startswith("uv") and path.name != "uv-run"]
        self.assertEqual(left, [], "nothing of the fetch that failed")

    async def test_no_uv_and_no_python(self):
        _, env = self.person(None)
        async with connected(self.tools, env=env) as hostler:
            answer = await hostler.call("engine_well")
            self.assertEqual(answer.code, "ENVIRONMENT_FAILED")
            self.assertIn("there is no Python on PATH", answer.message)

    async def test_uv_is_fetched_once_and_announced(self):
        home, env = self.person(os.path.realpath(Path(sys.base_prefix, "bin", "python3")))
        progress = Progress()
        async with connected(self.tools, env=env) as hostler:
            answer = await hostler.call("engine_well", progress=progress)
            self.assertEqual(answer.value, 1)
        said = [message for _, _, message in progress.notes]
        self.assertEqual([text for text in said if "downloading a private copy" in text], said[:1])
        self.assertTrue((home / "cache" / "hostler" / "uv" / "bin" / "uv").is_file())
        env["PATH"] = str(home / "empty")  # nothing could be fetched now
        async with connected(self.tools, env=env) as hostler:
            self.assertEqual(await hostler.value("engine_well"), 1)

    async def test_a_uv_that_is_not_where_the_configuration_says(self):
        config = config_file(scratch(self), '[environment]\nuv = "/nowhere/uv"\n')
        cache = scratch(self)
        done = run("call", "--config", config, "--tools", self.tools, "engine.well", env=environment(XDG_CACHE_HOME=cache))
        self.assertEqual(done.returncode, 7)
        self.assertIn('hostler.toml:2: `environment.uv`: "/nowhere/uv" is not a program', done.stderr)


class Builds(unittest.IsolatedAsyncioTestCase):
    """Environments: built once however many ask, never used half built."""

    def setUp(self):
        self.cache = scratch(self)
        self.env = environment(XDG_CACHE_HOME=self.cache)
        self.tools = self.cache / "tools"

    def fill_uv_cache(self):
        """So that what follows is about building and not about the network."""
        subprocess.run([uv(), "run", "--no-project", "--with", "pypdf", "--with", "markdown", "python", "-c", ""],
                       env=self.env, check=True, capture_output=True, cwd=self.cache)

    async def test_two_first_calls_build_once(self):
        write_tool(self.tools, "one", "import markdown\n" + BODY, with_dependencies("markdown"))
        write_tool(self.tools, "two", "import markdown\n" + BODY, with_dependencies("markdown"))
        listeners = [Progress() for _ in range(4)]
        async with connected(self.tools, env=self.env) as hostler:
            calls = [hostler.call(name, progress=progress, number=number) for number, (name, progress) in
                     enumerate(zip(("one_well", "two_well", "one_well", "two_well"), listeners))]
            answers = await asyncio.gather(*calls)
        self.assertEqual([answer.value for answer in answers], [0, 1, 2, 3])
        self.assertEqual(len({answer.worker for answer in answers}), 2)
        built = {text for progress in listeners for _, _, text in progress.notes if text.startswith("building the environment")}
        self.assertEqual(len(built), 1, built)
        whole, rest = environments(self.cache)
        self.assertEqual((len(whole), rest), (1, []))

    async def test_two_hostlers_build_once(self):
        write_tool(self.tools, "one", "import markdown\n" + BODY, with_dependencies("markdown"))

        async def one():
            async with connected(self.tools, env=self.env) as hostler:
                return await hostler.value("one_well", number=5)

        self.assertEqual(await asyncio.gather(one(), one(), one()), [5, 5, 5])
        whole, rest = environments(self.cache)
        self.assertEqual((len(whole), rest), (1, []))

    async def test_the_first_call_hears_what_takes_so_long(self):
        write_tool(self.tools, "one", "import markdown\n" + BODY, with_dependencies("markdown"))
        for mode in ("auto", "legacy"):
            cache = scratch(self)
            progress = Progress()
            async with connected(self.tools, env=environment(XDG_CACHE_HOME=cache), mode=mode) as hostler:
                answer = await hostler.call("one_well", progress=progress)
                self.assertTrue(answer.metadata["cold"])
                self.assertGreater(answer.metadata["start_ms"], answer.metadata["run_ms"])
            said = [message for _, _, message in progress.notes]
            self.assertEqual(said[0], "building the environment of one")
            self.assertTrue(any(text.startswith("one: Resolved ") for text in said), said)
            self.assertEqual(said[-2:], ["starting one", "one is ready"])
            values = [value for value, _, _ in progress.notes]
            self.assertEqual(values, sorted(set(values)), "progress grows")

    def test_a_build_that_is_killed_is_never_used(self):
        self.fill_uv_cache()
        header = with_dependencies("pypdf", "markdown")
        write_tool(self.tools, "one", "import pypdf, markdown\n" + BODY, header)
        for moment in ("building the environment", "one: Resolved", "one: Prepared", "one: Installed"):
            with self.subTest(moment):
                hostler = subprocess.Popen(
                    [HOSTLER, "call", "--tools", str(self.tools), "one.well"], env=self.env,
                    cwd=self.cache, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    start_new_session=True)
                seen = next((line for line in hostler.stderr if line.startswith(moment)), None)
                os.killpg(hostler.pid, 9)
                hostler.communicate()
                if seen is None:
                    continue  # uv had nothing to say of this step: it was fast
                self.assertEqual(environments(self.cache)[0], [], f"killed at {seen!r}")
        done = run("call", "--tools", self.tools, "one.well", env=self.env)
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)
        self.assertEqual(len(environments(self.cache)[0]), 1)

    def test_half_an_environment_is_built_anew(self):
        write_tool(self.tools, "one", BODY)
        self.assertEqual(run("call", "--tools", self.tools, "one.well", env=self.env).returncode, 0)
        home = self.cache / "hostler" / "environments" / environments(self.cache)[0][0]
        (home / "hostler-environment.json").unlink()
        (home / "bin" / "python").unlink()
        done = run("call", "--tools", self.tools, "one.well", env=self.env)
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)

    async def test_a_changed_header_is_a_new_environment_and_the_old_one_stays_whole(self):
        write_tool(self.tools, "one", BODY)
        async with connected(self.tools, env=self.env) as hostler:
            self.assertEqual(await hostler.value("one_well"), 1)
            body = "import markdown\ndef well(number: int = 1) -> str:\n    return markdown.markdown('*x*')\n"
            write_tool(self.tools, "one", body, with_dependencies("markdown"))
            await hostler.tools()  # the client holds results against the list it has, and a text is no integer
            self.assertEqual(await hostler.value("one_well"), "<p><em>x</em></p>")
        self.assertEqual(len(environments(self.cache)[0]), 2)

    def test_a_lock_is_honoured_and_a_stale_one_is_told_with_the_cure(self):
        path = write_tool(self.tools, "one", "import markdown\n" + BODY, with_dependencies("markdown==3.6"))
        subprocess.run([uv(), "lock", "--script", path], env=self.env, check=True, capture_output=True)
        self.assertEqual(run("call", "--tools", self.tools, "one.well", env=self.env).returncode, 0)
        write_tool(self.tools, "one", "import markdown\n" + BODY, with_dependencies("markdown==3.7"))
        done = run("call", "--tools", self.tools, "one.well", env=self.env)
        self.assertEqual(done.returncode, 7)
        self.assertIn(f"run `uv lock --script {path}`", done.stderr)


if __name__ == "__main__":
    unittest.main()
