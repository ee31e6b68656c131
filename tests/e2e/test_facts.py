"""What is said of tools besides what they take: kept from every kind of tool, overruled by the operator, shown, selected by."""

import json
import os
import time
import unittest
from pathlib import Path

from harness import TOOLS, config_file, connected, eventually, run, scratch, write_tool
from test_executables import program, script

HEADER = """# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# version = "1.2"
# tags = ["text", "small"]
# category = "read_only"
# risk_level = "low"
# allowed_modes = ["normal", "alert"]
# requires_approval = true
# requires_sandbox = false
# rate_limit_per_hour = 60
# ///
"""
SCHEMA = {"description": "Send it.", "version": "3.0", "tags": ["text"], "category": "network", "risk_level": "medium",
          "allowed_modes": ["NORMAL", "degraded"], "requires_approval": False, "requires_sandbox": True, "rate_limit_per_hour": 5, "timeout": "7s", "effects": "idempotent", "parameters": {}}
CONFIG = """[builtin]
enable = ["glob", "hostler_tools"]
roots = ["."]
[tool."plain.two"]
risk_level = "high"
allowed_modes = ["recovery"]
[tool.glob]
timeout = "9s"
"""
KEYS = ("version", "tags", "category", "risk_level", "allowed_modes", "requires_approval", "requires_sandbox", "rate_limit_per_hour")
# Another word for each key than any tool here says itself.
RULED = """version = "9"
tags = ["ruled"]
category = "local"
risk_level = "high"
allowed_modes = ["lockdown"]
requires_approval = true
requires_sandbox = true
rate_limit_per_hour = 9
"""


