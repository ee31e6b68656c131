"""Files that are served as programs: `serve = "main"`."""

import json
import unittest

from harness import config_file, connected, eventually_async, run, scratch, write_tool

REPORT = '''"""Makes a report."""
import argparse
import sys

CALLS = []


def main():
    CALLS.append(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("name", help="Whose report.")
    parser.add_argument("--times", type=int, choices=[1, 2])
    given = parser.parse_args()
    print(given.name, given.times, len(CALLS), __name__, sys.modules["__main__"].main is main)
    print(sys.stdin.read(), end="")


if __name__ == "__main__":
    main()
'''
ENDS = '''import sys
print("before")
how = sys.argv[1]
if how == "raise":
    raise ValueError("no such report")
sys.exit({"zero": 0, "none": None, "three": 3, "text": "gave up"}[how])
'''
HEADER = '# /// script\n# dependencies = []\n# [tool.hostler]\n# serve = "main"\n# ///\n'


class Programs(unittest.IsolatedAsyncioTestCase):
    async def test_a_program_is_one_tool_with_a_command_line(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "report", REPORT, header=HEADER)
        async with connected(tools) as hostler:
            listed = await hostler.tools()
            self.assertEqual(list(listed), ["report_main"])
            tool = listed["report_main"]
            self.assertIn("- `--times`, one of [1,2]", tool.description)
            self.assertEqual(list(tool.input_schema["properties"]), ["argv", "stdin"])
            first = await hostler.call("report_main", argv=["Ada", "--times", "2"], stdin="one\ntwo\n")
            self.assertEqual(first.value, "Ada 2 1 __main__ True\none\ntwo")
            again = await hostler.call("report_main", argv=["Bob"])
            self.assertEqual((again.value, again.worker), ("Bob None 1 __main__ True", first.worker), "anew, in the same worker")
            wrong = await hostler.call("report_main", argv=["Ada", "--times", "7"])
            self.assertEqual(wrong.code, "TOOL_ERROR")
            self.assertIn("exit status 2: usage: report.py", wrong.message)
            refused = await hostler.call("report_main", argv="Ada")
            self.assertEqual(refused.code, "INVALID_PARAMS")

    async def test_each_call_finds_what_the_first_one_found(self):
        folder = scratch(self)
        tools = folder / "tools"
        body = ("import logging, os, sys, threading\nlogging.basicConfig(stream=sys.stdout, format='%(message)s')\n"
                "logging.warning('%s %s %s', os.getcwd(), os.environ.get('MARK'), len(sys.path))\n"
                "os.chdir('/'); os.environ['MARK'] = 'x'; sys.path.append('y')\n"
                "threading.Timer(0.05, print, ['thread'], {'file': sys.stdout}).start()\nsys.stdout = open(os.devnull, 'w')\n")
        write_tool(tools, "keeps", body, header=HEADER)
        async with connected(tools) as hostler:
            first = await hostler.call("keeps_main")
            self.assertRegex(first.value, r"^/\S+ None \d+\nthread$")
            self.assertEqual((await hostler.value("keeps_main")), first.value)
        async with connected(tools, config=config_file(folder, "[tool.keeps]\nconcurrency = 2\n")) as hostler:
            refused = await hostler.call("keeps_main")
            self.assertEqual(refused.code, "TOOL_ERROR")
            self.assertIn("concurrency = 1", refused.message)

    async def test_its_last_good_version_answers(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "report", REPORT, header=HEADER)
        async with connected(tools) as hostler:
            self.assertIn("Ada", await hostler.value("report_main", argv=["Ada"]))
            write_tool(tools, "report", REPORT + "\ndef broken(:\n", header=HEADER)
            await eventually_async(lambda: "last good version answers" in hostler.said(), "it is noticed")
            self.assertIn("Bob", await hostler.value("report_main", argv=["Bob"]))

    async def test_the_operator_may_say_it_of_any_file(self):
        folder = scratch(self)
        tools = folder / "tools"
        write_tool(tools, "ends", ENDS, header="")
        write_tool(tools, "functions", "def f() -> int:\n    return 1\n", header="")
        config = config_file(folder, '[tool.ends]\nserve = "main"\n[tool.functions]\nserve = "main"\n')
        async with connected(tools, config=config) as hostler:
            self.assertEqual(list(await hostler.tools()), ["ends_main"])
            for how in ("zero", "none"):
                self.assertEqual(await hostler.value("ends_main", argv=[how]), "before")
            for how, code, words in (("three", "TOOL_ERROR", "exit status 3: before"), ("text", "TOOL_ERROR", "gave up"),
                                     ("raise", "TOOL_ERROR", "no such report")):
                ended = await hostler.call("ends_main", argv=[how])
                self.assertEqual(ended.code, code, how)
                self.assertIn(words, ended.message)
            self.assertIn("before\n", ended.output, "what it printed until then")
            self.assertEqual((await hostler.call("functions.f")).code, "STARTUP_FAILED")
        found = json.loads(run("check", "--json", "--tools", tools, "--config", config).stdout)
        self.assertEqual([(one["rule"], one["file"].rpartition("/")[2]) for one in found if one["level"] == "error"],
                         [("settings", "functions.py")])

    def test_a_program_without_functions_is_listed_with_what_to_do(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "ends", ENDS, header="")
        listed = run("list", "--json", "--tools", tools)
        self.assertIn('serve = \\"main\\"', listed.stdout + listed.stderr)


