"""The author's commands: new, init, dev, doctor, completions, the help of one tool."""

import json
import re
import subprocess
import threading
import unittest

from harness import EXAMPLES, HOSTLER, PATIENCE, config_file, environment, run, scratch, write_tool
from test_executables import program, script


class Beginning(unittest.TestCase):
    def test_from_nothing_to_a_call(self):
        place = scratch(self)
        self.assertEqual(run("init", cwd=place).returncode, 0)
        for look in (["check"], ["doctor", "--offline"], ["list"]):
            done = run(*look, cwd=place)
            self.assertEqual((done.returncode, "does not exist" in done.stdout + done.stderr), (0, False), done.stdout)
        made = run("new", "shed", cwd=place)
        self.assertEqual((made.returncode, made.stdout), (0, "tools/shed.py\n"))
        self.assertIn("hostler call shed.greet name=you", made.stderr)
        self.assertEqual(run("check", cwd=place).returncode, 0)
        called = run("call", "shed.greet", "name=you", "times=2", cwd=place)
        self.assertEqual(called.stdout, "Good morning, you! Good morning, you!\n")

    def test_nothing_is_overwritten(self):
        place = scratch(self)
        for words in (["init"], ["new", "shed"]):
            self.assertEqual(run(*words, cwd=place).returncode, 0)
            again = run(*words, cwd=place)
            self.assertEqual(again.returncode, 2)
            self.assertIn("exists already; edit it, or remove it first", again.stderr)

    def test_an_invalid_name(self):
        place = scratch(self)
        for name, near in (("two-words", "two_words"), ("1x", "tool_1x"), ("_x", "x"), ("shed.py", "shed")):
            done = run("new", name, cwd=place)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"such as `{near}`", done.stderr)
            self.assertEqual(run("new", near, cwd=place).returncode, 0, "what is suggested can be made")


