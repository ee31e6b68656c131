"""Messages for people: broken files, near names, failed builds, the end of a worker."""

import json
import unittest

from harness import TOOLS, environment, run, scratch, write_tool
from test_starting import BODY, with_dependencies


class Broken(unittest.TestCase):
    def setUp(self):
        self.tools = scratch(self) / "tools"
        write_tool(self.tools, "engine", BODY + "def broken(:\n")
        write_tool(self.tools, "mute", "(\n", header="")
        write_tool(self.tools, "whole", BODY)

    def test_a_broken_file_without_known_tools_is_listed(self):
        rows = {row["name"]: row for row in json.loads(run("list", "--json", "--tools", self.tools).stdout)}
        self.assertEqual((rows["mute"]["status"], rows["mute"]["mcp_name"]), ("broken", None))
        self.assertIn("line 1: not valid Python", rows["mute"]["reason"])
        people = run("list", "--tools", self.tools).stdout
        self.assertRegex(people, rf"mute +internal +broken +{self.tools}/mute.py: line 1")

    def test_a_function_of_a_broken_file_is_shown_with_the_reason(self):
        for words in (["show", "engine.lost"], ["call", "engine.lost"]):
            with self.subTest(words):
                done = run(*words, "--tools", self.tools)
                self.assertEqual((done.returncode, done.stdout), (7, ""))
                self.assertIn("engine.py is broken: line 7", done.stderr)
        known = run("show", "engine.well", "--tools", self.tools)
        self.assertEqual(known.returncode, 0)
        self.assertIn("\nbroken: line 7", known.stdout)

    def test_an_unknown_name_is_answered_with_a_near_one(self):
        done = run("show", "whole.wel", "--tools", self.tools)
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no tool whole.wel; did you mean whole.well?", done.stderr)


class Words(unittest.TestCase):
    def test_uvs_reason_is_printed_once(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "engine", BODY, with_dependencies("hostler-has-no-such-package"))
        done = run("call", "--tools", tools, "engine.well")
        self.assertEqual((done.returncode, done.stderr.count("No solution found")), (7, 1), done.stderr)

    def test_the_last_output_of_a_worker_is_shown(self):
        tools = scratch(self) / "tools"
        body = "import os, sys\ndef die():\n    os.write(2, b'no coal\\n')\n    os._exit(3)\n"
        write_tool(tools, "engine", body)
        done = run("call", "--tools", tools, "engine.die", "--json")
        self.assertEqual(json.loads(done.stdout)["error"]["details"]["stderr"], "no coal")

    def test_verbose_logs_more_and_twice_everything(self):
        for words, info, debug in (([], False, False), (["-v"], True, False), (["-vv"], True, True)):
            with self.subTest(words):
                done = run("call", "--tools", TOOLS, "plain.greet", *words)
                self.assertEqual((" INFO " in done.stderr, "DEBUG" in done.stderr), (info, debug), done.stderr)

    def test_serving_nothing_is_reported(self):
        done = run("serve", "--tools", scratch(self), stdin="", env=environment())
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("no tools found", done.stderr)


class Farewell(unittest.TestCase):
    def test_a_worker_runs_its_exit_handlers(self):
        folder = scratch(self)
        body = (
            "import atexit\n\n"
            "def later(path: str) -> str:\n"
            "    atexit.register(lambda: open(path, 'w').close())\n"
            "    return 'soon'\n")
        write_tool(folder / "tools", "engine", body)
        done = run("call", "--tools", folder / "tools", "engine.later", f"path={folder / 'trace'}")
        self.assertEqual((done.returncode, done.stdout), (0, "soon\n"), done.stderr)
        self.assertTrue((folder / "trace").exists(), "when hostler has ended, its workers have")


if __name__ == "__main__":
    unittest.main()
