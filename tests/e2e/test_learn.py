"""`hostler sandbox learn`: what a tool does is recorded, and the sandbox that is proposed is the smallest with which it works."""

import http.server
import json
import os
import subprocess
import sys
import threading
import unittest

from harness import HEADER, PATIENCE, Calling, config_file, environment, run, scratch, write_tool
from unprivileged import Account

TOOL = '''
import os, pathlib, socket, subprocess, tempfile, threading, urllib.request

def nothing() -> int:
    import email.parser, json, sqlite3
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a").write_text("a")
        os.rename(pathlib.Path(folder, "a"), pathlib.Path(folder, "b"))
    open("/dev/null", "w").close()
    os.path.exists("/nowhere/at/all")
    return len(os.listdir(os.path.dirname(__file__)))

def work(reads: str, lists: str, writes: str, runs: str) -> list:
    with open(writes, "w") as file:
        file.write(open(reads).read())
    return [sorted(os.listdir(lists)), subprocess.run(["cat", runs], capture_output=True, text=True, check=True).stdout]

def threads(paths: list[str]) -> list:
    found = {}
    def read(path):
        found[path] = open(path).read()
    each = [threading.Thread(target=read, args=(path,)) for path in paths for _ in range(5)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    return [found[path] for path in paths]

def beneath(folder: str, name: str) -> str:
    descriptor = os.open(folder, os.O_PATH)
    return os.fdopen(os.open(name, os.O_RDONLY, dir_fd=descriptor)).read()

def beneath_by_openat2(folder: str, name: str) -> str:
    import ctypes
    descriptor = os.open(folder, os.O_PATH)
    how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 0)
    found = ctypes.CDLL(None, use_errno=True).syscall(437, descriptor, name.encode(), how, 24)
    if found < 0:
        raise PermissionError(ctypes.get_errno(), "openat2", name)
    return os.fdopen(found).read()

def keep(folder: str, text: str) -> str:
    """Writes a file as careful programs do."""
    os.makedirs(folder, exist_ok=True)
    draft = os.path.join(folder, "draft")
    pathlib.Path(draft).write_text(text)
    os.chmod(draft, 0o600)
    os.replace(draft, os.path.join(folder, "kept"))
    return pathlib.Path(folder, "kept").read_text()

def fail(path: str) -> str:
    raise ValueError(open(path).read())

def get(url: str) -> str:
    return urllib.request.urlopen(url, timeout=10).read().decode()

def straight(port: int) -> None:
    socket.create_connection(("127.0.0.1", port), 10).close()

def serves() -> str:
    server = socket.create_server(("127.0.0.1", 0))
    return type(server.getsockname()[1]).__name__
'''
PROGRAM = '''#!/usr/bin/env python3
import json, sys
if "--schema" in sys.argv:
    print(json.dumps({"parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}))
    sys.exit()
print(json.dumps(open(json.load(sys.stdin)["path"]).read()))
'''


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *_):
        pass


