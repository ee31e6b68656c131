"""Rules about results: their size, and what is taken out of everything that a call says."""

import json
import unittest

import shared_mode
from harness import config_file, environment, run, scratch, write_tool
from wire import Wire, call

TOOL = """
import hostler, sys

NUMBER = "123-45-6789"

def person() -> dict:
    hostler.progress(1, 2, f"found {NUMBER}")
    hostler.log(f"logged {NUMBER}", number=NUMBER)
    print("printed", NUMBER)
    return {"number": NUMBER, NUMBER: [1, 987654321012, 10000000000000000000001], "text": f"<{NUMBER}>"}

def fails() -> str:
    raise ValueError(NUMBER)

def large(size: int) -> str:
    return "x" * size
"""
PROGRAM = """#!/bin/sh
[ "$1" = --schema ] && echo '{"parameters": {"type": "object"}}' && exit
echo "printed 123-45-6789" >&2
echo '"said 123-45-6789"'
"""
RULES = "[policy]\nredact = ['\\b\\d{3}-\\d{2}-\\d{4}\\b']\n[tool.a]\nredact = ['^987654']\nmax_result_mb = 1\n"


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        self.state = self.folder / "state"
        write_tool(self.tools, "a", TOOL)
        program = self.tools / "p"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.env = environment(XDG_STATE_HOME=str(self.state))

    def configure(self, text):
        self.config = config_file(self.folder, '[journal]\nbodies = "all"\n' + text)

    def outcome(self, *words):
        done = run("call", "--json", "--config", str(self.config), "--tools", str(self.tools), *words, env=self.env, cwd=self.folder)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def test_what_matches_is_in_nothing_that_a_call_says(self):
        self.configure(RULES)
        wire = Wire(self.tools, cwd=self.folder, arguments=("--config", str(self.config)), env=self.env)
        self.addCleanup(wire.__exit__)
        wire.open()
        wire.send(call(1, "a_person", "token"))
        said = [wire.read()]
        while said[-1].get("id") != 1:
            said.append(wire.read())
        self.assertNotIn("123-45-6789", json.dumps(said))
        self.assertIn("found [redacted]", json.dumps(said))
        outcome = self.outcome("a.person")
        self.assertEqual(outcome["result"], {"number": "[redacted]", "[redacted]": [1, "[redacted]321012", 10000000000000000000001],
                                             "text": "<[redacted]>"})
        words = ("--config", str(self.config), "--tools", str(self.tools))
        said = [run("call", *words, tool, env={**self.env, "HOSTLER_LOG": "debug"}, cwd=self.folder).stderr
                for tool in ("a.person", "a.fails", "p")]
        self.assertNotIn("123-45-6789", "".join(said))
        log = said[0]
        if not shared_mode.IS_ON:  # a shared hostler writes what workers log into its own log
            self.assertIn("logged [redacted]", log)
        self.assertEqual(self.outcome("a.fails")["error"]["message"].partition(" (")[0], "ValueError: [redacted]")
        program = self.outcome("p")
        self.assertEqual((program["result"], program["metadata"]["output"]), ("said [redacted]", "printed [redacted]\n"))
        kept = b"".join(path.read_bytes() for path in self.state.rglob("*") if path.is_file() and "source" not in path.name)
        self.assertIn(b"[redacted]", kept)
        self.assertNotIn(b"<123-45-6789>", kept)

    def test_without_the_rule_it_is_there(self):
        self.configure("")
        self.assertEqual(self.outcome("a.person")["result"]["text"], "<123-45-6789>")

    def test_a_result_that_is_too_large_is_refused(self):
        self.configure(RULES)
        self.assertIsNone(self.outcome("a.large", "size=1000000")["error"])
        error = self.outcome("a.large", "size=1048577")["error"]
        self.assertEqual(error["code"], "INVALID_OUTPUT")
        self.assertIn("at most 1 MB", error["message"])

    def test_patterns_without_a_meaning_are_refused_and_clients_see_none(self):
        for pattern, words in (("(", "is not a pattern"), ("x*", "matches an empty text")):
            self.configure(f"[policy]\nredact = ['{pattern}']\n")
            done = run("call", "--config", str(self.config), "--tools", str(self.tools), "a.person", env=self.env)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)
        self.configure(RULES)
        listed = run("list", "--json", "--config", str(self.config), "--tools", str(self.tools), env=self.env).stdout
        self.assertNotIn("987654", listed)


if __name__ == "__main__":
    unittest.main()
