"""Executables: programs that say what they are with `--schema`, and are run once for each call."""

import asyncio
import json
import os
import sys
import time
import unittest

from harness import alive, config_file, connected, environment, eventually, eventually_async, run, scratch, write_tool

SCHEMA = {"name": "x", "description": "Says it back.", "parameters": {"text": {"type": "string", "required": True}}}
ECHO = "import json, sys\ndata = json.load(sys.stdin)\nprint(json.dumps({'said': data['text']}))\n"


def program(folder, name, body=ECHO, schema=SCHEMA, shebang=f"#!{sys.executable}"):
    """A Python script that answers `--schema`, and else does what `body` says."""
    answer = f"import sys\nif '--schema' in sys.argv:\n    print({json.dumps(json.dumps(schema))})\n    sys.exit()\n"
    return script(folder, name, f"{shebang}\n{answer}{body}")


def script(folder, name, text, mode=0o755):
    folder.mkdir(parents=True, exist_ok=True)
    path, fresh = folder / name, folder / f".{name}.fresh"
    fresh.write_text(text)
    fresh.chmod(mode)
    os.replace(fresh, path)
    return path


def listed(tools, *more):
    done = run("list", "--json", "--tools", str(tools), *more)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}, done.stderr


class Asked(unittest.TestCase):
    def test_names_both_dialects_and_several_tools_in_one(self):
        tools = scratch(self) / "tools"
        program(tools, "file-read.py.sh")
        program(tools, "say-it.sh")
        program(tools, "many", "", [{"name": "add-up", "description": "Adds.", "input_schema": {"type": "object"}}, {"name": "other"}])
        write_tool(tools, "plain", "def one() -> int:\n    return 1\n", header="")
        script(tools, "notes", "no program", mode=0o644)
        script(tools, "README.md", "# no program either")
        rows, _ = listed(tools)
        self.assertEqual({name: row["status"] for name, row in rows.items()},
                         {"add_up": "ready", "other": "ready", "say_it": "ready", "plain.one": "ready", "file_read.py": "broken"})
        self.assertEqual((rows["say_it"]["kind"], rows["say_it"]["mcp_name"], rows["say_it"]["description"]),
                         ("executable", "say_it", "Says it back."))

    def test_what_is_no_tool_is_told_with_what_to_do(self):
        tools = scratch(self) / "tools"
        fails = {
            "hangs": ("#!/bin/sh\nsleep 60\n", "schema-unknown", "did not end within 1s"),
            "crashes": ("#!/bin/sh\necho oh no >&2\nkill -SEGV $$\n", "schema-unknown", "ended with SIGSEGV and said: oh no"),
            "refuses": ("#!/bin/sh\nexit 3\n", "schema-unknown", "ended with exit status 3"),
            "floods": ("#!/bin/sh\nexec yes\n", "schema-unknown", "prints more than 1 MB"),
            "html": ("#!/bin/sh\necho '<html>'\n", "schema-unknown", "is not JSON"),
            "silent": ("#!/bin/sh\n", "schema-unknown", "prints nothing"),
            "lies": ("#!/bin/sh\necho '{\"input_schema\": {\"type\": \"objekt\"}}'\n", "schema-unknown", "is no JSON Schema"),
            "lost": ("#!/no/such/interpreter\n", "broken", "wants /no/such/interpreter, which is not there"),
            "plain": ("echo hi\n", "broken", "neither a program nor a script"),
            "foreign": ("\x7fELF\x02\x01\x01 for another machine", "broken", "a program for another machine"),
        }
        for name, (text, _, _) in fails.items():
            script(tools, name, text)
        (tools / "gone").symlink_to("/nowhere/at/all")
        (tools / "round").symlink_to("round")
        os.mkfifo(tools / "pipe")
        (tools / "folder").mkdir()
        fails["gone"] = ("", "missing-binary", "a link to /nowhere/at/all, which is not there")
        fails["round"] = ("", "missing-binary", "cannot be followed")
        began = time.monotonic()
        rows, said = listed(tools)
        self.assertLess(time.monotonic() - began, 10, "side by side")
        self.assertEqual(set(rows), set(fails))
        for name, (_, status, words) in fails.items():
            with self.subTest(name):
                self.assertEqual(rows[name]["status"], status)
                self.assertIn(words, rows[name]["reason"])
        self.assertIn("tool 'hangs' schema failed (timeout)", said)

    def test_how_long_they_may_take_and_what_becomes_of_the_silent_is_set(self):
        tools = scratch(self) / "tools"
        script(tools, "slow", "#!/bin/sh\nsleep 60\n")
        script(tools, "silent", "#!/bin/sh\n")
        status = lambda config: {name: row["status"] for name, row in listed(tools, "--config", str(config_file(tools, config)))[0].items()}
        self.assertEqual(status('[executables]\nschema_timeout = "100ms"\n'), {"slow": "schema-unknown", "silent": "schema-unknown"})
        script(tools, "slow", "#!/bin/sh\nsleep 0.3\necho '{}'\n")
        self.assertEqual(status('[executables]\nschema_timeout = "9s"\non_schema_failure = "skip"\n'), {"slow": "ready"})

    def test_nobody_is_asked_twice_but_for_a_change_or_a_refresh(self):
        tools, asked = scratch(self) / "tools", scratch(self) / "asked"
        counts = f"#!/bin/sh\necho x >> {asked}\necho '{{}}'\n"
        paths = [script(tools, "well", counts), script(tools, "ill", counts.replace("'{}'", "oops"))]
        old = time.time() - 60
        for path in paths:
            os.utime(path, (old, old))
        # What was changed a moment ago may change again unseen: it is kept from two seconds on.
        eventually(lambda: time.time() - max(path.stat().st_ctime for path in paths) > 3, "it has settled")
        for more, wanted in (((), 2), ((), 2), (("--refresh",), 4), ((), 4)):
            rows, said = listed(tools, *more)
            self.assertEqual({name: row["status"] for name, row in rows.items()}, {"well": "ready", "ill": "schema-unknown"})
            self.assertEqual(asked.read_text().count("x"), wanted, more)
        self.assertIn("", said)
        self.assertIn("Tools refreshed. 2 tools available.", listed(tools, "--refresh")[1])

    def test_what_lies_in_a_later_folder_takes_the_place_of_its_namesake(self):
        system, project = scratch(self) / "system", scratch(self) / "project"
        program(system, "say", schema={**SCHEMA, "description": "The system's."})
        program(project, "say", schema={**SCHEMA, "description": "The project's."})
        write_tool(system, "pack", "def one() -> int:\n    return 1\n", header="")
        write_tool(project, "pack", "def two() -> int:\n    return 2\n", header="")
        rows, _ = listed(system, "--tools", str(project))
        self.assertEqual({name: row["description"] for name, row in rows.items()}, {"say": "The project's.", "pack.two": None})
        shown = run("show", "say", "--tools", str(system), "--tools", str(project))
        self.assertIn(f"in the place of {system}/say", shown.stdout)