class Learning(Calling):
    def setUp(self):
        if sys.platform != "linux":
            raise unittest.SkipTest("only Linux reports the system calls of a process")
        self.folder = scratch(self).resolve()
        self.tools = self.folder / "tools"
        self.home = self.folder / "home"
        self.env = environment(XDG_STATE_HOME=str(self.folder / "state"), HOME=str(self.home))
        for name in ("docs", "many", "out", "links"):
            (self.home / name).mkdir(parents=True)
        for name in ("docs/a", "docs/b", "docs/c", "docs/deep", "many/1", "many/2", "many/3"):
            (self.home / name).write_text(name)
        write_tool(self.tools, "work", TOOL)
        self.file = config_file(self.folder, '# mine\ntools = ["tools"] # here\n')
        doctor = run("doctor", "--offline", env=self.env, cwd=self.folder).stdout
        self.has_networks = "chosen hosts" in doctor.split("no walls for")[0]

    def at(self, name):
        return str(self.home / name)

    def done(self, *words):
        done = run("sandbox", "learn", "--json", *words, env=self.env, cwd=self.folder)
        if "cannot be recorded here" in done.stderr:
            raise unittest.SkipTest(done.stderr.strip())
        self.assertTrue(done.stdout, done.stderr)
        return done

    def learned(self, *words):
        done = self.done(*words)
        learned = json.loads(done.stdout)
        self.assertEqual(learned["unread"], 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        return learned

    def proves(self, proposal, *words):
        """The tool works with what was written, and with no entry less."""
        with self.subTest("with the proposal"):
            self.value(*words)
        text = self.file.read_text()
        for key in ("read", "write", "network"):
            entries = proposal.get(key, [])
            for entry in entries if isinstance(entries, list) else ():
                less = {**proposal, key: [other for other in entries if other != entry]}
                with self.subTest(f"without {entry} in {key}"):
                    config_file(self.folder, text[:text.index("[tool.work]")] + f"[tool.work]\nsandbox = {inline(less)}\n")
                    self.assertIsNotNone(self.error(*words))
        config_file(self.folder, text)

    def test_a_tool_works_with_what_is_proposed_and_not_with_less(self):
        call = ["work.work", f"reads={self.at('docs/a')}", f"lists={self.at('many')}", f"writes={self.at('out/new')}",
                f"runs={self.at('docs/b')}"]
        learned = self.learned(*call)
        self.assertEqual(learned["outcome"]["result"], [["1", "2", "3"], "docs/b"])
        self.assertEqual(learned["proposal"], {
            "preset": "pure", "read": ["$HOME/docs/a", "$HOME/docs/b", "$HOME/many"], "write": ["$HOME/out"]})
        self.assertEqual(learned["warnings"], [])
        self.assertEqual(self.file.read_text(), '# mine\ntools = ["tools"] # here\n', "nothing is written without --write")
        self.assertIn("+[tool.work]\n", learned["diff"])
        os.remove(self.at("out/new"))
        self.learned(*call, "--write")
        self.assertTrue(self.file.read_text().startswith('# mine\ntools = ["tools"] # here\n\n[tool.work]\nsandbox = {'))
        os.remove(self.at("out/new"))
        self.proves(learned["proposal"], *call)
        os.remove(self.at("out/new"))
        self.assertIsNone(self.learned(*call)["diff"], "the file says it already")

    def test_what_every_sandbox_gives_is_not_proposed(self):
        learned = self.learned("work.nothing")
        self.assertEqual((learned["proposal"], learned["reads"], learned["writes"], learned["network"]), ("pure", [], [], []))
        self.learned("work.nothing", "--write")
        self.value("work.nothing")

    def test_its_sandbox_does_not_limit_it_meanwhile(self):
        line = 'sandbox = { preset = "pure", require = true, open_files = 100, read = ["/nowhere"] } # strict'
        config_file(self.folder, f'tools = ["tools"]\n[tool.work] # mine\n{line}\n')
        call = ["work.beneath", f"folder={self.at('docs')}", "name=a"]
        self.assertIn("Permission denied", self.error(*call)["message"])
        learned = self.learned(*call, "--write")
        kept = {"preset": "pure", "read": ["$HOME/docs/a"], "open_files": 100, "require": True}
        self.assertEqual(learned["proposal"], kept)
        self.assertIn("} # strict\n", self.file.read_text())
        self.assertEqual(self.value(*call), "docs/a")

    def test_threads_are_recorded_together(self):
        paths = [self.at(name) for name in ("docs/a", "docs/b", "many/1", "many/2", "many/3")]
        call = ["work.threads", "paths:=" + json.dumps(paths)]
        learned = self.learned(*call, "--write")
        self.assertEqual(learned["reads"], sorted(paths))
        self.assertEqual(learned["proposal"]["read"], ["$HOME/docs/a", "$HOME/docs/b", "$HOME/many"])
        self.proves(learned["proposal"], *call)

    def test_paths_begin_at_an_open_folder(self):
        for tool in ("beneath", "beneath_by_openat2"):
            with self.subTest(tool):
                learned = self.learned(f"work.{tool}", f"folder={self.at('docs')}", "name=../many/1")
                self.assertEqual(learned["proposal"], {"preset": "pure", "read": ["$HOME/many/1"]})

    def test_behind_a_link_the_file_itself_is_proposed(self):
        (self.home / "links" / "one").symlink_to("../docs/a")
        (self.home / "links" / "docs").symlink_to(self.home / "docs")
        for name, real in (("links/one", "$HOME/docs/a"), ("links/docs/b", "$HOME/docs/b")):
            with self.subTest(name):
                config_file(self.folder, 'tools = ["tools"]\n')
                call = ["work.beneath", "folder=/", f"name={self.at(name)}"]
                learned = self.learned(*call, "--write")
                self.assertEqual(learned["proposal"], {"preset": "pure", "read": [real]})
                self.proves(learned["proposal"], *call)

    def test_names_in_a_folder_need_the_folder(self):
        call = ["work.keep", f"folder={self.at('out')}", "text=x"]
        learned = self.learned(*call, "--write")
        self.assertEqual(learned["proposal"], {"preset": "pure", "write": ["$HOME/out"]})
        self.proves(learned["proposal"], *call)
        fresh = self.learned("work.keep", f"folder={self.at('out/made/now')}", "text=x")
        self.assertEqual(fresh["proposal"], {"preset": "pure", "write": ["$HOME/out"]})

    def test_several_calls_add_up(self):
        for name in ("docs/a", "many/1"):
            added = self.learned("work.beneath", "folder=/", f"name={self.at(name)}", "--add", "--write")
        self.assertEqual(added["proposal"], {"preset": "pure", "read": ["$HOME/docs/a", "$HOME/many/1"]})
        self.proves(added["proposal"], "work.threads", "paths:=" + json.dumps([self.at("docs/a"), self.at("many/1")]))
        self.assertIsNone(self.learned("work.nothing", "--add")["diff"])
        self.assertEqual(self.learned("work.nothing")["proposal"], "pure")

    def test_a_failed_call_shows_what_it_needed_until_then(self):
        before = self.file.read_text()
        done = self.done("work.fail", f"path={self.at('docs/a')}", "--write")
        self.assertEqual(self.file.read_text(), before)
        learned = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(learned["outcome"]["error"]["code"], "TOOL_ERROR")
        self.assertNotIn("sandbox", learned["outcome"]["error"]["message"])
        self.assertEqual(learned["proposal"], {"preset": "pure", "read": ["$HOME/docs/a"]})
        self.assertIn("the call failed", done.stderr)

    def test_an_executable_is_recorded_too(self):
        program = self.tools / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        learned = self.learned("program", f"path={self.at('docs/a')}", "--write")
        self.assertIn(self.at("docs/a"), learned["reads"])
        self.assertEqual(learned["writes"], [])
        self.assertEqual(self.value("program", f"path={self.at('docs/a')}"), "docs/a")

    def test_hosts_are_named_and_other_ways_need_the_whole_network(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        port = server.server_address[1]
        call = ["work.get", f"url=http://127.0.0.1:{port}/"]
        learned = self.learned(*call, "--write")
        self.assertEqual(learned["outcome"]["result"], "page")
        self.assertEqual(learned["network"], [f"127.0.0.1:{port}"])
        if self.has_networks:
            self.assertEqual(learned["proposal"], {"preset": "pure", "network": [f"127.0.0.1:{port}"]})
        else:
            self.assertEqual(learned["proposal"], "network")
        self.proves({} if isinstance(learned["proposal"], str) else learned["proposal"], *call)
        named = self.learned("work.get", f"url=http://localhost:{port}/")
        self.assertEqual(named["network"], [f"localhost:{port}"])
        straight = self.learned("work.straight", f"port={port}", "--write")
        self.assertEqual((straight["proposal"], straight["network"]), ("network", [f"127.0.0.1:{port}"]))
        self.assertIn("without the proxy", straight["warnings"][0])
        self.value("work.straight", f"port={port}")

    def test_a_socket_of_its_own_needs_no_host(self):
        learned = self.learned("work.serves", "--write")
        self.assertEqual(learned["proposal"], {"preset": "pure", "network": []} if self.has_networks else "network")
        self.value("work.serves")

    def test_a_person_is_warned_and_told_the_next_step(self):
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "key").write_text("secret")
        done = run("sandbox", "learn", "work.beneath", f"folder={self.at('.ssh')}", "name=key", env=self.env, cwd=self.folder)
        if "cannot be recorded here" in done.stderr:
            raise unittest.SkipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("reads  $HOME/.ssh/key\n", done.stdout)
        self.assertIn('+sandbox = { preset = "pure", read = ["$HOME/.ssh/key"] }\n', done.stdout)
        self.assertIn("`$HOME/.ssh/key` may hold secrets", done.stderr)
        self.assertIn("--write", done.stderr)
        self.assertNotIn("secret\n", done.stdout)

    def test_without_a_project_it_is_the_persons_own_file(self):
        self.file.unlink()
        env = {**self.env, "XDG_CONFIG_HOME": str(self.folder / "config")}
        words = ["sandbox", "learn", "--tools", self.tools, "--json", "--write", "work.nothing"]
        done = run(*words, env=env, cwd=self.folder)
        if "cannot be recorded here" in done.stderr:
            raise unittest.SkipTest(done.stderr.strip())
        file = self.folder / "config" / "hostler" / "hostler.toml"
        self.assertEqual(json.loads(done.stdout)["file"], str(file), done.stderr)
        self.assertEqual(file.read_text(), '[tool.work]\nsandbox = "pure"\n')

    def test_a_user_without_privileges_learns_the_same(self):
        account = Account(self)
        account.tool("work.py", HEADER + TOOL)
        for name in ("docs", "out"):
            (account.home / name).mkdir()
            account.own(account.home / name)
        (account.home / "docs" / "a").write_text("a")
        config = account.folder / "hostler.toml"
        words = ["work.work", f"reads={account.home}/docs/a", f"lists={account.home}/docs", f"writes={account.home}/out/new",
                 f"runs={account.home}/docs/a"]
        learn = [*account.become, account.hostler, "--config", config, "--tools", account.tools, "sandbox", "learn", "--json", *words]
        config.write_text("")
        done = subprocess.run(learn, env=account.env, cwd=account.home, capture_output=True, text=True, timeout=PATIENCE * 3)
        if "cannot be recorded here" in done.stderr:
            raise unittest.SkipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        learned = json.loads(done.stdout)
        self.assertEqual(learned["unread"], 0, learned)
        self.assertEqual(learned["proposal"], {"preset": "pure", "read": ["$HOME/docs"], "write": ["$HOME/out"]})

    def test_what_cannot_be_learned_is_refused(self):
        config_file(self.folder, 'tools = ["tools"]\n[builtin]\nenable = ["files", "bash"]\nroots = ["home"]\n[tool.work]\nallowed_modes = ["lockdown"]\n')
        builtin = run("sandbox", "learn", "read_file", f"path={self.at('docs/a')}", env=self.env, cwd=self.folder)
        self.assertEqual(builtin.returncode, 2, builtin.stderr)
        self.assertIn("runs inside hostler", builtin.stderr)
        denied = self.done("work.nothing")
        self.assertEqual((denied.returncode, json.loads(denied.stdout)["proposal"]), (4, "pure"))
        unknown = run("sandbox", "learn", "work.nothign", env=self.env, cwd=self.folder)
        self.assertEqual(unknown.returncode, 3)
        shell = self.learned("bash", f"command=cat {self.at('many/1')} {self.at('docs/a')} | wc -c >{self.folder}/size")
        self.assertEqual(shell["writes"], [str(self.folder)])
        below = run("sandbox", "learn", "work.nothing", env={**self.env, "HOSTLER_RUN": "x"}, cwd=self.folder)
        self.assertEqual(below.returncode, 2)
        self.assertIn("a tool may not", below.stderr)


def inline(proposal):
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in proposal.items()) + " }"


if __name__ == "__main__":
    unittest.main()
