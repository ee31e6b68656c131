"""A call is made again as it was, whatever became of its tool file, and as a test."""

import importlib.util
import json
import os
import shutil
import unittest
from unittest import mock

from harness import HOSTLER, config_file, environment, run, scratch, write_tool

GREET = '''# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# effects = "{effects}"
# ///
import words

def hello(name: str) -> dict:
    if name == "nobody":
        raise LookupError("there is no " + name)
    return {{"text": words.GREETING + " " + name}}
'''


class Replay(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        self.env = environment(XDG_STATE_HOME=str(self.folder / "state"))
        write_tool(self.tools, "greet", GREET.format(effects="pure"), header="")
        write_tool(self.tools, "words", 'GREETING = "hello"\n', header="")
        config_file(self.folder, 'tools = ["tools"]\n[journal]\nbodies = "all"\n[builtin]\nenable = ["glob"]\nroots = ["."]\n')
        self.keys = 0

    def hostler(self, *words):
        return run(*words, env=self.env, cwd=self.folder)

    def call(self, *words):
        """Makes a call that is written down, and returns its id."""
        self.keys += 1
        done = self.hostler("call", *words, "--key", f"k{self.keys}", "--json")
        return json.loads(done.stdout)["call_id"]

    def replay(self, *words):
        done = self.hostler("replay", *words, "--json")
        self.assertTrue(done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_a_call_is_made_again_as_it_was(self):
        good, bad = self.call("greet.hello", "name=you"), self.call("greet.hello", "name=nobody")
        for call in (good, bad):
            status, told = self.replay(call[:12])
            self.assertEqual((status, told["same"], told["source"]), (0, True, "kept"), told)
        write_tool(self.tools, "words", 'GREETING = "good day"\n', header="")
        write_tool(self.tools, "greet", GREET.format(effects="pure").replace("raise", "return {'text': 'mended'}; raise"), header="")
        for call in (good, bad):
            status, told = self.replay(call)
            self.assertEqual((status, told["same"]), (0, True), "its source and helper are those of the call")
        status, told = self.replay(good, "--against", "tools/greet.py")
        self.assertEqual((status, told["same"], told["now"]["result"]), (1, False, {"text": "good day you"}))
        self.assertEqual(told["then"]["result"], {"text": "hello you"})
        status, told = self.replay(bad, "--against", "tools/greet.py")
        self.assertEqual((status, told["then"]["error"]["code"], told["now"]["result"]), (1, "TOOL_ERROR", {"text": "mended"}))
        said = self.hostler("replay", good, "--against", "tools/greet.py")
        self.assertIn('-  "text": "hello you"\n+  "text": "good day you"\n', said.stdout)
        shutil.rmtree(self.tools)
        self.assertEqual(self.replay(good)[0], 0, "also when the file is gone")

    def test_another_file_of_another_name_takes_the_call(self):
        call = self.call("greet.hello", "name=you")
        write_tool(self.folder / "other", "mine", "def hello(name: str) -> str:\n    return name\n")
        status, told = self.replay(call, "--against", "other/mine.py", "--yes")
        self.assertEqual((status, told["now"]["tool"], told["now"]["result"]), (1, "mine.hello", "you"))
        (self.folder / "other" / "text.txt").write_text("")
        (self.folder / "other" / "broken.py").write_text("def hello(:\n")
        for name, words in (("text.txt", "is no tool file"), ("none.py", "No such file"), ("broken.py", "line 1")):
            refused = self.hostler("replay", call, "--against", f"other/{name}")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(words, refused.stderr)

    def test_the_lock_is_the_one_that_was_there(self):
        lock = self.tools / "greet.py.lock"
        lock.write_text('version = 1\nrevision = 3\nrequires-python = ">=3.9"\n')
        call = self.call("greet.hello", "name=you")
        lock.write_text("damaged")
        shown = json.loads(self.hostler("calls", "show", call, "--json").stdout)["details"]
        with open(shown["lock"]) as kept:
            self.assertIn("requires-python", kept.read())
        status, told = self.replay(call)
        self.assertEqual((status, told["same"]), (0, True), told)
        self.assertEqual(self.replay(call, "--against", "tools/greet.py")[1]["now"]["error"]["code"], "ENVIRONMENT_FAILED")

    def test_what_is_done_again_is_asked_for(self):
        write_tool(self.tools, "greet", GREET.format(effects="once"), header="")
        call = self.call("greet.hello", "name=you")
        refused = self.hostler("replay", call)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("--yes", refused.stderr)
        self.assertEqual(self.replay(call, "--yes")[1]["same"], True)

    def test_what_cannot_be_made_again_is_said(self):
        config_file(self.folder, 'tools = ["tools"]\n[journal]\nbodies = "none"\n')
        call = self.call("greet.hello", "name=you")
        for id, words in ((call, "were not kept"), ("nothing", "there is no call nothing")):
            refused = self.hostler("replay", id)
            self.assertIn(words, refused.stderr)
            self.assertNotIn(refused.returncode, (0, 1))
        self.assertEqual(list((self.folder / "state").rglob("hostler-source.json")), [], "no source without arguments")

    def test_secrets_are_taken_out_before_it_is_compared(self):
        text = '# /// script\n# requires-python = ">=3.9"\n# [tool.hostler]\n# effects = "pure"\n# secrets = ["KEY"]\n# ///\n'
        write_tool(self.tools, "keeper", text + "import hostler\ndef say(fails: bool) -> str:\n    if fails:\n"
                   "        raise ValueError(hostler.secret('KEY'))\n    return 'it is ' + hostler.secret('KEY')\n", header="")
        self.env["KEY"] = "canary-2718"
        for fails in ("false", "true"):
            call = self.call("keeper.say", f"fails={fails}")
            done = self.hostler("replay", call, "--json")
            self.assertEqual((done.returncode, json.loads(done.stdout)["same"]), (0, True), done.stdout)
            self.assertNotIn("canary", done.stdout + done.stderr)

    def test_what_was_never_made_is_not_made_again(self):
        for words in (["greet.hello", "age:=3"], ["greet.nothing"]):
            refused = self.hostler("replay", self.call(*words))
            self.assertEqual((refused.returncode, "was not made" in refused.stderr), (2, True), refused.stderr)

    def test_without_its_source_only_the_same_one_will_do(self):
        call = self.call("greet.hello", "name=you")
        for kept in (self.folder / "state").rglob("hostler-source.json"):
            kept.unlink()
        status, told = self.replay(call)
        self.assertEqual((status, told["source"]), (0, "present"))
        write_tool(self.tools, "words", 'GREETING = "good day"\n', header="")
        refused = self.hostler("replay", call)
        self.assertEqual(refused.returncode, 2)
        self.assertIn(f"--against {self.tools}/greet.py", refused.stderr)

    def test_executables_and_built_in_tools_are_made_again(self):
        program = self.tools / "say"
        text = '#!/bin/sh\n[ "$1" = --schema ] && echo \'{"effects": "pure", "parameters": {"type": "object"}}\' && exit\necho \'"one"\'\n'
        program.write_text(text)
        program.chmod(0o755)
        said, built_in = self.call("say"), self.call("glob", "pattern=tools/g*", "path=.")
        program.write_text(text.replace("one", "two"))
        status, told = self.replay(said, "--yes")
        self.assertEqual((status, told["source"], told["now"]["result"]), (0, "kept", "one"), told)
        status, told = self.replay(built_in)
        self.assertEqual((status, told["source"]), (0, "present"), told)

    def test_a_call_becomes_a_test(self):
        good, bad = self.call("greet.hello", "name=%ARGUMENTS% \"'\\ \u00fc\u2028"), self.call("greet.hello", "name=nobody")

        def passes(call):
            """Whether the test file passes, as pytest would run it."""
            spec = importlib.util.spec_from_file_location("written", self.folder / f"test_greet_hello_{call[:10]}.py")
            written = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(written)
            path = f"{os.path.dirname(HOSTLER)}:{self.env['PATH']}"
            with mock.patch.dict(os.environ, {**self.env, "PATH": path}, clear=True):
                try:
                    written.test_greet_hello()
                except AssertionError:
                    return False
            return True

        for call in (good, bad):
            written = self.hostler("replay", call, "--as-test")
            self.assertEqual(written.stdout.strip(), str(self.folder / f"test_greet_hello_{call[:10]}.py"), written.stderr)
            self.assertEqual(self.hostler("replay", call, "--as-test").returncode, 2, "it stays")
        self.assertEqual([passes(good), passes(bad)], [True, False])
        write_tool(self.tools, "greet", GREET.format(effects="pure").replace("raise", "return {'text': 'mended'}; raise"), header="")
        self.assertEqual([passes(good), passes(bad)], [True, True])
        write_tool(self.tools, "words", 'GREETING = "good day"\n', header="")
        self.assertEqual([passes(good), passes(bad)], [False, True])


if __name__ == "__main__":
    unittest.main()
