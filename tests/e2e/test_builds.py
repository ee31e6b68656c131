"""Environments as configured: their Python, time limit, sources, and when they are removed."""

import asyncio
import json
import os
import signal
import sys
import time
import unittest
import zipfile
from pathlib import Path

import shared_mode
from harness import Gate, Progress, config_file, connected, environment, eventually, eventually_async, gone, run, scratch, write_tool
from test_starting import BODY, elsewhere, environments, uv, with_dependencies
from wire import Wire, call

HOUR = 3600


def wheel(folder, text):
    """A hand-made wheel of one module; nothing is downloaded to build it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "enginelib-1.0-py3-none-any.whl"
    about = "enginelib-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("enginelib.py", f"NAME = {text!r}\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: enginelib\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", f"enginelib.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    return path


def program(path, script):
    """A program that takes the place of uv."""
    path.write_text("#!/bin/sh\n" + script, encoding="utf-8")
    path.chmod(0o755)
    return path


class Builds(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.cache = scratch(self)
        self.env = environment(XDG_CACHE_HOME=self.cache)
        self.tools = self.cache / "tools"
        write_tool(self.tools, "engine", BODY)

    def call(self, *words, tools=None):
        return run("call", "--tools", tools or self.tools, *words, env=self.env, timeout=30)

    def test_lines_of_uv_are_shown_without_passwords(self):
        line = "Building x @ git+https://me:pa55word@host.example/x"
        uv = program(self.cache / "uv", f'[ "$1" = --version ] && echo uv 0.8.0 && exit\necho "{line}" >&2\nexit 1\n')
        config = config_file(self.cache, f'[environment]\nuv = "{uv}"\n')
        with Wire(self.tools, env=self.env, arguments=("--config", str(config), "-vv")) as wire:
            wire.open()
            wire.send(call(1, "engine_well", 7))
            result = json.dumps(wire.answer(1)["result"])
            wire.end_input()
            wire.ended(5)
            for text in (json.dumps(wire.notes), wire.stderr()):
                self.assertIn("****@host.example", text)
                self.assertNotIn("pa55word", text + result)

    def test_a_build_that_takes_too_long_is_stopped(self):
        told, asked = self.cache / "pid", self.cache / "asked"
        slow = program(self.cache / "slow-uv", f'trap \': > "{asked}"; exit 1\' TERM\nsleep 600 &\necho $$ $! > "{told}"\nwait\n')
        config = config_file(self.cache, f'[environment]\nuv = "{slow}"\nbuild_timeout = "1s"\n')
        done = self.call("engine.well", "--config", config)
        self.assertEqual(done.returncode, 7)
        self.assertRegex(done.stderr, "ENVIRONMENT_FAILED: .*within 1s; raise `build_timeout`")
        self.assertTrue(asked.exists(), "it received TERM before it was killed")
        eventually(gone(*map(int, told.read_text().split())), "the build and its children are gone")
        self.assertEqual(environments(self.cache), ([], []))

    def test_the_operators_python_is_part_of_what_is_built(self):
        self.assertEqual(self.call("engine.well").returncode, 0)
        config = config_file(self.cache, '[environment]\npython = "/nowhere/python3"\n')
        done = self.call("engine.well", "--config", config)
        self.assertEqual(done.returncode, 7, "the environment on another Python does not serve")
        self.assertIn("/nowhere/python3", done.stderr)

    def test_a_uv_that_does_not_work_is_not_blamed_on_the_header(self):
        for script, words in [
            ("exit 127\n", "(exit status 127); install uv again"),
            ('[ "$1" = --version ] && echo uv 0.4.0 && exit\necho "error: unexpected argument \'--script\' found" >&2\nexit 2\n',
             "is 0.4.0; hostler needs 0.8 or newer; update it"),
        ]:
            bad = program(self.cache / "bad-uv", script)
            config = config_file(self.cache, f'[environment]\nuv = "{bad}"\n')
            done = self.call("engine.well", "--config", config)
            self.assertIn(f"uv ({bad})", done.stderr)
            self.assertIn(words, done.stderr)
            self.assertIn(f"correct `environment.uv` at {config}:2", done.stderr)
            self.assertNotIn("header", done.stderr)

    def test_a_uv_that_does_not_work_is_reported_also_where_the_environment_exists(self):
        self.assertEqual(self.call("engine.well").returncode, 0)
        for script, how in [("exit 1\n", "exit status 1"), ("", "exit status 0"), ("echo Python 3.11.7\n", "exit status 0")]:
            bad = program(self.cache / "bad-uv", script)
            config = config_file(self.cache, f'[environment]\nuv = "{bad}"\n')
            done = self.call("engine.well", "--config", config)
            self.assertEqual(done.returncode, 7)
            self.assertIn(f"ENVIRONMENT_FAILED: uv ({bad}) does not work ({how})", done.stderr)
            self.assertIn(f"correct `environment.uv` at {config}:2", done.stderr)

    def test_a_uv_that_does_nothing_is_not_blamed_on_the_disk(self):
        bad = program(self.cache / "uv", "")
        done = run("call", "--tools", self.tools, "engine.well", env={**self.env, "PATH": f"{self.cache}:{self.env['PATH']}"}, timeout=30)
        self.assertIn(f"uv ({bad}) does not work (exit status 0)", done.stderr)
        self.assertNotIn("disk", done.stderr)

    def test_a_configured_program_that_does_not_exist_is_reported_with_its_line(self):
        for line, words in [
            ('python = "3.31"', "(found: 3."),
            ('uv = "/nowhere/uv"', '`environment.uv`: "/nowhere/uv" is not a program'),
        ]:
            config = config_file(self.cache, f"[environment]\n{line}\n")
            done = self.call("engine.well", "--config", config)
            self.assertEqual(done.returncode, 7)
            self.assertIn(f"{config}:2", done.stderr)
            self.assertIn(words, done.stderr)

    def test_sources_beside_the_file_belong_to_that_file(self):
        header = '# /// script\n# dependencies = ["enginelib"]\n# [tool.uv.sources]\n# enginelib = { path = "WHEEL" }\n# ///\n'
        for name in ("one", "two"):
            folder = self.cache / name
            place = wheel(folder / "wheels", name).relative_to(folder)
            body = "import enginelib\ndef name() -> str:\n    return enginelib.NAME\n"
            write_tool(folder, "engine", body, header.replace("WHEEL", str(place)))
        for name in ("one", "two"):
            self.assertEqual(self.call("engine.name", tools=self.cache / name).stdout, f"{name}\n")

    def test_sources_in_the_header_reach_uv(self):
        place = wheel(self.cache / "elsewhere", "from elsewhere")
        header = f'# /// script\n# dependencies = ["enginelib"]\n# [tool.uv.sources]\n# enginelib = {{ path = "{place}" }}\n# ///\n'
        write_tool(self.tools, "engine", "import enginelib\ndef name() -> str:\n    return enginelib.NAME\n", header)
        self.assertEqual(self.call("engine.name").stdout, "from elsewhere\n")

    def test_a_shutdown_during_a_build_leaves_nothing(self):
        gate, told = Gate(self.cache), self.cache / "pid"
        slow = program(self.cache / "slow-uv", f'sleep 600 &\necho $$ $! > "{told}"\ncat "{gate.path}"\nwait\n')
        config = config_file(self.cache, f'[environment]\nuv = "{slow}"\n')
        with Wire(self.tools, env=self.env, arguments=("--config", str(config))) as hostler:
            hostler.open()
            hostler.send(call(1, "engine_well"))
            gate.open()  # it has written its process id
            hostler.end_input()
            text = hostler.answer(1)["result"]["content"][0]["text"]
            # A shared hostler goes on.
            self.assertTrue(text.startswith("CANCELLED: " if shared_mode.IS_ON else "SHUTTING_DOWN: "), text)
            self.assertEqual(hostler.ended(1.0), 0)
        shared_mode.end()
        eventually(gone(*map(int, told.read_text().split())), "the build and its children are gone")
        self.assertEqual(environments(self.cache)[0], [])

    async def test_a_caller_that_waits_for_another_hostlers_build_is_informed(self):
        gate = Gate(self.cache)
        slow = program(self.cache / "slow-uv", f'[ "$1" = sync ] && cat "{gate.path}"\nexec "{uv().resolve()}" "$@"\n')
        config = config_file(self.cache, f'[environment]\nuv = "{slow}"\n')
        builds, waits = Progress(), Progress()
        async with connected(self.tools, config=config, env=self.env) as one, connected(self.tools, config=config, env=self.env) as two:
            first = asyncio.ensure_future(one.call("engine_well", progress=builds))
            await builds.until(lambda text: text == "building the environment of engine")
            second = asyncio.ensure_future(two.call("engine_well", progress=waits))
            await waits.until(lambda text: text == "another hostler is building the environment of engine")
            gate.open()
            self.assertEqual([(await call).value for call in (first, second)], [1, 1])
        self.assertNotIn("building the environment of engine", [text for _, _, text in waits.notes])

    def slow(self, gate, **settings):
        """A uv that waits at the gate before it builds, and its configuration."""
        slow = program(self.cache / "slow-uv", f'[ "$1" = sync ] && cat "{gate.path}"\nexec "{uv().resolve()}" "$@"\n')
        lines = [f'{name} = "{value}"' for name, value in {"uv": slow, **settings}.items()]
        return config_file(self.cache, "[environment]\n" + "\n".join(lines) + "\n")

    def test_a_wait_for_another_hostlers_build_counts_as_building(self):
        gate = Gate(self.cache)
        config = self.slow(gate, build_timeout="2s")
        with Wire(self.tools, env=self.env, arguments=("--config", str(config))) as hostler:
            hostler.open()
            hostler.send(call(1, "engine_well"))
            eventually(lambda: list(self.cache.glob("hostler/environments/.staging.*")), "it builds")
            os.kill(hostler.supervisor, signal.SIGSTOP)
            began = time.monotonic()
            done = self.call("engine.well", "--config", config)
            self.assertLess(time.monotonic() - began, 10)
            self.assertEqual(done.returncode, 7)
            self.assertIn("ENVIRONMENT_FAILED: ", done.stderr)
            self.assertIn("another hostler is building it", done.stderr)

    async def test_a_builder_that_was_stopped_is_passed_and_harms_nothing_when_it_goes_on(self):
        gate = Gate(self.cache)
        config = self.slow(gate)
        progress = Progress()
        with Wire(self.tools, env=self.env, arguments=("--config", str(config))) as stopped:
            stopped.open()
            stopped.send(call(1, "engine_well"))
            eventually(lambda: list(self.cache.glob("hostler/environments/.staging.*")), "it builds")
            os.kill(stopped.supervisor, signal.SIGSTOP)
            fast = scratch(self)
            async with connected(self.tools, config=config_file(fast, f'[environment]\nuv = "{uv().resolve()}"\n'), env=self.env) as passing:
                answer = await passing.call("engine_well", progress=progress)
                self.assertEqual(answer.value, 1)
                texts = [text for _, _, text in progress.notes]
                self.assertIn("another hostler has stopped building the environment of engine; it is built anew", texts)
                built, = environments(self.cache)[0]
                place = self.cache / "hostler" / "environments" / built
                before = place.stat().st_ino
                os.kill(stopped.supervisor, signal.SIGCONT)
                gate.open()
                self.assertEqual(stopped.answer(1)["result"]["structuredContent"], {"result": 1})
                self.assertEqual((place.stat().st_ino, environments(self.cache)), (before, ([built], [])))
                self.assertEqual((await passing.call("engine_well")).value, 1)


class Leaving(unittest.IsolatedAsyncioTestCase):
    """A build removes environments that were not used for long; those in use or used recently stay."""

    def setUp(self):
        self.cache = scratch(self)
        self.env = environment(XDG_CACHE_HOME=self.cache)
        self.folder = self.cache / "hostler" / "environments"
        self.tools = self.cache / "tools"
        write_tool(self.tools, "old", BODY)
        self.config = config_file(self.cache, '[environment]\nkeep = "1h"\n')

    def built(self):
        return {path.name for path in self.folder.iterdir() if not path.name.startswith(".")}

    def age(self, path, hours):
        moment = time.time() - hours * HOUR
        os.utime(path, (moment, moment))
        return path

    def marker(self, name):
        return self.folder / name / "hostler-environment.json"

    async def test_old_ones_go_with_the_next_build(self):
        self.assertEqual(run("call", "--tools", self.tools, "old.well", env=self.env).returncode, 0)
        old, = self.built()
        self.age(self.marker(old), 2)
        dead, alive = self.folder / ".staging.dead.1", self.folder / ".staging.alive.2"
        for path in (dead, alive):
            path.mkdir()
        self.age(dead, 25)
        write_tool(self.tools, "new", BODY, with_dependencies(python=">=3.8"))
        async with connected(self.tools, config=self.config, env=self.env) as hostler:
            self.assertEqual(await hostler.value("new_well"), 1)
            await eventually_async(lambda: old not in self.built() and not dead.exists(), "the old environment is gone")
            self.assertEqual(len(self.built()), 1)
            self.assertTrue(alive.exists(), "a build that may be under way")
            self.assertEqual(await hostler.value("old_well"), 1)

    async def test_one_in_use_stays_however_old(self):
        async with connected(self.tools, config=self.config, env=self.env) as hostler:
            first = await hostler.call("old_well")
            old, = self.built()
            self.age(self.marker(old), 2)
            pruned = run("warm", "--tools", scratch(self), "--prune", "--unused-for", "1h", env=self.env)
            self.assertIn("removed 0 unused environments, kept 1", pruned.stdout)
            again = await hostler.call("old_well")
            self.assertEqual((again.value, again.worker), (1, first.worker))
        shared_mode.end()
        pruned = run("warm", "--tools", scratch(self), "--prune", "--unused-for", "1h", env=self.env)
        self.assertIn("removed 1 unused environment, kept 0", pruned.stdout)

    def test_use_makes_it_young_again(self):
        for _ in range(2):
            self.assertEqual(run("call", "--tools", self.tools, "old.well", env=self.env).returncode, 0)
            marker = self.marker(*self.built())
            self.assertLess(time.time() - marker.stat().st_mtime, HOUR)
            self.age(marker, 2)

    def test_one_whose_python_changed_is_built_anew(self):
        self.assertEqual(run("call", "--tools", self.tools, "old.well", env=self.env).returncode, 0)
        marker = self.marker(*self.built())
        text = marker.read_text()
        marker.write_text(text.replace('"interpreter_modified_ms": ', '"interpreter_modified_ms": 1'))
        done = run("call", "--tools", self.tools, "old.well", env=self.env)
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"))
        self.assertIn("building the environment of old", done.stderr)
        self.assertEqual(marker.read_text(), text)


class Places(unittest.IsolatedAsyncioTestCase):
    """Where uv is looked for."""

    @unittest.skipIf(elsewhere(), "uv is installed where hostler always looks")
    async def test_where_its_installer_puts_it(self):
        home = scratch(self)
        (home / "bin").mkdir()
        (home / "bin" / "python3").symlink_to(os.path.realpath(Path(sys.base_prefix, "bin", "python3")))
        (home / ".local" / "bin").mkdir(parents=True)
        (home / ".local" / "bin" / "uv").symlink_to(uv().resolve())
        write_tool(home / "tools", "engine", BODY)
        env = environment(HOME=home, PATH=home / "bin", XDG_CACHE_HOME=home / "cache")
        async with connected(home / "tools", env=env) as hostler:
            self.assertEqual(await hostler.value("engine_well"), 1)
        self.assertFalse((home / "cache" / "hostler" / "uv").exists(), "no copy was fetched")


if __name__ == "__main__":
    unittest.main()