class Doctor(unittest.TestCase):
    def signs(self, *words, status=0, **changes):
        done = run("doctor", "--offline", "--json", *words, env=environment(**changes))
        self.assertEqual(done.returncode, status, done.stdout)
        return json.loads(done.stdout)

    def one(self, signs, about, *words):
        for sign in signs:
            if sign["about"] == about and all(word in sign["found"] + sign.get("fix", "") for word in words):
                return sign
        self.fail(f"nothing about {about} says {words}: {signs}")

    def test_everything_works(self):
        text = run("doctor", "--tools", EXAMPLES, "--offline", env=environment(SSL_CERT_FILE=None, SSL_CERT_DIR=None))
        self.assertEqual(text.returncode, 0, text.stdout)
        for words in ("ok     uv", "MB free", "ok     tools"):
            self.assertIn(words, text.stdout)

    def test_no_uv(self):
        empty = scratch(self)
        sign = self.one(self.signs(PATH=empty, HOME=empty, XDG_CACHE_HOME=empty, status=1), "uv", "no Python on PATH")
        self.assertEqual(sign["state"], "bad")

    def test_an_old_uv_and_one_that_does_not_run(self):
        place = scratch(self)
        for text, words in (("#!/bin/sh\necho uv 0.4.1\n", "0.4.1 is too old"), ("#!/bin/sh\nexit 3\n", "does not run")):
            uv = place / "uv"
            uv.write_text(text)
            uv.chmod(0o755)
            config = config_file(place, f'[environment]\nuv = "{uv}"\n')
            self.one(self.signs("--config", config, status=1), "uv", words)

    def test_missing_certificates(self):
        self.one(self.signs(SSL_CERT_FILE="/nowhere/ca.pem", status=1), "certificates", "/nowhere/ca.pem", "does not exist", "correct SSL_CERT_FILE")

    def test_a_file_without_certificates(self):
        empty = scratch(self) / "ca.pem"
        empty.write_text("")
        signs = self.signs(SSL_CERT_FILE=empty, status=1)
        self.one(signs, "certificates", f"SSL_CERT_FILE names {empty}, which contains no certificate", "correct SSL_CERT_FILE")
        self.assertNotIn("add `SSL_CERT_FILE", json.dumps(signs), "what is wrong is not to be kept")

    def test_an_unwritable_cache_of_uv(self):
        file = scratch(self) / "file"
        file.write_text("")
        signs = self.signs(UV_CACHE_DIR=file / "cache", status=1)
        self.one(signs, "uv", f"uv's cache {file}/cache (UV_CACHE_DIR in hostler's environment) is not writable", "correct UV_CACHE_DIR")
        self.assertNotIn("install uv", json.dumps(signs))

    def test_a_configured_python_and_uv_that_do_not_exist(self):
        for line, about, words in [
            ('python = "/nowhere/python"', "python", 'python = "/nowhere/python" ('),
            ('python = "3.31"', "python", 'python = "3.31" ('),
            ('uv = "/bin/false"', "uv", "correct `environment.uv` at"),
        ]:
            config = config_file(scratch(self), f"[environment]\n{line}\n")
            sign = self.one(self.signs("--config", config, status=1), about, words, f"{config}:2")
            self.assertEqual(sign["state"], "bad")
            self.assertEqual("let uv download one" in sign["fix"], "3.31" in line, "uv downloads versions, not paths")

    def test_built_in_tools_and_what_they_reach(self):
        place = scratch(self)
        (place / "tools").mkdir()
        self.one(self.signs("--tools", place / "tools"), "tools", "no tools in")
        program(place / "fresh", "say", schema={"secrets": ["E2E_SECRET"]})
        signs = self.signs("--tools", place / "fresh", E2E_SECRET=None)
        self.one(signs, "tools", "1 tool in 1 file of")
        self.one(signs, "secret", "E2E_SECRET is not set (say)")
        done = run("warm", "--tools", place / "fresh")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("nothing to build", done.stderr)
        config = config_file(place, '[builtin]\nenable = ["glob", "web_search"]\nroots = [".", "gone"]\n')
        signs = self.signs("--config", config, "--tools", place / "tools", status=1)
        self.one(signs, "tools", f"no tools in {place}/tools")
        self.one(signs, "built-in", f"glob, web_search; roots {place}, {place}/gone")
        self.assertEqual(self.one(signs, "built-in", f"{place}/gone does not exist", "correct the path")["state"], "bad")

    def test_an_unwritable_cache(self):
        self.one(self.signs(XDG_CACHE_HOME="/proc/1", status=1), "cache", "is not writable", "XDG_CACHE_HOME")

    def test_variables_that_clients_remove(self):
        signs = self.signs(HTTPS_PROXY="http://me:pa55@proxy:3128")
        sign = self.one(signs, "client", "HTTPS_PROXY", "[environment.env]")
        self.assertNotIn("pa55", json.dumps(sign))
        config = config_file(scratch(self), '[environment.env]\nHTTPS_PROXY = "http://proxy:3128"\n')
        names = [sign["found"] for sign in self.signs("--config", config, HTTPS_PROXY="http://proxy:3128")]
        self.assertFalse([found for found in names if "HTTPS_PROXY" in found])

    def test_interpreters_secrets_and_broken_files(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "future", "def well() -> int:\n    return 1\n", '# /// script\n# requires-python = ">=3.37"\n# ///\n')
        write_tool(tools, "locked", "def well() -> int:\n    return 1\n",
                   '# /// script\n# dependencies = []\n# [tool.hostler]\n# secrets = ["E2E_SECRET"]\n# ///\n')
        write_tool(tools, "broken", "def well(:\n")
        signs = self.signs("--tools", tools, status=1, E2E_SECRET=None)
        self.one(signs, "python", "future requires >=3.37")
        self.one(signs, "secret", "E2E_SECRET is not set (locked)", "[secrets]")
        self.one(signs, "tools", "broken", "`hostler check`")
        key = tools.parent / "key"
        config = config_file(tools.parent, '[secrets]\nE2E_SECRET = { file = "key" }\n')
        for text, mode, found, fix in [
            (None, 0, "E2E_SECRET is not set (locked)", f"reads it from {key}, which does not exist: write only the value into it, and run `chmod 600 {key}`"),
            ("", 0o600, "E2E_SECRET is not set (locked)", f"reads it from {key}, which is empty: write only the value into it, and run `chmod 600 {key}`"),
            ("k-1", 0o644, f"{key} is readable by other users", f"run `chmod 600 {key}`"),
            ("E2E_SECRET=k-1", 0o600, "begins with `E2E_SECRET=`", "remove `E2E_SECRET=`"),
        ]:
            if text is not None:
                key.write_text(text)
                key.chmod(mode)
            sign = self.one(self.signs("--tools", tools, "--config", config, status=1), "secret", found, fix)
            self.assertEqual(sign["state"], "bad", "a tool cannot run without it")
            told = run("check", "--config", config, "--json").stdout
            self.assertIn("secret-file", told)
            self.assertIn(fix.split(": ")[-1], told)
        self.one(self.signs("--tools", tools, status=1, E2E_SECRET="x"), "secret", "MCP clients start servers without it")

    def test_a_python_that_does_not_run_is_not_counted(self):
        place = scratch(self)
        stub = place / "python3.39"
        stub.write_text("#!/bin/sh\necho 'no version is chosen' >&2\nexit 127\n")
        stub.chmod(0o755)
        path = f"{environment()['PATH']}:{place}"
        sign = self.one(self.signs(PATH=path), "python", "(do not run: ")
        self.assertRegex(sign["found"], r"^found 3\.\d+.* \(do not run: .*3\.39\)$")
        running, silent = (set(re.findall(r"3\.\d+", part)) for part in sign["found"].split("(do not run"))
        self.assertFalse(running & silent, "what runs is not among what does not")
        write_tool(place / "tools", "future", "def well() -> int:\n    return 1\n", '# /// script\n# requires-python = ">=3.39"\n# ///\n')
        self.one(self.signs("--tools", place / "tools", PATH=path), "python", "future requires >=3.39; found ", "do not run")

    def test_an_index_that_does_not_answer(self):
        done = run("doctor", "--json", env=environment(UV_DEFAULT_INDEX="http://127.0.0.1:9/simple"))
        self.assertEqual(done.returncode, 1)
        signs = json.loads(done.stdout)
        self.one(signs, "index", "http://127.0.0.1:9/simple (hostler's environment)", "check UV_DEFAULT_INDEX")
        self.assertNotIn("add `UV_DEFAULT_INDEX", json.dumps(signs), "what is wrong is not to be kept")

    def test_an_offline_setting_is_not_recommended(self):
        done = run("doctor", "--json", env=environment(UV_OFFLINE="1"))
        signs = json.loads(done.stdout)
        self.one(signs, "index", "unset UV_OFFLINE")
        self.assertNotIn("add `UV_OFFLINE", done.stdout)


