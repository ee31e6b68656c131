"""Executables: programs that say what they are with `--schema`, and are run once for each call."""

import asyncio
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from harness import (HOSTLER, META, MCPError, alive, children, config_file, connected, environment, eventually, eventually_async, gone,
                     listed_children, run, scratch, write_tool)
from test_edges import peak
from wire import Wire, call

SCHEMA = {"name": "x", "description": "Says it back.", "parameters": {"text": {"type": "string", "required": True}}}
ECHO = "import json, sys\ndata = json.load(sys.stdin)\nprint(json.dumps({'said': data['text']}))\n"


def program(folder, name, body=ECHO, schema=SCHEMA, shebang=f"#!{sys.executable}"):
    """A Python script that answers `--schema`, and else does what `body` says."""
    answer = f"import sys\nif '--schema' in sys.argv:\n    print({json.dumps(json.dumps(schema))})\n    sys.exit()\n"
    return script(folder, name, f"{shebang}\n{answer}{body}")


def script(folder, name, text, mode=0o755):
    """A script that is asked for its schema: it mentions it."""
    folder.mkdir(parents=True, exist_ok=True)
    if text.startswith("#!") and "schema" not in text and "hostler-worker" not in text:
        text += "# --schema\n"
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
        missing = run("call", "many", "--tools", str(tools)).stderr
        self.assertIn("did you mean add_up? Similar names: other", missing)
        self.assertEqual((rows["say_it"]["kind"], rows["say_it"]["mcp_name"], rows["say_it"]["description"]),
                         ("executable", "say_it", "Says it back."))

    def test_dialects_of_other_programs(self):
        tools = scratch(self) / "tools"
        arguments = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        function = {"name": "shout", "description": "Shouts.", "parameters": arguments}
        answers = {"openai": {"type": "function", "function": function}, "bare": arguments, "listed": {"tools": [function]}}
        for name, answer in answers.items():
            program(tools, name, schema=answer)
        for name in ("openai", "bare", "shout"):
            shown = json.loads(run("show", "--json", name, "--tools", str(tools)).stdout)
            self.assertEqual(shown["input_schema"]["required"], ["text"], name)

    def test_text_is_a_result_where_that_is_said(self):
        folder = scratch(self)
        tools = folder / "tools"
        for name, schema in (("declares", '{"output": "text"}'), ("is_set", "{}"), ("neither", "{}")):
            script(tools, name, f"#!/bin/sh\n[ \"$1\" = --schema ] && echo '{schema}' && exit\nprintf 'two\\nlines \\377\\n'\n")
        config = config_file(folder, '[tool.is_set]\noutput = "text"\n')
        for name in ("declares", "is_set"):
            done = run("call", "--json", name, "--tools", str(tools), "--config", str(config))
            self.assertEqual(json.loads(done.stdout)["result"], "two\nlines \ufffd", name)
        refused = json.loads(run("call", "--json", "neither", "--tools", str(tools), "--config", str(config)).stdout)
        self.assertEqual(refused["error"]["code"], "INVALID_OUTPUT")

    def test_arguments_may_be_the_value_of_an_option(self):
        folder = scratch(self)
        tools = folder / "tools"
        answer = '[ "$1" = --schema ] && echo \'%s\' && exit\nprintf \'{"first": "%%s", "second": %%s, "input": "%%s"}\' "$1" "$2" "$(cat)"\n'
        script(tools, "declares", "#!/bin/sh\n" + answer % '{"input_option": "--execute"}')
        script(tools, "is_set", "#!/bin/sh\n" + answer % "{}")
        config = config_file(folder, '[tool.is_set]\ninput_option = "-x"\n')
        for name, option in (("declares", "--execute"), ("is_set", "-x")):
            done = run("call", "--json", name, "text=it's", "--tools", str(tools), "--config", str(config))
            self.assertEqual(json.loads(done.stdout)["result"], {"first": option, "second": {"text": "it's"}, "input": ""}, done)
        script(tools, "needs", '#!/bin/sh\n[ "$1" = --schema ] && echo "{}" && exit\n[ "$1" = --execute ] || { echo "usage: needs [--execute JSON]" >&2; exit 2; }\n')
        refused = json.loads(run("call", "--json", "needs", "--tools", str(tools)).stdout)["error"]
        self.assertEqual(refused["code"], "TOOL_CRASHED")
        self.assertIn('`input_option = "--execute"` under [tool.needs]', refused["message"])
        script(tools, "fails", '#!/bin/sh\n[ "$1" = --schema ] && echo "{}" && exit\necho "cannot read --json" >&2; exit 1\n')
        self.assertNotIn("input_option", run("call", "--json", "fails", "--tools", str(tools)).stdout, "it shows no usage")
        long = run("call", "--json", "is_set", "--input", "-", "--tools", str(tools), "--config", str(config), stdin=json.dumps({"text": "x" * (128 << 10)}))
        self.assertEqual(json.loads(long.stdout)["error"]["code"], "INVALID_PARAMS", long)
        wrong = run("list", "--tools", str(tools), "--config", str(config_file(folder, '[tool.is_set]\ninput_option = "x"\n')))
        self.assertIn("--execute", wrong.stderr)

    def test_programs_of_others_are_not_run(self):
        folder = scratch(self)
        tools, ran = folder / "bin", folder / "ran"
        for name, text in (("foreign", "exit 0 # as hostler does"), ("own", "echo '{}' # --schema"), ("refused", "echo '{}' # --schema")):
            script(tools, name, "#!/bin/sh\n: schema\n").write_text(f"#!/bin/sh\necho {name} >> ${{0%/*}}/../ran\n{text}\n")
        settings = "[tool.refused]\nask = false\n"

        def states(more=""):
            ran.write_text("")
            rows, _ = listed(tools, "--config", str(config_file(folder, settings + more)))
            return {name: row["status"] for name, row in rows.items()}, sorted(ran.read_text().split())

        self.assertEqual(states(), ({"foreign": "not-asked", "own": "ready", "refused": "not-asked"}, ["own"]))
        refused = run("call", "--json", "foreign", "--tools", str(tools))
        self.assertEqual(json.loads(refused.stdout)["error"]["code"], "TOOL_NOT_FOUND")
        self.assertIn("ask = true", refused.stdout)
        self.assertIn("not-asked", run("check", str(tools)).stdout)
        self.assertNotIn("foreign", ran.read_text())
        asked = {"foreign": "schema-unknown", "own": "ready", "refused": "not-asked"}
        for more in ('[executables]\nask = "all"\n', "[tool.foreign]\nask = true\n"):
            found, those = states(more)
            self.assertEqual((found, "foreign" in those), (asked, True), more)
        # The folder beside the project's file is hostler's own.
        tools.rename(folder / "tools")
        rows, _ = listed(folder / "tools", "--config", str(config_file(folder, settings)))
        self.assertEqual(rows["foreign"]["status"], "schema-unknown")

    def test_they_are_not_run_later_either(self):
        folder = scratch(self)
        tools, ran = folder / "bin", folder / "ran"
        path = tools / "read_file"
        script(tools, "read_file", "#!/bin/sh\n: schema\n").write_text("#!/bin/sh\necho >> ${0%/*}/../ran\n")
        write_tool(tools, "report", "def f() -> int:\n    return 1\n", header="")
        (tools / "report").write_text("#!/bin/sh\necho >> ${0%/*}/../ran\n")
        (tools / "report").chmod(0o755)
        eventually(lambda: time.time() - path.stat().st_ctime > 3, "it has settled")
        config = ("--config", str(config_file(folder, '[builtin]\nenable = ["read_file"]\nroots = ["."]\n')))
        for step in ((), (), ("--refresh",)):
            rows, said = listed(tools, *config, *step)
            self.assertEqual((rows["report.f"]["status"], rows["report"]["status"]), ("ready", "not-asked"))
            self.assertNotIn("broken", said)
        path.write_text("#!/bin/sh\necho again >> ${0%/*}/../ran\n")
        self.assertEqual(listed(tools, *config)[0]["read_file"]["status"], "not-asked")
        done = run("call", "--json", "read_file", f"path={path}", "--tools", str(tools), *config, cwd=folder)
        self.assertEqual(json.loads(done.stdout)["success"], True, "the built-in tool has the name")
        for manifest, runs in (({"rows": []}, False), ({"parameters": {}}, True)):
            (tools / "read_file.json").write_text(json.dumps(manifest))
            status = listed(tools, *config)[0]["read_file"]["status"]
            self.assertEqual((status, ran.exists()), ("schema-unknown" if runs else "not-asked", runs), manifest)

    def test_what_answered_once_is_asked_again(self):
        tools = scratch(self) / "tools"
        wrapped = scratch(self) / "wrapped"
        path = script(tools, "wrapper", f"#!/bin/sh\nexec {wrapped} \"$@\" # --schema\n")
        script(wrapped.parent, "wrapped", "#!/bin/sh\necho '{}'\n")
        os.utime(path, (1, 1))
        eventually(lambda: time.time() - path.stat().st_ctime > 3, "it has settled")
        self.assertEqual(listed(tools)[0]["wrapper"]["status"], "ready")
        path.write_text(f"#!/bin/sh\nexec {wrapped} \"$@\"\n")
        self.assertEqual(listed(tools)[0]["wrapper"]["status"], "ready")

    def test_the_first_call_of_all_and_its_help_know_what_it_takes(self):
        tools = scratch(self) / "tools"
        program(tools, "fresh")
        done = run("call", "--help", "fresh", "--tools", str(tools))
        self.assertEqual((done.returncode, "text  string  required" in done.stdout), (0, True), done.stderr)
        program(tools, "lines", schema={"returns": {"type": "array", "items": {"type": "string"}}})
        program(tools, "map", schema={"returns": {"n": "int"}})
        for name, word in [("lines", "list of string"), ("map", "object")]:
            self.assertIn(f"Returns\n  {word}\n", run("show", name, "--tools", str(tools)).stdout)
        done = run("call", "fresh", "text=5", "--tools", str(tools))
        self.assertEqual((done.returncode, json.loads(done.stdout or "null")), (0, {"said": "5"}), done.stderr)

    def test_what_is_no_tool_is_told_with_what_to_do(self):
        tools = scratch(self) / "tools"
        fails = {
            "hangs": ("#!/bin/sh\nsleep 60\n", "schema-unknown", "did not end within 1s"),
            "crashes": ("#!/bin/sh\necho oh no >&2\nkill -SEGV $$\n", "schema-unknown", "ended with SIGSEGV: oh no"),
            "refuses": ("#!/bin/sh\nexit 3\n", "schema-unknown", "ended with exit status 3"),
            "floods": ("#!/bin/sh\nexec yes\n", "schema-unknown", "prints more than 1 MB"),
            "html": ("#!/bin/sh\necho '<html>'\n", "schema-unknown", "is not JSON"),
            "silent": ("#!/bin/sh\n", "schema-unknown", "prints nothing"),
            "lies": ("#!/bin/sh\necho '{\"input_schema\": {\"type\": \"objekt\"}}'\n", "schema-unknown", "`input_schema`"),
            "lost": ("#!/no/such/interpreter\n", "broken", "/no/such/interpreter, which does not exist"),
            "windows": ("#!/bin/sh\r\necho '{}'\r\n", "broken", "it has Windows line endings, so its first line names `/bin/sh\\r`"),
            "plain": ("echo hi\n", "broken", "neither a program nor a script"),
            "foreign": ("\x7fELF\x02\x01\x01 for another machine", "broken", "another kind of machine"),
        }
        for name, (text, _, _) in fails.items():
            script(tools, name, text)
        (tools / "gone").symlink_to("/nowhere/at/all")
        (tools / "round").symlink_to("round")
        os.mkfifo(tools / "pipe")
        (tools / "folder").mkdir()
        fails["gone"] = ("", "missing-binary", "a link to /nowhere/at/all")
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
        self.assertIn("begins with `<html>`", said)

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
        well = counts.replace("'{}'", "'{\"protocol\": \"bare\"}'")
        paths = [script(tools, "well", well), script(tools, "ill", counts.replace("'{}'", "oops"))]
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
        told = run("check", "--tools", tools, "--config", config_file(tools.parent, "[tool.well]\nconcurrency = 2\n"))
        self.assertIn("keeps well from starting", told.stdout, "check knows what it said before")
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
        self.assertIn(f"overrides {system}/say", shown.stdout)