class Facts(unittest.IsolatedAsyncioTestCase):
    def place(self):
        folder = scratch(self)
        write_tool(folder / "tools", "plain", "def one() -> int:\n    return 1\n\ndef two() -> int:\n    return 2\n", header=HEADER)
        program(folder / "tools", "send", schema=SCHEMA)
        return "--tools", folder / "tools", "--config", config_file(folder, CONFIG)

    def listed(self, *words):
        done = run("list", "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["name"]: row for row in json.loads(done.stdout)}

    def said(self, *words):
        return {name: tuple(row.get(key) for key in KEYS) for name, row in self.listed(*words).items()}

    def test_each_kind_of_tool_says_it_and_the_operator_has_the_last_word(self):
        self.assertEqual(self.said(*self.place()), {
            "plain.one": ("1.2", ["text", "small"], "read_only", "low", ["normal", "alert"], True, False, 60),
            "plain.two": ("1.2", ["text", "small"], "read_only", "high", ["recovery"], True, False, 60),
            "send": ("3.0", ["text"], "network", "medium", ["normal", "degraded"], False, True, 5),
            "glob": (None, None, "read_only", "low", None, None, None, None),
            "hostler_tools": (None, None, "read_only", "low", None, None, None, None),
        })

    def test_what_of_it_nobody_understands_is_told_and_restricts_all_the_same(self):
        tools = scratch(self) / "tools"
        path = program(tools, "send", schema={"requires_approval": "yes", "allowed_modes": ["plan"], "timeout": "soon", "parameters": {}})
        silent = program(tools, "silent", body="", schema=[])
        sly = program(tools, "sly", schema={"effects": "a; b\x9b31m\u202e", "parameters": {}})
        page = script(tools, "page", "#!/bin/sh\necho '<html>'\n")
        dies = script(tools, "dies", "#!/bin/sh\necho 'no; never' >&2\nexit 3\n")
        for it in (path, silent, sly, page, dies):
            os.utime(it, (1_000_000_000, 1_000_000_000))
        # What was changed a moment ago is not believed to be the same the next time.
        eventually(lambda: time.time() - silent.stat().st_ctime > 3, "it has settled")
        self.assertEqual(self.said("--tools", tools)["send"], (None, None, None, None, [], True, None, None))
        shown = run("show", "send", "--tools", tools).stdout
        for words in ("`requires_approval` is taken as true: ", "`allowed_modes` is taken as []: ", "`timeout` is ignored: got soon"):
            self.assertIn(f"warning: {path}: {words}", shown)
        checked = json.loads(run("check", "--json", "--tools", tools).stdout)
        self.assertEqual({(found["rule"], found["level"]) for found in checked}, {("metadata", "warning")})
        self.assertEqual([Path(found["file"]).name for found in checked].count("send"), 3)
        mended = "let `--schema` print a JSON schema of its arguments"
        self.assertEqual({Path(found["file"]).name: (found["message"], found["fix"]) for found in checked} | {"send": None}, {
            "send": None,
            "silent": ("`--schema` prints an empty list", mended),
            "sly": ("`effects` is ignored: unknown variant `a; b\x9b31m\u202e`, expected one of `pure`, `idempotent`, `once`",
                    "correct `effects` in the output of `--schema`"),
            "page": ("the output of `--schema` begins with `<html>` and is not JSON: expected value at line 1 column 1", mended),
            "dies": ("`--schema` ended with exit status 3: no; never", "make it print JSON and exit with 0"),
        })
        self.assertIn("a; b·31m·", run("check", "--tools", tools).stdout, "nothing paints over the rest")

    def test_the_operator_overrules_all_of_it_for_every_kind(self):
        folder = scratch(self)
        other = HEADER.replace("approval = true", "approval = false")
        write_tool(folder / "tools", "plain", "def one() -> int:\n    return 1\n", header=other)
        program(folder / "tools", "send", schema={**SCHEMA, "requires_sandbox": False})
        tables = "".join(f"[tool.{name}]\n{RULED}" for name in ("plain", "send", "glob"))
        config = config_file(folder, f'[builtin]\nenable = ["glob"]\nroots = ["."]\n{tables}')
        ruled = ("9", ["ruled"], "local", "high", ["lockdown"], True, True, 9)
        self.assertEqual(self.said("--tools", folder / "tools", "--config", config), dict.fromkeys(("plain.one", "send", "glob"), ruled))

    def test_tools_are_selected_by_it(self):
        place = self.place()
        write_tool(place[1], "broken", "(\n")
        self.assertIn("broken", self.listed(*place), "it is told, and meant by no word of a selection")
        for words, names in (
            (("--mode", "normal"), {"plain.one", "send", "glob", "hostler_tools"}),
            (("--mode", "RECOVERY", "--tag", "small"), {"plain.two"}),
            (("--category", "network"), {"send"}),
            (("--pack", "plain"), {"plain.one", "plain.two"}),
            (("--kind", "builtin"), {"glob", "hostler_tools"}),
            (("--kind", "python", "--mode", "lockdown"), set()),
        ):
            with self.subTest(words):
                self.assertEqual(set(self.listed(*words, *place)), names)
        wrong = run("list", "--mode", "panic", *place)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("normal, alert, degraded, lockdown, recovery", wrong.stderr)

    def test_it_is_shown_with_who_said_it(self):
        place = self.place()
        settings = json.loads(run("show", "plain.two", "--json", *place).stdout)["settings"]
        self.assertEqual(settings["risk_level"], {"value": "high", "origin": f"{place[3]}:5"})
        self.assertTrue(settings["category"]["origin"].startswith("header "), settings["category"])
        shown = tuple(settings[key]["value"] for key in KEYS)
        self.assertEqual(shown, ("1.2", "text, small", "read_only", "high", "recovery", "true", "false", "60"))
        sent = json.loads(run("show", "send", "--json", *place).stdout)["settings"]
        self.assertEqual((sent["timeout"], sent["effects"]["value"]), ({"value": "7s", "origin": "the tool itself"}, "idempotent"))
        glob = json.loads(run("show", "glob", "--json", *place).stdout)["settings"]
        self.assertEqual(glob["timeout"], {"value": "9s", "origin": f"{place[3]}:8"})
        text = run("show", "send", *place).stdout
        self.assertRegex(text, r"requires_sandbox +true +the tool itself\n")

    def test_what_is_none_is_told_with_what_there_is(self):
        folder = scratch(self)
        write_tool(folder, "odd", "def one() -> int:\n    return 1\n", header=HEADER.replace('"low"', '"lowish"').replace("tags", "tag"))
        row = self.listed("--tools", folder)["odd.one"]
        self.assertEqual(row["status"], "broken")
        self.assertIn("did you mean `tags`?", row["reason"])
        write_tool(folder, "odd", "def one() -> int:\n    return 1\n", header=HEADER.replace('"low"', '"lowish"'))
        self.assertIn('"low", "medium", "high"', self.listed("--tools", folder)["odd.one"]["reason"])

    def test_a_selection_that_nothing_meets_is_told_with_what_there_is(self):
        _, tools, _, config = self.place()
        for words, told in (
            (["--category", "netwrk"], "no tool has the category `netwrk`; "),
            (["--tag", "smal"], "no tool has the tag `smal`; "),
            (["--pack", "plan"], "no tool has the pack `plan`; "),
            (["--pack", "plain", "--kind", "builtin"], "no tool matches"),
        ):
            done = run("list", *words, "--tools", tools, "--config", config)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertIn(told, done.stderr)
        done = run("list", "--category", "x", "--tools", TOOLS)
        self.assertIn("no tool has the category `x`; ", done.stderr)

    async def test_a_model_finds_tools_by_it(self):
        _, tools, _, config = self.place()
        async with connected(tools, config=config) as session:
            await session.call("send")
            network = await session.value("hostler_tools", category="network")
            self.assertEqual([(tool["name"], tool["risk_level"]) for tool in network], [("send", "medium")])
            small = await session.value("hostler_tools", tag="small")
            self.assertEqual([tool["name"] for tool in small], ["plain.one", "plain.two"])


if __name__ == "__main__":
    unittest.main()
