"""What the operator says that a file needs: packages, interpreters, folders of modules."""

import asyncio
import json
import os
import unittest

from harness import PATIENCE, config_file, connected, environment, run, scratch, write_tool

USES = "import further\n\ndef f() -> int:\n    return further.VALUE\n"


class Needs(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        for number in (1, 2):
            place = self.folder / f"lib{number}"
            place.mkdir()
            (place / "further.py").write_text(f"VALUE = {number}\n")

    def outcome(self, config, tool="a.f", *arguments):
        done = run("call", "--json", tool, *arguments, "--tools", self.tools, "--config", config, env=environment(), cwd=self.folder)
        return json.loads(done.stdout)

    def findings(self, config):
        return json.loads(run("check", "--json", "--tools", self.tools, "--config", config, env=environment()).stdout)

    def test_folders_of_modules(self):
        write_tool(self.tools, "a", USES, header="")
        for settings in ('python_path = ["lib1"]', f'env = {{ PYTHONPATH = "{self.folder}/lib1" }}', 'python_path = ["lib1", "lib2"]',
                         f'python_path = ["lib1"]\nenv = {{ PYTHONPATH = "{self.folder}/lib2" }}', 'python_path = ["lib1"]\nsandbox = "pure"'):
            with self.subTest(settings):
                config = config_file(self.folder, f"[tool.a]\n{settings}\n")
                self.assertEqual(self.outcome(config).get("result"), 1)
                self.assertEqual(self.findings(config), [])

    def test_a_folder_that_is_relative_or_cannot_be_listed_is_no_help(self):
        write_tool(self.tools, "a", USES, header="")
        config = config_file(self.folder, '[tool.a]\nenv = { PYTHONPATH = "lib1" }\n')
        self.assertEqual(self.outcome(config)["error"]["code"], "STARTUP_FAILED")
        config = config_file(self.folder, '[tool.a]\npython_path = ["a:b"]\n')
        self.assertIn("`:`", run("list", "--tools", self.tools, "--config", config).stderr)

    def test_packages_instead_of_those_of_the_header(self):
        body = "def f() -> int:\n    return 1\n"
        write_tool(self.tools, "a", body, header='# /// script\n# dependencies = ["hostler-has-no-such-package"]\n# ///\n')
        self.assertEqual(self.outcome(config_file(self.folder, ""))["error"]["code"], "ENVIRONMENT_FAILED")
        config = config_file(self.folder, '[tool.a]\ndependencies = []\nrequires-python = ">=3.9"\n')
        self.assertEqual(self.outcome(config)["result"], 1)
        shown = json.loads(run("show", "--json", "a.f", "--tools", self.tools, "--config", config).stdout)["settings"]
        self.assertTrue(shown["requires-python"]["origin"].endswith("hostler.toml:3"), shown["requires-python"])
        for wrong in ('dependencies = ["six ==== 1"]', 'requires-python = "three"'):
            config = config_file(self.folder, f"[tool.a]\n{wrong}\n")
            fault = self.outcome(config)["error"]
            self.assertEqual(fault["code"], "STARTUP_FAILED")
            self.assertIn("hostler.toml:2", fault["message"])

    def test_the_command_line_of_the_program(self):
        reads = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--root', required=True)\n"
        for name, body in (("a", reads + "given = parser.parse_args()\ndef f() -> str:\n    return given.root\n"),
                           ("b", reads + "def f() -> str:\n    return parser.parse_args().root\n")):
            write_tool(self.tools, name, body, header="")
            fault = self.outcome(config_file(self.folder, ""), f"{name}.f")["error"]
            self.assertEqual(fault["code"], {"a": "STARTUP_FAILED", "b": "TOOL_ERROR"}[name])
            for part in ("arguments are required: --root", f"`args = [\"--name\", \"value\"]` under [tool.{name}]"):
                self.assertIn(part, fault["message"])
            for args, root in (('["--root", "/a b"]', "/a b"), ('["--root="]', ""), ('["--root", "ü\\n$HOME"]', "ü\n$HOME")):
                config = config_file(self.folder, f"[tool.{name}]\nargs = {args}\n")
                self.assertEqual(self.outcome(config, f"{name}.f").get("result"), root)
            config = config_file(self.folder, f'[tool.{name}]\nargs = ["--rot"]\n')
            self.assertIn("hostler.toml:2", self.outcome(config, f"{name}.f")["error"]["message"])
        config = config_file(self.folder, '[tool.a]\nargs = ["a\\u0000b"]\n')
        self.assertIn("NUL", run("list", "--tools", self.tools, "--config", config).stderr)

    def test_a_command_line_is_passed_as_it_is(self):
        write_tool(self.tools, "a", "import sys\nLINE = sys.argv[1:]\ndef f() -> list[str]:\n    return LINE\n", header="")
        for args in ([], [""], ["", " "], ["a\u001fb", "--", "-I"]):
            config = config_file(self.folder, f"[tool.a]\nargs = {json.dumps(args)}\n")
            self.assertEqual(self.outcome(config).get("result"), args)
        worker = "import json, sys\nfor line in sys.stdin:\n    print(json.dumps({'result': sys.argv[1:], 'error': None}), flush=True)\n"
        write_tool(self.tools, "bare", worker, header="# /// script\n# dependencies = []\n# ///\n")
        config = config_file(self.folder, '[tool.bare]\nprotocol = "bare"\nfunctions = ["f"]\nargs = ["-x"]\n')
        self.assertEqual(self.outcome(config, "bare.f").get("result"), ["-x"])

    def test_a_line_that_a_function_parses_is_not_the_programs(self):
        body = """import argparse, shlex
            def f(line: str) -> int:
                parser = argparse.ArgumentParser()
                parser.add_argument("--n", type=int)
                return parser.parse_args(shlex.split(line)).n
            def g() -> int:
                raise SystemExit("usage: none")
            """
        import textwrap

        write_tool(self.tools, "a", textwrap.dedent("            " + body), header="")
        for tool, arguments in (("a.f", ["line=--n x"]), ("a.g", [])):
            fault = self.outcome(config_file(self.folder, ""), tool, *arguments)["error"]
            self.assertEqual((fault["code"], "command line" in fault["message"]), ("TOOL_ERROR", False), fault)

    def test_a_program_has_it_before_that_of_a_call(self):
        header = '# /// script\n# dependencies = []\n# [tool.hostler]\n# serve = "main"\n# ///\n'
        write_tool(self.tools, "a", "import sys\nprint(sys.argv[1:])\n", header=header)
        config = config_file(self.folder, '[tool.a]\nargs = ["-x"]\n')
        self.assertEqual(self.outcome(config, "a.main", "argv=[\"y\"]").get("result"), "['-x', 'y']")

    async def test_a_change_of_them_gives_other_workers(self):
        write_tool(self.tools, "a", "import os\n" + USES + "\ndef pid() -> int:\n    return os.getpid()\n", header="")
        config = config_file(self.folder, '[tool.a]\npython_path = ["lib1"]\n')
        async with connected(self.tools, config=config) as session:
            self.assertEqual(await session.value("a_f"), 1)
            first = await session.value("a_pid")
            fresh = self.folder / "fresh.toml"
            fresh.write_text('[tool.a]\npython_path = ["lib2"]\n')
            os.replace(fresh, config)

            async def changed():
                while await session.value("a_f") != 2:
                    pass  # each call looks whether the configuration has changed

            await asyncio.wait_for(changed(), PATIENCE)
            self.assertNotEqual(await session.value("a_pid"), first)


if __name__ == "__main__":
    unittest.main()