class Calls(unittest.IsolatedAsyncioTestCase):
    async def call(self, body, schema=SCHEMA, **arguments):
        tools = scratch(self) / "tools"
        program(tools, "tool", body, schema)
        async with connected(tools, config=config_file(tools, '[tool.tool]\ntimeout = "2s"\n')) as hostler:
            return await hostler.call("tool", **arguments)

    async def test_a_call_goes_in_and_comes_out(self):
        self.assertEqual((await self.call(ECHO, text="é ")).value, {"said": "é "})

    async def test_its_environment_is_hostlers_without_secrets(self):
        tools = scratch(self) / "tools"
        names = ["HOSTLER_TOOL_MODE", "GIBSON_TOOL_MODE", "PLAIN", "UV_X", "DECLARED", "CONFIGURED", "READ_FROM", "OWN"]
        body = f"import json, os\nprint(json.dumps([os.environ.get(name) for name in {names}]))\n"
        program(tools, "env", body, {"name": "env"})
        write_tool(tools, "other", "def one() -> int:\n    return 1\n", '# /// script\n# [tool.hostler]\n# secrets = ["DECLARED"]\n# ///\n')
        config = config_file(tools, '[secrets]\nCONFIGURED = { env = "READ_FROM" }\n[tool.env.env]\nOWN = "own"\n')
        env = environment(PLAIN="plain", UV_X="x", DECLARED="secret", CONFIGURED="secret", READ_FROM="secret")
        async with connected(tools, config=config, env=env) as hostler:
            self.assertEqual(await hostler.value("env"), ["subprocess", "subprocess", "plain", None, None, None, None, "own"])

    async def test_what_may_go_wrong(self):
        rows = [
            ("sys.exit(3)", "TOOL_CRASHED", "crashed with exit code 3"),
            ("sys.exit(139)", "TOOL_CRASHED", "crashed with exit code 139"),
            ("import os\nos.abort()", "TOOL_CRASHED", "crashed with SIGABRT"),
            ("import os\nos.kill(os.getpid(), 9)", "PROCESS_KILLED", "killed from outside with SIGKILL"),
            ("print('no json')", "INVALID_OUTPUT", "is not JSON"),
            ("print('1 2')", "INVALID_OUTPUT", "goes on after its JSON value"),
            ("", "INVALID_OUTPUT", "is nothing"),
            ("sys.stdout.buffer.write(b'\\xff')", "INVALID_OUTPUT", "is not UTF-8"),
            ("while True: print('x' * 1000)", "INVALID_OUTPUT", "printed more than 1000 kB"),
            ("import time, signal\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(60)", "TOOL_TIMEOUT", "did not answer in 2s"),
            ("print('{\"said\": 3}')", "INVALID_OUTPUT", "something else than its annotation says"),
        ]
        schema = {**SCHEMA, "parameters": {}, "returns": {"type": "object", "properties": {"said": {"type": "string"}}}}
        tools = scratch(self) / "tools"
        for number, (body, _, _) in enumerate(rows):
            program(tools, f"row{number}", body + "\n", schema)
        async with connected(tools, config=config_file(tools, '[tool]\ntimeout = "2s"\n')) as hostler:
            for number, (body, code, words) in enumerate(rows):
                with self.subTest(body):
                    answer = await hostler.call(f"row{number}")
                    self.assertEqual(answer.code, code, answer.text)
                    self.assertIn(words, answer.message)
                    self.assertFalse(alive(answer.worker), "nothing of it is left")

    async def test_arguments_are_looked_at_first(self):
        answer = await self.call("open('/tmp/never', 'w')", txt="x")
        self.assertEqual(answer.code, "INVALID_PARAMS")
        self.assertIn("unknown argument `txt`, did you mean `text`?", answer.message)

    async def test_an_operation_that_failed_is_a_result(self):
        failed = {"error": "no key", "error_code": "MISSING_CREDENTIALS", "help": {"steps": ["get one"]}}
        schema = {**SCHEMA, "parameters": {}, "returns": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
        answer = await self.call(f"import json\nprint(json.dumps({failed!r}))", schema)
        self.assertEqual(answer.value, failed)

    async def test_what_it_says_on_standard_error_is_kept_apart(self):
        answer = await self.call("import json\nsys.stderr.write('working\\n')\nprint(json.dumps({}))", text="x")
        self.assertEqual((answer.value, answer.output), ({}, "working\n"))
        answer = await self.call("sys.stderr.write('its last words')\nsys.exit(1)", text="x")
        self.assertNotIn("last words", answer.text)
        self.assertEqual(answer.details["stderr"], "its last words")

    async def test_it_need_not_read_and_a_child_may_hold_the_pipe(self):
        answer = await self.call("import subprocess\nprint(1, flush=True)\nsubprocess.Popen(['sleep', '60'])", text="x" * (5 << 20))
        self.assertEqual(answer.value, 1)

    async def test_a_cancelled_call_leaves_nothing(self):
        tools, mark = scratch(self) / "tools", scratch(self) / "mark"
        program(tools, "waits", f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n", {"name": "waits"})
        async with connected(tools) as hostler:
            task = asyncio.ensure_future(hostler.call("waits"))
            await eventually_async(lambda: mark.exists() and mark.read_text(), "it runs")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await eventually_async(lambda: not alive(int(mark.read_text())), "it is gone")

    async def test_sixty_four_at_once_run_as_many_as_may_and_leave_none(self):
        tools, log = scratch(self) / "tools", scratch(self)
        body = (f"import json, os, time\nown = os.path.join({str(log)!r}, str(os.getpid()))\nopen(own, 'w').close()\n"
                f"beside = len(os.listdir({str(log)!r}))\ntime.sleep(0.05)\nos.unlink(own)\nprint(json.dumps([os.getpid(), beside]))\n")
        program(tools, "many", body, {"name": "many"})
        async with connected(tools, config=config_file(tools, "[limits]\nmax_concurrent_calls = 10\n")) as hostler:
            answers = await asyncio.gather(*(hostler.call("many") for _ in range(64)))
            pids, most = {answer.value[0] for answer in answers}, max(answer.value[1] for answer in answers)
            self.assertEqual(len(pids), 64, "each call has a process of its own")
            self.assertTrue(1 < most <= 10, f"{most} at once")
            self.assertEqual([pid for pid in pids if alive(pid)], [])


class Changes(unittest.IsolatedAsyncioTestCase):
    async def test_tools_come_go_and_heal_while_it_serves(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "here", "def one() -> int:\n    return 1\n", header="")
        async with connected(tools) as hostler:
            self.assertEqual(set(await hostler.tools()), {"here_one"})
            path = program(tools, "fresh")

            async def lists(*names):
                while set(await hostler.tools()) != set(names):
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(lists("here_one", "fresh"), 10)
            self.assertEqual(await hostler.value("fresh", text="a"), {"said": "a"})
            path.unlink()
            await asyncio.wait_for(lists("here_one"), 10)
            answer = await hostler.call("fresh", text="b")
            self.assertEqual(answer.code, "COMMAND_NOT_FOUND")
            self.assertIn("is gone; put it back", answer.message)
            program(tools, "fresh")
            await asyncio.wait_for(lists("here_one", "fresh"), 10)
            self.assertEqual(await hostler.value("fresh", text="c"), {"said": "c"})
            program(tools, "fresh", ECHO, {**SCHEMA, "description": "Says it otherwise."})

            async def says(words):
                while (await hostler.tools())["fresh"].description != words:
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(says("Says it otherwise."), 10)

    async def test_serving_waits_for_nobody_who_is_asked(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "here", "def one() -> int:\n    return 1\n", header="")
        script(tools, "slow", "#!/bin/sh\nsleep 60\n")
        async with connected(tools) as hostler:
            began = time.monotonic()
            self.assertEqual(await hostler.value("here_one"), 1)
            self.assertIn("here_one", await hostler.tools())
            self.assertLess(time.monotonic() - began, 0.9, "the other is given two seconds")

    async def test_a_folder_of_executables_alone_is_not_called_empty(self):
        tools = scratch(self) / "tools"
        program(tools, "only")
        async with connected(tools) as hostler:
            self.assertEqual(await hostler.value("only", text="a"), {"said": "a"})
            self.assertNotIn("no tools found", hostler.stderr())

    async def test_a_file_that_is_being_written_is_run_when_that_is_done(self):
        tools = scratch(self) / "tools"
        path = program(tools, "busy")
        async with connected(tools) as hostler:
            self.assertEqual(await hostler.value("busy", text="a"), {"said": "a"})
            writer = open(path, "r+b")
            task = asyncio.ensure_future(hostler.call("busy", text="b"))
            asyncio.get_running_loop().call_later(0.1, writer.close)
            self.assertEqual((await task).value, {"said": "b"})