class Help(unittest.TestCase):
    def test_a_tools_own_arguments(self):
        done = run("call", "--help", "images.thumbnail", "--tools", EXAMPLES)
        self.assertEqual(done.returncode, 0)
        for words in ("Usage: hostler call images.thumbnail path=TEXT [size=NUMBER]", '"png"|"jpeg"|"webp"', "The longer side", "For example"):
            self.assertIn(words, done.stdout)
        self.assertIn("Usage: hostler call [OPTIONS]", run("call", "--help").stdout)
        self.assertEqual(run("call", "--help", "no.such", "--tools", EXAMPLES).returncode, 3)
        self.assertEqual(run("call").returncode, 2)


class Completions(unittest.TestCase):
    def candidates(self, *line):
        done = run("--", "hostler", *line, env=environment(COMPLETE="fish"))
        return [candidate.split("\t")[0] for candidate in done.stdout.splitlines()]

    def test_tools_and_their_arguments(self):
        tools = ("--tools", EXAMPLES)
        self.assertIn("images.thumbnail", self.candidates("call", *tools, "images."))
        self.assertEqual(self.candidates("call", *tools, "images.thumbnail", "s"), ["size="])
        self.assertEqual(self.candidates("call", *tools, "images.thumbnail", "format="), ["format=png", "format=jpeg", "format=webp"])
        self.assertIn("units", self.candidates("warm", *tools, "un"))
        self.assertIn("doctor", self.candidates("do"))

    def test_scripts_for_shells(self):
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("COMPLETE", run("completions", shell).stdout)
        done = run("completions", "csh")
        self.assertEqual(done.returncode, 2)
        self.assertIn("bash", done.stderr)


class Dev(unittest.TestCase):
    def loop(self, path):
        """`hostler dev` for a file: the process, and a function that waits for output."""
        dev = subprocess.Popen([HOSTLER, "dev", str(path)], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.addCleanup(lambda: (dev.kill(), dev.wait(), dev.stdin.close(), dev.stdout.close()))
        watchdog = threading.Timer(PATIENCE, dev.kill)
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        seen = []

        def until(words):
            for line in dev.stdout:
                seen.append(line)
                if words in line:
                    return
            self.fail(f"{words} never came: {''.join(seen)}")

        return dev, until

    def test_the_loop_of_an_executable(self):
        tools = scratch(self) / "tools"
        path = program(tools, "say")
        dev, until = self.loop(path)
        until("say  Says it back.")
        until("text  string  required")
        dev.stdin.write("say text=5\n")
        until('"said": "5"')
        script(tools, "say", "#!/bin/sh\necho hello\n")
        until("begins with `hello` and is not JSON")

    def test_the_authors_loop(self):
        tools = scratch(self) / "tools"
        path = write_tool(tools, "shed", "def well(number: int = 1, seen: list = []) -> int:\n    print('working')\n    return number\n")
        dev, until = self.loop(path)
        until("shed.well")
        until("shared-default")
        until("= help:")
        dev.stdin.write("well number=4\n")
        until("working")
        until("4")
        until("after a start of")
        dev.stdin.write("well number=x\n")
        until("INVALID_PARAMS")
        write_tool(tools, "shed", 'def better(number: int) -> int:\n    """Do it better."""\n    return number * 2\n')
        until("changed")
        until("shed.better  Do it better.")
        dev.stdin.write("better number=4\n")
        until("8")
        write_tool(tools, "shed", "def better(:\n")
        until("calls go to the last good version")
        dev.stdin.write("better number=5\n")
        until("10")
        until("as its last good version: line 5: ")
        dev.stdin.close()
        self.assertEqual(dev.wait(timeout=10), 0)

    def test_a_missing_file(self):
        done = run("dev", "nowhere.py")
        self.assertEqual(done.returncode, 2)
        self.assertIn("hostler new", done.stderr)


if __name__ == "__main__":
    unittest.main()