class Interrupted(unittest.TestCase):
    def test_who_is_asked_goes_with_whoever_asks(self):
        for words in (["list"], ["show", "hangs"], ["install", "hangs"]):
            with self.subTest(words[0]):
                folder = scratch(self)
                tools, pids = folder / "tools", folder / "pids"
                script(tools, "hangs", f"#!/bin/sh\nsleep 600 &\necho $$ $! > {pids}.new\nmv {pids}.new {pids}\nwait\n")
                config = config_file(folder, '[executables]\nschema_timeout = "60s"\n')
                words = [HOSTLER, *words, "--tools", str(tools), "--config", str(config)]
                asks = subprocess.Popen(words, cwd=tools, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(XDG_DATA_HOME=folder))
                eventually(pids.exists, "it is asked")
                asked = [int(word) for word in pids.read_text().split()]
                asks.kill()
                asks.wait()
                try:
                    eventually(gone(*asked), "it is gone, and what it started")
                finally:
                    for pid in filter(alive, asked):
                        os.kill(pid, signal.SIGKILL)


class Calls(unittest.IsolatedAsyncioTestCase):
    async def call(self, body, schema=SCHEMA, **arguments):
        tools = scratch(self) / "tools"
        program(tools, "tool", body, schema)
        async with connected(tools, config=config_file(tools, '[tool.tool]\ntimeout = "2s"\n')) as hostler:
            return await hostler.call("tool", **arguments)

    async def test_one_that_was_late_is_asked_again(self):
        folder = scratch(self)
        tools, busy = folder / "tools", folder / "busy"
        old = time.time() - 60
        text = f"#!/bin/sh\n[ -e {busy} ] && sleep 60\necho '{{\"name\": \"one\", \"parameters\": {{\"a\": \"int\"}}}}'\n"
        os.utime(script(tools, "slow", text), (old, old))
        config = config_file(folder, '[executables]\nschema_timeout = "200ms"\n')
        busy.touch()
        rows = listed(tools, "--config", str(config))[0]
        self.assertEqual([row["status"] for row in rows.values()], ["schema-unknown"])
        async with connected(tools, config=config) as hostler:
            await self.lists(hostler, {"slow": []})
            busy.unlink()  # and in the same run
            await self.lists(hostler, {"slow": ["a"]})
        busy.touch()
        rows = listed(tools, "--config", str(config))[0]
        self.assertEqual([row["status"] for row in rows.values()], ["ready"], "an answer is kept")

    async def lists(self, hostler, expected):
        """Waits until these tools are listed, with these arguments."""
        deadline, found = time.monotonic() + 20, None
        while found != expected:
            self.assertLess(time.monotonic(), deadline, found)
            found = {name: list(tool.input_schema.get("properties", ())) for name, tool in (await hostler.tools()).items()}
            await asyncio.sleep(0.05)

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

    async def test_a_secret_that_a_new_tool_declares_is_withheld_from_the_next_call(self):
        tools = scratch(self) / "tools"
        body = "import json, os\nprint(json.dumps(os.environ.get('LATER')))\n"
        program(tools, "env", body, {"name": "env"})
        async with connected(tools, env=environment(LATER="secret")) as hostler:
            self.assertEqual(await hostler.value("env"), "secret", "nobody calls it one yet")
            write_tool(tools, "other", "def one() -> int:\n    return 1\n", '# /// script\n# [tool.hostler]\n# secrets = ["LATER"]\n# ///\n')
            self.assertEqual(await hostler.value("other_one"), 1)
            self.assertEqual(await hostler.value("env"), None)
            (tools / "other.py").unlink()
            with self.assertRaises(MCPError):
                await hostler.call("other_one")
            self.assertEqual(await hostler.value("env"), None, "a secret stays one")

    async def test_what_may_go_wrong(self):
        rows = [
            ("sys.exit(3)", "TOOL_CRASHED", "crashed with exit code 3"),
            ("sys.exit(139)", "TOOL_CRASHED", "crashed with exit code 139"),
            ("import os\nos.abort()", "TOOL_CRASHED", "crashed with SIGABRT"),
            ("import os\nos.kill(os.getpid(), 9)", "PROCESS_KILLED", "killed with SIGKILL by another process"),
            ("print('no json')", "INVALID_OUTPUT", "prints one JSON value on its standard output (a string in quotation marks)"),
            ("print('1 2')", "INVALID_OUTPUT", "continues after its JSON value"),
            ("", "INVALID_OUTPUT", "is empty"),
            ("sys.stdout.buffer.write(b'\\xff')", "INVALID_OUTPUT", "is not UTF-8"),
            ("while True: print('x' * 1000)", "INVALID_OUTPUT", "printed more than 1000 kB"),
            ("import time, signal\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(60)", "TOOL_TIMEOUT", "did not answer in 2s"),
            ("print('{\"said\": 3}')", "INVALID_OUTPUT", "does not match its annotation: `result`"),
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

    async def test_words_to_choose_from_are_told_where_a_schema_says_them_one_by_one(self):
        modes = [{"type": "string", "const": "fast", "description": "Soon."}, {"type": "string", "const": "slow"}]
        tools = scratch(self) / "tools"
        program(tools, "run", schema={"input_schema": {"type": "object", "properties": {"mode": {"oneOf": modes}}}})
        async with connected(tools) as hostler:
            for value, got in [("quick", 'the string "quick"'), (5, "the number 5")]:
                answer = await hostler.call("run", mode=value)
                self.assertEqual((answer.code, answer.message), (
                    "INVALID_PARAMS", f'run was not called: `mode`: expected "fast" or "slow", got {got}'))
        self.assertIn('mode  "fast"|"slow"', run("show", "run", "--tools", str(tools)).stdout)

    async def test_an_operation_that_failed_is_a_result(self):
        failed = {"error": "no key", "error_code": "MISSING_CREDENTIALS", "help": {"steps": ["get one"]}}
        schema = {**SCHEMA, "parameters": {}, "returns": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
        answer = await self.call(f"import json\nprint(json.dumps({failed!r}))", schema)
        self.assertEqual(answer.value, failed)

    async def test_what_it_says_on_standard_error_is_kept_apart(self):
        answer = await self.call("import json\nsys.stderr.write('working\\n')\nprint(json.dumps({}))", text="x")
        self.assertEqual((answer.value, answer.output), ({}, "working\n"))
        answer = await self.call("sys.stderr.write('its story\\nits last words')\nsys.exit(1)", text="x")
        self.assertEqual(("its story" in answer.text, "its last words" in answer.text), (False, True), answer.text)
        self.assertEqual(answer.details["stderr"], "its story\nits last words")

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

    async def test_a_cancelled_call_is_asked_to_end_and_then_killed(self):
        tools, marks = scratch(self) / "tools", scratch(self)
        for name, ends in (("tidies", "sys.exit()"), ("stays", "None")):
            body = (f"import os, signal, sys, time\ndef term(*_):\n    open({str(marks / (name + '-term'))!r}, 'w')\n    {ends}\n"
                    f"signal.signal(signal.SIGTERM, term)\nopen({str(marks / name)!r}, 'w').write(str(os.getpid()))\n"
                    "while True:\n    time.sleep(0.05)\n")
            program(tools, name, body, {"name": name})
        async with connected(tools) as hostler:
            for name in ("tidies", "stays"):
                mark = marks / name
                task = asyncio.ensure_future(hostler.call(name))
                await eventually_async(lambda: mark.exists() and mark.read_text(), "it runs")
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await eventually_async(lambda: not alive(int(mark.read_text())), "it is gone")
                self.assertTrue(Path(f"{mark}-term").exists(), f"{name} was not asked")

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


class Checked(unittest.TestCase):
    """Names that two tools claim: one has it, always the same one, and `check` says which."""

    def found(self, tools, *more):
        done = run("check", "--json", "--tools", tools[0], *(word for folder in tools[1:] for word in ("--tools", folder)), *more)
        return [(Path(one["file"]).name, one["rule"], one["message"] + "; " + one["fix"]) for one in json.loads(done.stdout)]

    def test_two_of_one_name_in_a_folder(self):
        for names, winner in ((("a-b", "a_b", "a_b.sh"), "a-b"), (("a", "a.sh", "a.py"), "a"), (("b.py", "b.sh"), "b.py")):
            for order in (names, names[::-1]):
                with self.subTest(order):
                    tools = scratch(self) / "tools"
                    for name in order:
                        if name.endswith(".py"):
                            write_tool(tools, name[:-3], 'def one() -> int:\n    """One."""\n    return 1\n')
                        else:
                            program(tools, name)
                    found = self.found([tools])
                    self.assertEqual([(file, rule) for file, rule, _ in found], [(name, "name") for name in sorted(names) if name != winner])
                    for file, _, words in found:
                        self.assertIn(f"is already taken by {tools}/{winner}; ", words)
                        self.assertIn("rename this file" if not file.endswith(".py") else "give this file another name", words)
                    rows, _ = listed(tools)
                    broken = {Path(row["origin"]).name for row in json.loads(run("list", "--json", "--tools", tools).stdout) if row["status"] == "broken"}
                    self.assertEqual(broken, set(names) - {winner}, "as it is served")

    def test_an_executable_and_a_function_of_one_name_for_clients(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "read", 'def all_of() -> int:\n    """One."""\n    return 1\n')
        program(tools, "read-all-of")
        (file, rule, words), = self.found([tools])
        self.assertEqual((file, rule), ("read.py", "name"))
        self.assertIn(f"`read.all_of` and `read_all_of` of {tools}/read-all-of", words)

    def test_a_built_in_tool_whose_place_is_taken(self):
        folder = scratch(self)
        tools, config = folder / "tools", config_file(folder, '[builtin]\nenable = ["search", "read_file"]\nroots = ["."]\n')
        program(tools, "grep")
        program(tools, "bash")
        write_tool(tools, "read", 'def file() -> int:\n    """One."""\n    return 1\n')
        found = {file: (rule, words) for file, rule, words in self.found([tools], "--config", config)}
        self.assertEqual({file: rule for file, (rule, _) in found.items()}, {"grep": "takes-place", "read.py": "takes-place"})
        self.assertIn("the built-in tool `grep`", found["grep"][1])
        self.assertIn('or add `disable = ["grep"]` under [builtin]', found["grep"][1])
        config.write_text(config.read_text() + '[check]\nignore = ["takes-place"]\n')
        self.assertEqual(self.found([tools], "--config", config), [])

    def test_an_executable_over_a_pack_of_a_weaker_folder(self):
        weak, strong = scratch(self) / "weak", scratch(self) / "strong"
        write_tool(weak, "say", 'def one() -> int:\n    """One."""\n    return 1\n')
        write_tool(weak, "same", 'def one() -> int:\n    """One."""\n    return 1\n')
        program(strong, "say")
        write_tool(strong, "same", 'def two() -> int:\n    """One."""\n    return 1\n')
        (file, rule, words), = self.found([weak, strong])
        self.assertEqual((file, rule), ("say", "takes-place"))
        self.assertIn(f"takes the place of {weak}/say.py", words)

    def test_a_script_that_nobody_may_execute_is_found(self):
        tools = scratch(self) / "tools"
        for name, text in [("says.sh", "#!/bin/sh\n"), ("_part.sh", "#!/bin/sh\n"), ("notes", "no program"), ("old.txt", "#!/bin/sh\n")]:
            script(tools, name, text, mode=0o644)
        (file, rule, words), = self.found([tools])
        self.assertEqual((file, rule), ("says.sh", "not-executable"))
        self.assertIn(f"run `chmod +x {tools}/says.sh`", words)
        config = config_file(tools.parent, '[check]\nignore = ["not-executable"]\n')
        self.assertEqual(self.found([tools], "--config", config), [])

    def test_a_program_with_the_name_of_a_tool_file_has_no_tools(self):
        tools = scratch(self) / "tools"
        program(tools, "stats.py")
        (file, rule, _), = self.found([tools])
        self.assertEqual((file, rule), ("stats.py", "no-tools"))

    def test_what_cannot_be_run_is_found_and_nothing_is_run(self):
        tools, ran = scratch(self) / "tools", scratch(self) / "ran"
        script(tools, "well", f"#!/bin/sh\ntouch {ran}\necho '{{}}'\n")
        script(tools, "plain", "echo hi\n")
        script(tools, "two words", "#!/bin/sh\n")
        (tools / "lost").symlink_to("/nowhere/at/all")
        self.assertEqual([(file, rule) for file, rule, _ in self.found([tools])], [("lost", "no-program"), ("plain", "no-program"), ("two words", "name")])
        self.assertEqual(run("check", tools / "well").returncode, 0, "by itself too")
        self.assertFalse(ran.exists())


class Hostile(unittest.IsolatedAsyncioTestCase):
    """What programs do that nobody wishes for, and what becomes of their callers."""

    def place(self, config=""):
        folder = scratch(self)
        (folder / "tools").mkdir()
        return folder, folder / "tools", config_file(folder, config)

    def test_two_gigabytes_are_cut_short_and_cost_no_memory(self):
        folder, tools, _ = self.place()
        answers = "#!/bin/sh\n[ \"$1\" = --schema ] && { echo '{}'; exit; }\n"
        script(tools, "floods", f"{answers}head -c 2G /dev/zero\nexec sleep 600\n")
        script(tools, "grumbles", f"{answers}head -c 64M /dev/zero >&2\necho 1\n")
        with Wire(tools) as wire:
            wire.open()
            wire.send(call(1, "floods"))
            answer = wire.answer(1)["result"]
            self.assertEqual(answer["_meta"][META]["error"]["code"], "INVALID_OUTPUT", answer)
            self.assertIn("printed more than 1000 kB and was stopped", answer["content"][0]["text"])
            self.assertEqual(wire.value(2, "grumbles"), 1)
            self.assertLess(peak(wire.supervisor), 60)
            self.assertEqual(children(wire.supervisor), [], "it was stopped and did not go on")

    async def test_names_that_are_no_text(self):
        folder, tools, config = self.place()
        program(tools, "say-it")
        for name in (b"caf\xe9", b"\xff.sh", b"\xfe.py"):
            path = os.path.join(os.fsencode(tools), name)
            shutil.copyfile(tools / "say-it", path)
            os.chmod(path, 0o755)
        os.mkdir(os.path.join(os.fsencode(tools), b"\xfd"))
        os.symlink(b"\xfc", os.path.join(os.fsencode(tools), b"link\xfc"))
        rows, _ = listed(tools)
        states = {name: row["status"] for name, row in rows.items()}
        self.assertEqual(states, {"say_it": "ready", "caf\ufffd": "broken", "\ufffd": "broken", "link\ufffd": "missing-binary"})
        self.assertIn("not a valid tool name", rows["caf\ufffd"]["reason"])
        self.assertIn("caf\ufffd", run("list", "--tools", tools).stdout)
        self.assertEqual(run("check", tools).returncode, 1)
        async with connected(tools, config=config) as hostler:
            self.assertEqual(await hostler.value("say_it", text="hi"), {"said": "hi"})
            self.assertEqual(set(await hostler.tools()), {"say_it"})

    async def test_it_closes_its_output_and_goes_on(self):
        folder, tools, config = self.place('[tool]\ntimeout = "2s"\n')
        rows = {"well": "exit 0", "ill": "exit 3", "long": "sleep 60"}
        for name, end in rows.items():
            answers = "#!/bin/sh\n[ \"$1\" = --schema ] && { echo '{}'; exit; }\n"
            script(tools, name, f"{answers}echo 1\nexec >&- 2>&- <&-\n{end}\n")
        async with connected(tools, config=config) as hostler:
            self.assertEqual(await hostler.value("well"), 1)
            self.assertEqual((await hostler.call("ill")).details["exit_code"], 3, "how it ended counts, whatever it said")
            long = await hostler.call("long")
            self.assertEqual(long.code, "TOOL_TIMEOUT")
            self.assertFalse(alive(long.worker))

    async def test_exit_codes_and_signals_are_told_apart(self):
        folder, tools, config = self.place()
        rows = {"sys.exit(3)": (3, None), "sys.exit(139)": (139, None), "import os\nos.kill(os.getpid(), 11)": (None, "SIGSEGV"),
                "import os\nos.kill(os.getpid(), 15)": (None, "SIGTERM"), "sys.exit(128 + 9)": (137, None)}
        for number, body in enumerate(rows):
            program(tools, f"row{number}", body + "\n", {"name": "x"})
        async with connected(tools, config=config) as hostler:
            for number, (body, ended) in enumerate(rows.items()):
                details = (await hostler.call(f"row{number}")).details
                self.assertEqual((details.get("exit_code"), details.get("signal")), ended, body)

    async def test_arguments_are_looked_at_before_and_the_result_after(self):
        folder, tools, config = self.place()
        ran = folder / "ran"
        body = f"import json\nopen({str(ran)!r}, 'a').write('x')\nprint(json.dumps(json.load(sys.stdin)))\n"
        schema = {"input_schema": {"type": "object", "properties": {"n": {}}, "required": ["n"]},
                  "output_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}
        program(tools, "back", body, schema)
        async with connected(tools, config=config) as hostler:
            self.assertEqual((await hostler.call("back")).code, "INVALID_PARAMS")
            self.assertFalse(ran.exists(), "it was not even started")
            self.assertEqual((await hostler.call("back", n="three")).code, "INVALID_OUTPUT")
            self.assertEqual(ran.read_text(), "x")
            self.assertEqual(await hostler.value("back", n=3), {"n": 3})

    async def test_it_is_being_written(self):
        folder, tools, config = self.place()
        path = tools / "busy"
        shutil.copyfile(HOSTLER, path)  # the system keeps a program from being run while it is written
        path.chmod(0o755)
        with open(path, "r+b"):
            rows, _ = listed(tools)
            self.assertEqual(rows["busy"]["status"], "broken")
            self.assertIn("another process is writing it; try again", rows["busy"]["reason"])
        program(tools, "late")
        async with connected(tools, config=config) as hostler:
            self.assertEqual(await hostler.value("late", text="a"), {"said": "a"})
            with open(tools / "late", "r+b"):
                answer = await hostler.call("late", text="b")
                self.assertEqual(answer.code, "COMMAND_NOT_FOUND", answer.text)
                self.assertIn("another process is writing it; try again", answer.message)
            self.assertEqual(await hostler.value("late", text="c"), {"said": "c"})

    async def test_something_else_lies_in_its_place(self):
        folder, tools, config = self.place()
        swaps = {"pipe": os.mkfifo, "folder": os.mkdir, "round": lambda path: os.symlink(path, path), "gone": lambda path: None,
                 "unfit": lambda path: script(tools, "unfit", "#!/bin/sh\n", mode=0o644)}
        for name in swaps:
            program(tools, name)
        async with connected(tools, config=config) as hostler:
            for name, swap in swaps.items():
                with self.subTest(name):
                    self.assertEqual(await hostler.value(name, text="a"), {"said": "a"})
                    (tools / name).unlink()
                    swap(tools / name)
                    answer = await hostler.call(name, text="b")
                    self.assertEqual(answer.code, "COMMAND_NOT_FOUND", answer.text)
                    os.rmdir(tools / name) if name == "folder" else (tools / name).unlink(missing_ok=True)
                    program(tools, name)
                    self.assertEqual(await hostler.value(name, text="c"), {"said": "c"}, "it heals")

    def test_one_that_wants_the_terminal_does_not_get_it(self):
        folder, tools, config = self.place('[tool]\ntimeout = "2s"\n')
        script(tools, "asks", "#!/bin/sh\nread answer </dev/tty && echo \"{}\"\n")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(HOSTLER, [HOSTLER, "list", "--json", "--tools", str(tools)], environment())
        os.write(terminal, b"mine\n")
        shown = b""
        while select.select([terminal], [], [], 30)[0]:
            try:
                shown += os.read(terminal, 1 << 16)
            except OSError:  # it has ended
                break
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, shown)
        self.assertIn(b'"schema-unknown"', shown)

    async def test_as_many_as_may_run_at_once_and_no_more(self):
        folder, tools, _ = self.place()
        gate, began = folder / "gate", folder / "began"
        os.mkfifo(gate)
        began.mkdir()
        answers = "#!/bin/sh\n[ \"$1\" = --schema ] && { echo '{}'; exit; }\n"
        script(tools, "waits", f"{answers}: > {began}/$$\n: < {gate}\necho $$\n")
        config = config_file(folder, "[limits]\nmax_concurrent_calls = 64\n")
        with Wire(tools, arguments=("--config", str(config))) as wire:
            wire.open()
            for number in range(80):
                wire.send(call(number + 1, "waits"))
            eventually(lambda: len(list(began.iterdir())) == 64, "as many run as may", limit=30)
            running = children(wire.supervisor)
            self.assertEqual(sorted(running), sorted(int(path.name) for path in began.iterdir()))
            opened = os.open(gate, os.O_RDWR)
            self.addCleanup(os.close, opened)
            pids = set()
            while len(pids) < 80:
                message = wire.read()
                if message.get("id") in range(1, 81):
                    pids.add(message["result"]["structuredContent"]["result"])
            self.assertEqual((len(pids), len(list(began.iterdir()))), (80, 80), "each has a process of its own")
            eventually(lambda: not listed_children(wire.supervisor), "none is left, no dead one either", limit=5)


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
            self.assertIn(str(path), answer.message)
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
