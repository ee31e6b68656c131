"""Where settings come from when nothing is said on the command line: the person's own files, and what stands over them."""

import json
import unittest

from harness import HEADER, TOOLS, config_file, environment, run, scratch, write_tool
from test_starting import BODY


class Person(unittest.TestCase):
    """Files below ~/.config and ~/.local/share, here below XDG folders of the test's own."""

    def setUp(self):
        home = scratch(self)
        self.env = environment(XDG_CONFIG_HOME=home / "config", XDG_DATA_HOME=home / "data")
        (home / "config" / "hostler").mkdir(parents=True)
        self.own = config_file(home / "config" / "hostler", '[tool.engine]\ntimeout = "7s"\nmax_queue = 7\n')
        write_tool(home / "data" / "hostler" / "tools", "engine", BODY)

    def settings(self, *words, cwd):
        done = run("show", "engine.well", "--json", *words, env=self.env, cwd=cwd)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {key: (row["value"], row["origin"]) for key, row in json.loads(done.stdout)["settings"].items()}

    def test_the_persons_own_file_and_tools_serve_anywhere(self):
        settings = self.settings(cwd=scratch(self))
        self.assertEqual((settings["timeout"], settings["max_queue"]), (("7s", f"{self.own}:2"), ("7", f"{self.own}:3")))

    def test_a_projects_file_is_laid_over_it(self):
        project = scratch(self)
        config = config_file(project, '[tool.engine]\ntimeout = "8s"\n')
        settings = self.settings(cwd=project)
        self.assertEqual((settings["timeout"], settings["max_queue"]), (("8s", f"{config}:2"), ("7", f"{self.own}:3")))

    def test_the_project_has_tools_of_the_same_name(self):
        project = scratch(self)
        write_tool(project / "tools", "tender", BODY)
        names = [row["name"] for row in json.loads(run("list", "--json", env=self.env, cwd=project).stdout)]
        self.assertEqual(names, ["engine.well", "tender.well"])


class Words(unittest.TestCase):
    def test_how_much_is_logged(self):
        config = config_file(scratch(self), 'log = "info"\n')
        said = "call failed"
        for words, env, told in (
            ([], {}, False),
            (["--config", config], {}, True),
            (["--config", config], {"HOSTLER_LOG": "warn"}, False),
            (["-v"], {"HOSTLER_LOG": "warn"}, True),
        ):
            with self.subTest(words=words, env=env):
                done = run("call", "--tools", TOOLS, "hostile.raises", *words, env=environment(**env))
                self.assertEqual((done.returncode, said in done.stderr), (1, told), done.stderr)

    def test_a_folder_that_is_not_there_is_told_with_its_line(self):
        config = config_file(scratch(self), '# mine\ntools = ["tols"]\n')
        for words in (["list"], ["call", "a.greet"], ["check"]):
            done = run(*words, "--config", config)
            self.assertIn(f"this tools folder does not exist ({config}:2 names it)", done.stdout + done.stderr, words)

    def test_settings_for_a_function_that_is_not_there(self):
        config = config_file(scratch(self), '[tool."plain.gret"]\ntimeout = 5\n')
        done = run("list", "--tools", TOOLS, "--config", config)
        self.assertIn(f"{config}:1: no tool is named plain.gret; did you mean plain.greet?", done.stderr)

    def test_settings_for_a_built_in_tool_under_its_other_name(self):
        config = config_file(scratch(self), "[tool.file_read]\ntimeout = 5\n[builtin]\nenable = ['files']\nroots = ['.']\n")
        done = run("list", "--tools", TOOLS, "--config", config)
        self.assertIn("no tool is named file_read; did you mean read_file?", done.stderr)

    def test_a_folder_of_tools_that_is_not_there(self):
        done = run("list", "--tools", TOOLS, "--tools", "/nowhere/tools")
        self.assertEqual(done.returncode, 0)
        self.assertIn("plain.greet", done.stdout)
        self.assertIn("/nowhere/tools", done.stderr)

    def test_what_is_called_as_a_usual_folder_and_is_none_is_not_spoken_of(self):
        folder = scratch(self)
        (folder / "tools").write_text("#!/bin/sh\n")
        for words in (["list"], ["check"]):
            done = run(*words, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertNotIn("this is a file", done.stdout + done.stderr, words)

    def test_no_time_at_all_is_no_limit(self):
        done = run("call", "--tools", TOOLS, "plain.greet", "--timeout", "0")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("expected more than 0", done.stderr)

    def test_arguments_that_the_operator_lets_through_unchecked(self):
        folder = scratch(self)
        write_tool(folder / "tools", "engine", "def name(number: int) -> str:\n    return type(number).__name__\n", HEADER)
        config = config_file(folder, '[tool."engine.name"]\nvalidate = false\n')
        words = ["call", "--tools", folder / "tools", "engine.name", 'number:="text"']
        self.assertEqual(run(*words).returncode, 2)
        self.assertEqual(run(*words, "--config", config).stdout, "str\n")


if __name__ == "__main__":
    unittest.main()
