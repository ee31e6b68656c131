"""The command line: only answers go to standard output, and the exit status tells success."""

import contextlib
import json
import os
import signal
import subprocess
import unittest

from harness import EXAMPLES, HOSTLER, ROOT, TOOLS, config_file, environment, eventually, gone, run, scratch, write_tool
from test_starting import BODY, HEADER, with_dependencies


def setUpModule():
    for folder in (TOOLS, EXAMPLES):  # where standard error is compared, nothing may have to be built
        done = run("warm", "--tools", folder, "text" if folder == EXAMPLES else "plain")
        assert done.returncode == 0, done.stderr


def call(*words, **options):
    return run("call", "--tools", TOOLS, *words, **options)


class Calls(unittest.TestCase):
    def test_the_result_and_nothing_else(self):
        for words, printed in (
            (["plain.greet", "name=engine 407"], "good morning, engine 407\n"),
            (["plain_greet"], "good morning, you\n"),
            (["plain.number"], "1.5\n"),
            (["plain.nothing"], "null\n"),
            (["plain.lines"], '[\n  "a",\n  "b"\n]\n'),
        ):
            with self.subTest(words):
                done = call(*words)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, printed, ""))

    def test_output_of_a_tool_goes_to_standard_error(self):
        done = call("hostile.prints", "text=steam")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "printed\n", "steam\n"))

    def test_progress_of_a_build_goes_to_standard_error(self):
        done = call("plain.greet", env=environment(XDG_CACHE_HOME=scratch(self)))
        self.assertEqual((done.returncode, done.stdout), (0, "good morning, you\n"))
        self.assertTrue(done.stderr.startswith("building the environment of plain\n"), done.stderr)

    def test_invoke_is_call(self):
        done = run("invoke", "--tools", TOOLS, "plain.greet")
        self.assertEqual((done.returncode, done.stdout), (0, "good morning, you\n"))

    def test_the_whole_outcome(self):
        done = call("plain.greet", "--json")
        outcome = json.loads(done.stdout)
        self.assertEqual(set(outcome), {"call_id", "tool", "success", "result", "error", "latency_ms", "metadata"})
        self.assertEqual((outcome["tool"], outcome["success"], outcome["result"], outcome["error"]),
                         ("plain.greet", True, "good morning, you", None))
        self.assertEqual((outcome["metadata"]["cold"], outcome["metadata"]["attempt"]), (True, 1))
        failed = call("hostile.raises", "--json")
        outcome = json.loads(failed.stdout)
        self.assertEqual(failed.returncode, 1)
        self.assertEqual((outcome["success"], outcome["result"], outcome["error"]["code"]), (False, None, "TOOL_ERROR"))
        self.assertEqual(set(outcome["error"]), {"code", "message", "retryable", "details"})

    def test_a_result_that_cannot_be_read_is_a_fault_in_either_form(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "pit", "def dig() -> list:\n    hole = []\n    for _ in range(200):\n        hole = [hole]\n    return hole\n")
        plain = run("call", "--tools", tools, "pit.dig")
        self.assertEqual((plain.returncode, plain.stdout), (1, ""))
        self.assertIn("INVALID_OUTPUT", plain.stderr)
        outcome = json.loads(run("call", "--tools", tools, "pit.dig", "--json").stdout)
        self.assertEqual((outcome["success"], outcome["error"]["code"]), (False, "INVALID_OUTPUT"))

    @unittest.skipUnless(os.path.exists("/dev/full"), "this system has no disk that is always full")
    def test_an_answer_that_cannot_be_written_is_a_failure(self):
        for words in (["call", "plain.greet"], ["list"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([HOSTLER, *words, "--tools", TOOLS], env=environment(), stdout=full,
                                      stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 70)
            self.assertIn("standard output: No space left", done.stderr)

    def test_arguments_are_converted_by_the_schema(self):
        words = ["count=3", "ratio=2", "flag=yes", "word=7", "names=a", "names=b", "mode=slow", 'extra={"x": 1}']
        expected = {"count": 3, "ratio": 2, "flag": True, "word": "7", "names": ["a", "b"], "mode": "slow", "extra": {"x": 1}}
        self.assertEqual(json.loads(call("plain.kinds", *words).stdout), expected)
        forced = json.loads(call("plain.kinds", 'word:="7"', "names:=[]", "extra:=null", "count:=4").stdout)
        self.assertEqual((forced["word"], forced["names"], forced["extra"], forced["count"]), ("7", [], None, 4))
        self.assertEqual(json.loads(call("plain.kinds", "word=a=b").stdout)["word"], "a=b")

    def test_words_that_are_not_arguments(self):
        for words, said in (
            (["--name", "x"], "`--name` is not an argument; write key=value"),
            (["name", "=", "x"], "`name` is not an argument; write key=value"),
            (["name=x", "name=y"], "`name` is given twice"),
            (["--jsn"], "tip: a similar argument exists: '--json'"),
        ):
            with self.subTest(words):
                done = call("plain.greet", *words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)

    def test_arguments_as_one_object(self):
        self.assertEqual(json.loads(call("plain.kinds", "--input", '{"count": 5}', "word=x").stdout)["count"], 5)
        read = call("plain.kinds", "--input", "-", stdin='{"count": 6, "word": "Ü"}')
        self.assertEqual((json.loads(read.stdout)["count"], json.loads(read.stdout)["word"]), (6, "Ü"))

    def test_failures_go_to_standard_error(self):
        done = call("hostile.raises")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^error: TOOL_ERROR: ValueError: the boiler is cold \(hostile.py:\d+ in raises\)\n")
        self.assertIn("in raises", done.stderr)

    def test_a_reader_that_closes_the_pipe(self):
        script = f'"{HOSTLER}" call --tools "{EXAMPLES}" text.wrap text="$(head -c 90000 /dev/zero | tr "\\0" x)" width=1 | head -c 1'
        done = subprocess.run(["bash", "-c", f"set -o pipefail; {script}"], env=environment(), capture_output=True, text=True, cwd=ROOT)
        self.assertEqual((done.stdout, done.stderr), ("x", ""))


class ExitStatuses(unittest.TestCase):
    def test_each_code_that_can_be_reached(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "unbuildable", BODY, with_dependencies("hostler-has-no-such-package"))
        write_tool(tools, "unloadable", "import no_such_module_e2e\n" + BODY)
        cases = [
            (0, "", ["plain.greet"]),
            (1, "TOOL_ERROR", ["hostile.raises"]),
            (1, "TOOL_CRASHED", ["hostile.exits"]),
            (1, "INVALID_OUTPUT", ["hostile.a_range"]),
            (1, "MISSING_CREDENTIALS", ["peek.secret_length"]),
            (2, "INVALID_PARAMS", ["hostile.wants", "count=1"]),
            (2, "not an argument", ["plain.greet", "nonsense"]),
            (2, "is not valid JSON", ["plain.greet", "name:=nonsense"]),
            (2, "--input must be a JSON object", ["plain.greet", "--input", "[1]"]),
            (2, "expected a duration", ["plain.greet", "--timeout", "soon"]),
            (2, "is not an argument", ["plain.greet", "--no-such-flag"]),
            (3, "TOOL_NOT_FOUND", ["plain.great"]),
            (5, "TOOL_TIMEOUT", ["hostile.loops", "--timeout", "300ms"]),
            (7, "ENVIRONMENT_FAILED", ["unbuildable.well"]),
            (7, "STARTUP_FAILED", ["unloadable.well"]),
        ]
        for status, words, arguments in cases:
            with self.subTest(words or "success"):
                done = call("--tools", tools, *arguments, env=environment(E2E_SECRET=None))
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(words, done.stderr)

    def test_a_fault_of_the_machine(self):
        cache = scratch(self)
        self.assertEqual(call("plain.greet", env=environment(XDG_CACHE_HOME=cache)).returncode, 0)
        subprocess.run(["rm", "-r", cache / "hostler" / "shims"], check=True)
        (cache / "hostler" / "shims").write_text("in the way")
        done = call("plain.greet", env=environment(XDG_CACHE_HOME=cache))
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertIn("SYSTEM_ERROR", done.stderr)

    def test_killed_from_outside(self):
        with self.start("hostile.waits") as process:
            os.kill(self.worker_of(process), signal.SIGKILL)
            self.assertEqual(process.wait(timeout=30), 1)
            self.assertIn("PROCESS_KILLED", process.stderr.read())

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number), self.start("hostile.waits") as process:
                worker = self.worker_of(process)
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=30), 130)
                self.assertIn("CANCELLED", process.stderr.read())
                eventually(gone(worker), "the worker is gone")

    @contextlib.contextmanager
    def start(self, tool):
        words = [HOSTLER, "call", "--tools", str(TOOLS), tool]
        with subprocess.Popen(words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def worker_of(self, process):
        """Waits until the tool is running."""
        return int(next(line for line in process.stderr if line.startswith("began ")).split()[1])


class Lists(unittest.TestCase):
    def test_list_as_json(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "good", '"""About it."""\n' + BODY)
        write_tool(tools, "inner", "def well() -> int:\n    return 1\n", header="")
        write_tool(tools, "broken", "def gone(:\n")
        rows = json.loads(run("list", "--json", "--tools", tools).stdout)
        keys = {"name", "mcp_name", "pack", "kind", "role", "uri", "status", "reason", "description", "origin"}
        self.assertEqual({frozenset(row) for row in rows}, {frozenset(keys)})
        by_name = {row["name"]: row for row in rows}
        self.assertEqual(set(by_name), {"good.well", "inner.well", "broken.gone"})
        good = by_name["good.well"]
        self.assertEqual((good["mcp_name"], good["pack"], good["kind"], good["status"], good["reason"]),
                         ("good_well", "good", "python", "ready", None))
        self.assertEqual(good["origin"], str(tools / "good.py"))
        self.assertEqual(by_name["inner.well"]["kind"], "internal")
        self.assertEqual(by_name["broken.gone"]["status"], "broken")
        self.assertIn("line 5", by_name["broken.gone"]["reason"])

    def test_a_file_that_certainly_fails_is_not_ready(self):
        tools = scratch(self) / "tools"
        body = "import requests\n\ndef get() -> str:\n    return requests.__name__\n"
        write_tool(tools, "web", body, header="")

        def status():
            row, = json.loads(run("list", "--json", "--tools", tools).stdout)
            shown = json.loads(run("show", "web.get", "--json", "--tools", tools).stdout)
            self.assertEqual((shown["status"], shown["reason"]), (row["status"], row["reason"]))
            return row["status"], row["reason"] or ""

        said, reason = status()
        self.assertEqual(said, "cannot-start")
        self.assertIn('"requests"', reason)
        called = json.loads(run("call", "web.get", "--json", "--tools", tools).stdout)
        self.assertEqual(called["error"]["code"], "STARTUP_FAILED")
        # A module that is there, by any way, is enough.
        modules = tools.parent / "modules"
        modules.mkdir()
        (modules / "requests.py").write_text("")
        config = tools.parent / "hostler.toml"
        config.write_text(f'[tool.web]\npython_path = ["{modules}"]\n')
        listed = json.loads(run("list", "--json", "--tools", tools, "--config", config).stdout)
        self.assertEqual([row["status"] for row in listed], ["ready"])
        called = run("call", "web.get", "--tools", tools, "--config", config)
        self.assertEqual(called.stdout.strip(), "requests", called.stderr)
        config.write_text('[tool.web]\npass_env = ["PYTHONPATH"]\n')
        env = environment(PYTHONPATH=str(modules))
        listed = json.loads(run("list", "--json", "--tools", tools, "--config", config, env=env).stdout)
        self.assertEqual([row["status"] for row in listed], ["ready"])
        called = run("call", "web.get", "--tools", tools, "--config", config, env=env)
        self.assertEqual(called.stdout.strip(), "requests", called.stderr)

    def test_list_for_people(self):
        done = run("list", "--tools", EXAMPLES)
        self.assertEqual(done.returncode, 0)
        self.assertIn("text.slug", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_no_tools(self):
        done = run("list", "--tools", scratch(self))
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        for words in (["list"], ["call", "a.greet"], ["show", "a.greet"], ["check"], ["serve"]):
            done = run(*words, "--tools", scratch(self), stdin="")
            self.assertIn("--tools DIR", done.stderr, words)

    def test_files_without_tools(self):
        folder = scratch(self)
        for text in ("", "def _greet(): ...\n", "class Greet: ...\n"):
            (folder / "a.py").write_text(text)
            listed = json.loads(run("list", "--json", "--tools", folder).stdout)
            self.assertEqual([(row["name"], row["status"]) for row in listed], [("a", "not served")])
            for words in (["call", "a.greet"], ["serve"]):
                done = run(*words, "--tools", folder, stdin="")
                self.assertIn("a.py has no public function; see `hostler check`", done.stderr, words)

    def test_show_gives_the_origin_of_settings(self):
        config = config_file(scratch(self), '# mine\n[tool]\nidle_timeout = "3m"\n\n[tool.plain]\nmax_queue = 9\n')
        done = run("show", "plain.kinds", "--json", "--tools", TOOLS, "--config", config)
        shown = json.loads(done.stdout)
        self.assertEqual((shown["name"], shown["mcp_name"], shown["kind"]), ("plain.kinds", "plain_kinds", "python"))
        self.assertEqual(shown["origin"], str(TOOLS / "plain.py"))
        self.assertEqual(shown["input_schema"]["properties"]["count"]["description"], "How many.")
        settings = {key: (setting["value"], setting["origin"]) for key, setting in shown["settings"].items()}
        self.assertEqual(settings["max_queue"], ("9", f"{config}:6"))
        self.assertEqual(settings["idle_timeout"], ("3m", f"{config}:3"))
        self.assertEqual(settings["timeout"], ("45s", f"header {TOOLS / 'plain.py'}:6"))
        self.assertEqual(settings["effects"], ("idempotent", f"header {TOOLS / 'plain.py'}:7"))
        self.assertEqual(settings["launcher"], ("uv", "default"))
        people = run("show", "plain.kinds", "--tools", TOOLS, "--config", config).stdout
        self.assertIn(f"{config}:6", people)
        self.assertEqual(run("show", "plain.knids", "--tools", TOOLS).returncode, 3)

    def test_the_operator_wins_over_the_header(self):
        config = config_file(scratch(self), '[tool.plain]\ntimeout = "9s"\n')
        shown = json.loads(run("show", "plain.kinds", "--json", "--tools", TOOLS, "--config", config).stdout)
        self.assertEqual(shown["settings"]["timeout"], {"value": "9s", "origin": f"{config}:2"})


class Configuration(unittest.TestCase):
    def test_an_unknown_key(self):
        config = config_file(scratch(self), '[tool.plain]\ntimeuot = "3s"\n[enviroment]\nuv = "uv"\n')
        for words in (["list"], ["call", "plain.greet"], ["serve"], ["warm"], ["show", "plain.greet"]):
            with self.subTest(words[0]):
                done = run(*words, "--tools", TOOLS, "--config", config)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f"{config}:2: `tool.plain.timeuot`: unknown key; did you mean `timeout`?", done.stderr)
                self.assertIn(f"{config}:3: `enviroment`: unknown key; did you mean `environment`?", done.stderr)

    def test_a_table_for_a_tool_that_does_not_exist(self):
        config = config_file(scratch(self), "[tool.plian]\ntimeout = 5\n")
        done = run("list", "--tools", TOOLS, "--config", config)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no tool is named plian; did you mean plain?", done.stderr)
        config = config_file(scratch(self), "[tool.hostler]\ntimeout = 5\n")
        done = run("list", "--tools", TOOLS, "--config", config)
        self.assertIn("write [tool] for every tool, or [tool.NAME] for one", done.stderr)

    def test_an_invalid_log_level(self):
        done = run("list", "--tools", TOOLS, env=environment(HOSTLER_LOG="loud"))
        self.assertIn("write error, warn, info, debug or trace", done.stderr)

    def test_an_invalid_value_and_invalid_toml(self):
        folder = scratch(self)
        done = run("list", "--config", config_file(folder, '[tool]\nmax_queue = "many"\n'))
        self.assertEqual(done.returncode, 2)
        self.assertIn("hostler.toml:2: `tool.max_queue`: ", done.stderr)
        done = run("list", "--config", config_file(folder, "[tool\n"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("hostler.toml:1: not valid TOML", done.stderr)
        done = run("list", "--config", folder / "nowhere.toml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere.toml", done.stderr)

    def test_the_nearest_file_upward_and_the_tools_beside_it(self):
        project = scratch(self)
        write_tool(project / "tools", "engine", BODY)
        (project / "deep" / "down").mkdir(parents=True)
        config_file(project, '[tool.engine]\ntimeout = "7s"\n')
        done = run("show", "engine.well", "--json", cwd=project / "deep" / "down")
        self.assertEqual(json.loads(done.stdout)["settings"]["timeout"]["value"], "7s")
        other = scratch(self)
        config = config_file(other, '[tool.engine]\ntimeout = "8s"\n')
        env = environment(HOSTLER_CONFIG=config)
        done = run("show", "engine.well", "--json", "--tools", project / "tools", cwd=project, env=env)
        self.assertEqual(json.loads(done.stdout)["settings"]["timeout"]["value"], "8s")

    def test_a_timeout_on_the_command_line_wins(self):
        config = config_file(scratch(self), '[tool]\ntimeout = "300s"\n')
        done = call("hostile.loops", "--timeout", "200ms", "--config", config)
        self.assertEqual(done.returncode, 5)
        self.assertIn("did not answer in 200ms", done.stderr)


class Warming(unittest.TestCase):
    def setUp(self):
        self.cache = scratch(self)
        self.tools = self.cache / "tools"
        self.env = environment(XDG_CACHE_HOME=self.cache)
        write_tool(self.tools, "one", BODY)
        write_tool(self.tools, "two", "import markdown\n" + BODY, with_dependencies("markdown"))

    def warm(self, *words):
        return run("warm", "--tools", self.tools, *words, env=self.env)

    def test_builds_then_ready_then_prunes(self):
        first = self.warm()
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertRegex(first.stdout, r"^one  built in \d+\.\d s\ntwo  built in \d+\.\d s\n$")
        self.assertEqual(self.warm().stdout, "one  ready\ntwo  ready\n")
        named = json.loads(self.warm("two", "--json").stdout)
        self.assertEqual([(tool["pack"], tool["ready"], tool["built"]) for tool in named["tools"]], [("two", True, False)])
        (self.tools / "two.py").unlink()
        kept = self.warm("--prune")
        self.assertEqual(kept.stdout, "one  ready\nremoved 0 unused environments, kept 2\n")
        pruned = json.loads(self.warm("--prune", "--unused-for", "0s", "--json").stdout)
        self.assertEqual(len(pruned["pruned"]), 1, "the one that is in use stays")
        self.assertEqual(run("call", "--tools", self.tools, "one.well", env=self.env).returncode, 0)

    def test_a_failed_build_is_reported_and_the_rest_is_built(self):
        write_tool(self.tools, "bad", BODY, with_dependencies("hostler-has-no-such-package"))
        write_tool(self.tools, "broken", "def broken(:\n", HEADER)
        done = self.warm()
        self.assertEqual(done.returncode, 7)
        self.assertIn("error: bad: ENVIRONMENT_FAILED", done.stderr)
        self.assertIn("error: broken: STARTUP_FAILED", done.stderr)
        self.assertRegex(done.stdout, r"one +built in")
        self.assertEqual(self.warm("nobody").returncode, 3)


class Serving(unittest.TestCase):
    def test_garbage_ends_cleanly(self):
        done = run("serve", "--tools", TOOLS, stdin="garbage\n\nmore {of it\n", timeout=10)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_input_that_is_not_mcp_is_explained(self):
        done = run("serve", "--tools", TOOLS, stdin='{"jsonrpc":"2.0","method":"notifications/initialized"}\n', timeout=10)
        self.assertEqual(done.stdout, "")
        self.assertIn(done.returncode, (0, 2))

    def test_help_and_version(self):
        self.assertRegex(run("--version").stdout, r"^hostler \d+\.\d+\.\d+\n$")
        for words in ([], ["call"], ["serve"], ["warm"]):
            done = run(*words, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("Usage: hostler", done.stdout)


if __name__ == "__main__":
    unittest.main()