class Renamed(unittest.TestCase):
    LONG = "a_name_of_a_function_that_is_far_too_long_for_what_models_accept"

    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "long", f"def {self.LONG}() -> int:\n    return 1\n\n\ndef f() -> int:\n    return 2\n", header="")
        write_tool(self.tools, "a", "def b_c() -> int:\n    return 3\n", header="")
        write_tool(self.tools, "a_b", "def c() -> int:\n    return 4\n", header="")

    def listed(self, settings=""):
        done = run("list", "--json", "--tools", self.tools, "--config", config_file(self.folder, settings), cwd=self.folder)
        self.assertNotIn("no tool is named", done.stderr)
        return {row["name"]: (row["status"], row.get("reason") or "") for row in json.loads(done.stdout)}

    def value(self, name, settings):
        return run("call", name, "--tools", self.tools, "--config", config_file(self.folder, settings), cwd=self.folder).stdout.strip()

    def test_a_name_that_is_too_long_or_taken_says_which_key_mends_it(self):
        rows = self.listed()
        for name, key in ((f"long.{self.LONG}", f'[tool."long.{self.LONG}"]'), ("a_b.c", '[tool."a_b.c"]')):
            self.assertEqual(rows[name][0], "broken", rows)
            self.assertIn(f'set `as = "…"` under {key}', rows[name][1])
        settings = f'[tool."long.{self.LONG}"]\nas = "short"\neffects = "pure"\n[tool.a_b]\nas = "other"\n'
        rows = self.listed(settings)
        self.assertEqual({name: row[0] for name, row in rows.items()},
                         dict.fromkeys(("long.short", "long.f", "a.b_c", "other.c"), "ready"))
        for name, value in (("long.short", "1"), ("long_short", "1"), ("other_c", "4"), ("a.b_c", "3")):
            self.assertEqual(self.value(name, settings), value)
        shown = json.loads(run("show", "--json", "long.short", "--tools", self.tools, "--config", config_file(self.folder, settings)).stdout)
        self.assertEqual(shown["settings"]["effects"]["value"], "pure", "its table has its own name")
        check = run("check", "--json", "--tools", self.tools, "--config", config_file(self.folder, settings))
        self.assertEqual(json.loads(check.stdout), [])

    def test_a_second_tool_of_one_name_in_a_file_has_a_key(self):
        write_tool(self.tools, "both", "class Tools:\n    def find(self) -> int:\n        return 5\n\n    def other(self) -> int:\n        return 6\n\n\n"
                                       "def find() -> int:\n    return 7\n\n\n__all__ = ['Tools', 'find']\n", header="")
        done = run("list", "--json", "--tools", self.tools, cwd=self.folder)
        rows = [(row["name"], row["status"]) for row in json.loads(done.stdout) if row["name"].startswith("both")]
        self.assertEqual(sorted(rows), [("both.find", "broken"), ("both.find", "ready"), ("both.other", "ready")])
        found = [one for one in json.loads(run("check", "--json", "--tools", self.tools).stdout) if one["file"].endswith("both.py")]
        self.assertEqual([(one["rule"], one["line"]) for one in found], [("name", 2)])
        self.assertIn('[tool."both.Tools_find"]', found[0]["fix"])
        settings = '[tool."both.Tools_find"]\nas = "seek"\n'
        self.assertEqual([self.value(name, settings) for name in ("both.find", "both.seek", "both.other")], ["7", "5", "6"])
        self.assertNotIn("broken", [row[0] for name, row in self.listed(settings).items() if name.startswith("both")])

    def test_what_all_names_may_be_in_another_file(self):
        write_tool(self.tools, "shop", "from parts import Box, weigh\n\nbox = Box('b')\n__all__ = ['box', 'weigh']\n", header="")
        write_tool(self.tools, "parts", "class Base:\n    def name(self) -> str:\n        return self.label\n\n\n"
                                        "class Box(Base):\n    def __init__(self, label):\n        self.label = label\n\n"
                                        "    def put(self, items: list[str]) -> str:\n        return self.label + str(len(items))\n\n\n"
                                        "def weigh(n: int) -> int:\n    return n * 2\n", header="")
        self.assertEqual({name for name in self.listed() if name.startswith(("shop", "parts"))}, {"shop.name", "shop.put", "shop.weigh"})
        self.assertEqual([self.value("shop.name", ""), self.call("shop.put", 'items=["x"]'), self.call("shop.weigh", "n=4")], ["b", "b1", "8"])

    def call(self, name, *values):
        return run("call", name, *values, "--tools", self.tools, cwd=self.folder).stdout.strip()

    def test_settings_of_another_kind_of_file_are_reported(self):
        several = self.tools / "several"
        several.write_text('#!/bin/sh\necho \'[{"name": "one"}, {"name": "two"}]\' # --schema\n')
        several.chmod(0o755)
        self.listed()
        config = config_file(self.folder, '[tool.a]\noutput = "text"\nask = true\n[tool.several]\nserve = "main"\nas = "x"\n')
        found = json.loads(run("check", "--json", "--tools", self.tools, "--config", config).stdout)
        lines = sorted(one["line"] for one in found if one["rule"] == "unused-settings")
        self.assertEqual(lines[:3], [2, 3, 5], found)

    def test_what_takes_a_name_is_refused(self):
        program = self.tools / "several"
        program.write_text('#!/bin/sh\necho \'[{"name": "one"}, {"name": "two"}, {"name": "three"}]\' # --schema\n')
        program.chmod(0o755)
        rows = self.listed('[tool."several.one"]\nas = "same"\n[tool."several.two"]\nas = "same"\n')
        self.assertEqual((rows["three"][0], rows["same"][0]), ("ready", "broken"))
        self.assertNotIn("line 0", rows["same"][1])
        program.unlink()
        settings = '[tool."a_b.c"]\nas = "b"\n[tool.a_b]\nas = "a"\n[tool."a.b_c"]\nas = "b"\n'
        self.assertEqual(self.listed(settings)["a.b"][0], "broken")
        self.assertEqual(self.value("a.b", settings), "3", "the first by path has it")
        wrong = run("list", "--tools", self.tools, "--config", config_file(self.folder, '[tool.a]\nas = "x-y"\n'))
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("`tool.a.as`", wrong.stderr)
