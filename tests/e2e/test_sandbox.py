"""Sandboxes: what walled tools of every kind cannot do, what they still can, and who decides about it."""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path

from harness import HEADER, Calling, config_file, environment, eventually, run, scratch, write_tool
from unprivileged import Account

HERE = Path(__file__).resolve().parent
ESCAPES = "import escapes\n\ndef run(ways: dict) -> dict:\n    return escapes.escaped(ways)\n"
PROGRAM = '''#!/usr/bin/env python3
import json, sys
if "--schema" in sys.argv:
    print(json.dumps({"parameters": {"type": "object", "properties": {"ways": {"type": "object"}}}}))
    sys.exit()
import escapes
print(json.dumps(escapes.escaped(json.load(sys.stdin)["ways"])))
'''
BOMB = """
import os, time
def fork() -> list:
    started = 0
    while started < 200:
        try:
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
        except OSError as error:
            return [started, error.errno]
        started += 1
    return [started, 0]
"""
USEFUL = '''
import asyncio, concurrent.futures, json, os, pathlib, shutil, socket, sqlite3, ssl, subprocess, sys, tempfile, threading, zoneinfo

def work(path: str) -> list:
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "a").write_text("a")
    (folder / "a").rename(folder / "b")
    shutil.copy2(folder / "b", folder / "c")
    (folder / "c").unlink()
    database = sqlite3.connect(folder / "database")
    database.execute("create table t (x)")
    database.commit()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(len, ["a", "bb"])) == [1, 2]
    asyncio.run(asyncio.sleep(0))
    one, other = socket.socketpair()
    one.send(b"x")
    ssl.create_default_context()
    zone = zoneinfo.ZoneInfo("Europe/Berlin").key
    done = subprocess.run(["sh", "-c", "cat " + str(folder / "b")], capture_output=True, text=True)
    return [done.stdout, zone, sorted(os.listdir(folder)), open(path).read()]

def temporary() -> str:
    return os.environ["TMPDIR"]

def holds(seconds: float = 0) -> int:
    return os.getpid()
'''
CLONES = {"user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "mount": 0x00020000}


# Ways to other processes, which a tool in a namespace of pids does not see.
UNSEEN = {"environment of another", "folder of another", "memory of another", "memory of another by a call", "tracing another",
          "signal", "signal by a handle", "signal to hostler", "processor of another", "scheduling of another", "limits of another"}


class Sandboxes(Calling):
    @classmethod
    def setUpClass(cls):
        if sys.platform != "linux":
            raise unittest.SkipTest("only Linux has these walls")
        # By the kernel's own word. 444 is `landlock_create_ruleset` on every machine, and 1 asks for the version.
        version = ctypes.CDLL(None).syscall(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1))
        if version < 6:
            raise unittest.SkipTest(f"this kernel has Landlock {max(version, 0)}; all of these walls need 6 (Linux 6.12)")

    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        self.env = environment(XDG_STATE_HOME=str(self.folder / "state"), HOME=str(self.folder / "home"))
        self.secret = self.folder / "home" / "secret"
        self.secret.parent.mkdir()
        self.secret.write_text("canary")
        (self.folder / "state").mkdir()

    def configure(self, text):
        config_file(self.folder, 'tools = ["tools"]\n' + text)

    def escapes(self):
        """Each way with whether it leads out where there are no walls; None where that depends on the machine."""
        stranger = subprocess.Popen(["sleep", "600"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        listening, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        hearing = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(hearing.close)
        datagrams, beside = str(self.folder / "d"), str(self.tools / "escapes.py")
        hearing.bind(datagrams)
        with contextlib.suppress(OSError):
            os.setxattr(self.secret, "user.text", b"text")
        path, name = str(self.folder / "s"), f"hostler-{os.getpid()}"
        for one, address in ((listening, path), (abstract, "\0" + name)):
            self.addCleanup(one.close)
            one.bind(address)
            one.listen()
        secret, tools, pid = str(self.secret), self.tools, stranger.pid
        ways = {
            "file": (True, "text_of", secret),
            "file by ..": (True, "text_of", f"{tools}/../home/secret"),
            "file by root": (True, "text_of", "/proc/self/root" + secret),
            "file by a link": (True, "linked", secret),
            "file by a hard link": (None, "hard_linked", secret),
            "file by a program in memory": (True, "by_memory_file", secret),
            "file by a handle": (None, "handled"),
            "folder": (True, "listed", str(self.secret.parent)),
            "passwords": (None, "text_of", "/etc/shadow"),
            "hostler's settings": (True, "text_of", str(self.folder / "hostler.toml")),
            "hostler's state": (True, "listed", str(self.folder / "state")),
            "environment of another": (None, "text_of", f"/proc/{pid}/environ"),
            "folder of another": (None, "listed", f"/proc/{pid}/cwd/"),
            "memory of another": (None, "text_of", f"/proc/{pid}/mem"),
            "memory of another by a call": (None, "memory_of", pid),
            "tracing another": (None, "system_call", "ptrace", 16, pid, 0, 0),
            "limits of another": (True, "limited", pid),
            "signal": (True, "signalled", pid),
            "signal by a handle": (True, "signalled_by_handle", pid),
            "signal to hostler": (True, "signalled_above"),
            "writing a tool": (True, "write_to", str(tools / "escapes.py")),
            "writing settings": (True, "write_to", str(self.folder / "hostler.toml")),
            "writing to /tmp": (True, "write_to", f"/tmp/hostler-escape-{os.getpid()}"),
            "shared memory": (True, "shared_memory"),
            "shared memory by number": (None, "system_call", "shmget", 4711, 4096, 0o1600),
            "keys": (None, "system_call", "keyctl", 0, -3, 1),
            "attributes": (True, "permitted", secret),
            "attributes by a handle": (True, "permitted_by_handle", beside),
            "flags of a file": (None, "flagged", beside),
            "text attributes": (None, "extended", secret),
            "watching a folder": (True, "watched", str(self.secret.parent)),
            "datagrams": (True, "datagram", datagrams),
            "priority of another": (True, "priority", pid),
            "processor of another": (True, "affinity", pid),
            "scheduling of another": (True, "scheduling", pid),
            "time of a file": (True, "touched", secret),
            "TCP": (True, "connected", socket.SOCK_STREAM),
            "UDP": (True, "connected", socket.SOCK_DGRAM),
            "TCP 6": (None, "connected", socket.SOCK_STREAM, socket.AF_INET6, ["::1", 9]),
            "IPv4 within IPv6": (None, "connected", socket.SOCK_STREAM, socket.AF_INET6, ["::ffff:127.0.0.1", 9]),
            "raw packets": (None, "raw", socket.AF_INET, socket.SOCK_RAW, 1),
            "packets": (None, "raw", socket.AF_PACKET, socket.SOCK_RAW),
            "virtual machines": (None, "raw", 40, socket.SOCK_STREAM),
            "kernel": (True, "raw", socket.AF_NETLINK, socket.SOCK_RAW, 0),
            "Unix socket": (True, "unix", path),
            "abstract socket": (True, "unix", name, True),
            "socket by its second number": (None, "second_number", "socket"),
            "rings": (None, "system_call", "io_uring_setup", 1, 0),
            "mounts": (None, "system_call", "mount", 0, 0, 0, 0, 0),
            "program in the kernel": (None, "system_call", "bpf", 0, 0, 0),
            "counters": (None, "system_call", "perf_event_open", 0, 0, -1, -1, 0),
            "page faults": (None, "system_call", "userfaultfd", 0),
            "many files": (True, "many_files"),
            "large file": (True, "large_file"),
        }
        for kind, flag in CLONES.items():
            ways[f"{kind} namespace"] = (None, "namespace", flag)
            ways[f"{kind} namespace by clone"] = (None, "cloned", flag)
        return ways

    def put(self, *kinds):
        write_tool(self.tools, "escapes", (HERE / "escapes.py").read_text(), header="")
        for kind in kinds:
            if kind == "program":
                program = self.tools / "program"
                program.write_text(PROGRAM)
                program.chmod(0o755)
            else:
                write_tool(self.tools, kind, ESCAPES)

    def test_no_way_leads_out(self):
        self.put("walled", "free", "program")
        tight = '{ preset = "pure", open_files = 100, file_size = "1MB", require = true }'
        self.configure(f"[tool.walled]\nsandbox = {tight}\n[tool.program]\nsandbox = {tight}\n")
        ways = self.escapes()
        given = "ways:=" + json.dumps({name: [function, arguments] for name, (_, function, *arguments) in ways.items()})
        found = {kind: self.value(tool, given) for kind, tool in
                 (("worker", "walled.run"), ("program", "program"), ("free", "free.run"))}
        tried = 0
        for name, (leads_out, *_) in ways.items():
            for kind in ("worker", "program"):
                with self.subTest(name, kind=kind):
                    # Not just any error: EPERM, EACCES, EXDEV, EMFILE, EFBIG, ENOSYS, EOPNOTSUPP; of a process that is not seen,
                    # ENOENT and ESRCH.
                    unseen = "2|3|" if name in UNSEEN else ""
                    self.assertRegex(found[kind][name] or "it leads out",
                                     rf"Error\(({unseen}1|13|18|24|27|38|95), |no effect|no namespace|CalledProcessError")
                    tried += 1
            if leads_out:
                with self.subTest(name, kind="free"):
                    self.assertIsNone(found["free"][name], "a way that never leads out proves nothing")
        self.assertGreaterEqual(tried, 2 * 62)
        Path(f"/tmp/hostler-escape-{os.getpid()}").unlink(missing_ok=True)
        sys.stderr.write(f"{tried} ways out of a sandbox were tried\n")

    def test_a_fork_bomb_ends_at_the_number_of_processes(self):
        account = Account(self)
        account.tool("bomb.py", HEADER + BOMB)
        config = account.folder / "hostler.toml"
        config.write_text("[tool.bomb]\nsandbox = { processes = 20, require = true }\n")
        # Others of the same user do not count.
        others = [subprocess.Popen([*account.become, "sleep", "60"]) for _ in range(30)]
        self.addCleanup(lambda: [(other.kill(), other.wait()) for other in others])
        words = [*account.become, account.hostler, "--config", config, "--tools", account.tools, "call", "--standalone", "--json", "bomb.fork"]
        done = subprocess.run(words, env=account.env, cwd=account.home, capture_output=True, text=True, timeout=120)
        if "number of processes (needs" in done.stdout + done.stderr:
            raise unittest.SkipTest("processes are not counted here")
        said = json.loads(done.stdout)
        self.assertEqual(said["result"][1], 11, said)
        self.assertTrue(10 <= said["result"][0] < 20, said)

    def test_ordinary_work_goes_on(self):
        write_tool(self.tools, "useful", USEFUL)
        self.configure('[sandbox]\npreset = "pure"\nrequire = true\n')
        (self.tools / "data").write_text("beside")
        done = self.value("useful.work", f"path={self.tools}/data")
        self.assertEqual(done, ["a", "Europe/Berlin", ["b", "database"], "beside"])
        folder = Path(self.value("useful.temporary"))
        eventually(lambda: not folder.exists(), "it is removed")

    def test_an_error_says_which_wall_and_what_would_open_it(self):
        self.put()
        write_tool(self.tools, "a", "import socket\n\ndef read(path: str) -> str:\n    return open(path).read()\n\n"
                   "def write(path: str) -> None:\n    open(path, 'w')\n\n"
                   "def connect(host: str) -> None:\n    socket.create_connection((host, 9), 1)\n\n"
                   "def trace() -> None:\n    import os\n    os.setpriority(os.PRIO_PROCESS, 1, 19)\n")
        self.configure('[tool.a]\nsandbox = "pure"\n')
        home = self.secret.parent.resolve()
        for words, wall, line in (
            (["a.read", f"path={self.secret}"], "files", f'sandbox = {{ preset = "pure", read = ["{home}/secret"] }}'),
            (["a.write", f"path={home}/new"], "files", f'sandbox = {{ preset = "pure", write = ["{home}"] }}'),
            (["a.connect", "host=127.0.0.1"], "network", 'sandbox = { preset = "pure", network = "on" }'),
            (["a.connect", "host=example.org"], "network", 'sandbox = { preset = "pure", network = "on" }'),
        ):
            self.configure('[tool.a]\nsandbox = "pure"\n')
            error = self.error(*words)
            self.assertEqual((error["code"], error["details"]["blocked"]), ("TOOL_ERROR", wall), error)
            self.assertIn(f"`{line}` under [tool.a]", error["message"])
            self.configure(f"[tool.a]\n{line}\n")
            after = self.outcome(*words)["error"]
            self.assertTrue(after is None or "sandbox" not in after["message"], after)
        self.configure('[tool.a]\nsandbox = "pure"\n')
        self.assertEqual(self.error("a.trace")["details"]["blocked"], "system_calls")
        absent = self.error("a.read", f"path={self.tools}/absent")
        self.assertNotIn("blocked", absent["details"])

    def test_tables_stack_and_a_header_only_narrows(self):
        header = '# /// script\n# dependencies = []\n# [tool.hostler]\n# category = "quiet"\n# sandbox = "{}"\n# ///\n'
        body = "import socket\n\ndef read(path: str) -> str:\n    return open(path).read()\n\n" \
            "def connect() -> None:\n    socket.socket().close()\n"
        write_tool(self.tools, "strict", body, header=header.format("pure"))
        write_tool(self.tools, "loose", body, header=header.format("full"))

        def reaches(tool):
            read, connect = self.error(f"{tool}.read", f"path={self.secret}"), self.error(f"{tool}.connect")
            return (read is None, connect is None)

        for settings, strict, loose in (
            ("", (False, False), (True, True)),
            ("[sandbox]\npreset = 'reader'\n", (False, False), (True, False)),
            ("[sandbox]\npreset = 'pure'\n[category.quiet]\nsandbox = 'full'\n", (False, False), (False, False)),
            ("[category.quiet]\nsandbox = 'network'\n[tool]\nsandbox = 'full'\n", (False, False), (False, True)),
            ("[sandbox]\npreset = 'pure'\n[category.free]\nsandbox = 'full'\n[tool.'loose.connect']\ncategory = 'free'\n",
             (False, False), (False, False)),
            ("[sandbox]\npreset = 'pure'\n[tool.strict]\nsandbox = 'full'\n[tool.loose]\nsandbox = {network = 'on'}\n",
             (True, True), (False, True)),
            ("[tool.strict.sandbox]\nnetwork = 'on'\n", (False, False), (True, True)),
            ("[policy]\nrequires_sandbox = true\n", (False, False), (True, False)),
            ("[policy]\nrequires_sandbox = true\n[tool.loose]\nsandbox = {network = 'off'}\n", (False, False), (True, False)),
            ("[tool.loose]\ncategory = 'quiet'\n[category.quiet]\nsandbox = 'network'\n[sandbox]\npreset = 'pure'\n", (False, False),
             (False, True)),
            ("[category.quiet]\nrequires_sandbox = true\n[tool.loose]\nsandbox = 'network'\n", (False, False), (False, True)),
        ):
            with self.subTest(settings):
                self.configure(settings)
                self.assertEqual((reaches("strict"), reaches("loose")), (strict, loose))

    def test_settings_without_a_meaning_are_refused(self):
        write_tool(self.tools, "a", "def f() -> int:\n    return 1\n")
        for settings, words in (
            ("[tool.a]\nsandbox = 'strict'\n", "expected one of"),
            ("[tool.a]\nsandbox = true\n", "preset or a table"),
            ("[tool.a.sandbox]\nreads = ['/tmp']\n", "did you mean `read`"),
            ("[tool.a.sandbox]\nread = ['/tmp/*']\n", "is not a folder"),
            ("[tool.a.sandbox]\nread = '/tmp'\n", "`read`: expected a list"),
            ("[tool.a.sandbox]\nread = ['$HOMES/x']\n", "is not a folder"),
            ("[tool.a.sandbox]\nread = ['~root/x']\n", "is not a folder"),
            ("[tool.a.sandbox]\nfile_size = 0\n", "above zero"),
            ("[tool.'a.f']\nsandbox = 'pure'\n", "not valid here"),
        ):
            self.configure(settings)
            done = run("call", "a.f", env=self.env, cwd=self.folder)
            self.assertEqual(done.returncode, 2, (settings, done.stderr))
            self.assertIn(words, done.stderr, settings)

    def test_built_in_tools(self):
        self.configure('[builtin]\nenable = ["bash", "read_file"]\nroots = ["tools"]\n'
                       '[tool.bash]\nsandbox = "pure"\n[tool.read_file]\nrequires_sandbox = true\n')
        self.tools.mkdir(exist_ok=True)
        (self.tools / "file").write_text("beside")
        ran = self.value("bash", f"command=cat file; cat {self.secret}; echo x > file")
        self.assertEqual(ran["stdout"], "beside", ran)
        self.assertEqual(ran["stderr"].count("Permission denied"), 2, ran)
        self.assertEqual(self.value("read_file", "path=file")["content"], "beside", "in a process with walls of its own")

    def test_an_executable_is_walled_while_it_is_asked_for_its_schema(self):
        program = self.tools / "spy"
        self.tools.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ncat {self.secret} > $TMPDIR/x || echo no >&2\n"
                           f"[ -s $TMPDIR/x ] && exit 1\necho '{{\"parameters\": {{\"type\": \"object\"}}}}'\n")
        program.chmod(0o755)
        self.configure('[sandbox]\npreset = "pure"\n')
        listed = json.loads(run("list", "--json", env=self.env, cwd=self.folder).stdout)
        self.assertEqual([tool["status"] for tool in listed], ["ready"], listed)

    def test_no_package_runs_outside_while_its_environment_is_built(self):
        wheel, mark = self.folder / "startup-1.0-py3-none-any.whl", self.folder / "mark"
        about = "startup-1.0.dist-info"
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr("startup.pth", f"import sys; exec(\"try: open({str(mark)!r}, 'w')\\nexcept OSError: pass\")\n")
            file.writestr(f"once_{os.getpid()}.py", "VALUE = 1\n")
            file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: startup\nVersion: 1.0\n")
            file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{about}/RECORD", "")
        header = f'# /// script\n# dependencies = ["startup @ file://{wheel}"]\n# ///\n'
        write_tool(self.tools, "a", "def f() -> int:\n    return 1\n", header=header)
        self.configure('[tool.a]\nsandbox = "pure"\n')
        self.assertEqual(self.value("a.f"), 1)
        self.assertFalse(mark.exists())
        cache = Path(self.env.get("XDG_CACHE_HOME", self.folder / "home" / ".cache"))
        # Not with rglob, which fails when another test's build leaves the shared cache meanwhile.
        names = [name for _, _, names in os.walk(cache) for name in names if name.startswith(f"once_{os.getpid()}.")]
        self.assertTrue([name for name in names if name.endswith(".pyc")], "its modules are compiled all the same")
        self.configure("")
        self.assertEqual(self.value("a.f"), 1)
        self.assertTrue(mark.exists(), "without a sandbox it runs")

    def test_what_is_hidden_is_not_seen(self):
        self.needs("hidden files")
        write_tool(self.tools, "a", "import os, pathlib\n\ndef read(path: str) -> str:\n    return pathlib.Path(path).read_text()\n\n"
                   "def names(path: str) -> list[str]:\n    return sorted(os.listdir(path))\n\n"
                   "def change(path: str) -> None:\n    os.chmod(path, 0o777)\n")
        home = self.secret.parent.resolve()
        (home / "keys").mkdir()
        (home / "keys" / "id").write_text("canary")
        for sandbox in ('{ preset = "reader", hide = ["$HOME/keys", "$HOME/secret"] }', '{ hide = ["$HOME/keys", "$HOME/secret"] }',
                        '{ preset = "pure", read = ["$HOME"], hide = ["$HOME/keys", "$HOME/secret"] }'):
            with self.subTest(sandbox):
                self.configure(f"[tool.a]\nsandbox = {sandbox}\n")
                self.assertEqual(self.value("a.names", f"path={home}"), ["keys", "secret"])
                self.assertEqual(self.value("a.names", f"path={home}/keys"), [])
                self.assertEqual(self.value("a.read", f"path={home}/secret"), "")
                error = self.error("a.read", f"path={home}/keys/id")
                self.assertEqual(error["details"]["blocked"], "files", error)
                self.assertIn(f"hides {home}/keys", error["message"])
                self.assertNotIn("canary", json.dumps(error))
        self.configure('[sandbox]\nhide = ["$HOME/keys"]\n[tool.a]\nsandbox = "reader"\n')
        self.assertEqual(self.value("a.names", f"path={home}/keys"), [], "no preset shows it")
        self.configure('[sandbox]\nhide = ["$HOME/keys"]\n[tool.a]\nsandbox = { hide = [] }\n')
        self.assertEqual(self.value("a.names", f"path={home}/keys"), ["id"])
        self.configure(f'[tool.a]\nsandbox = {{ write = ["{self.folder}/state"] }}\n')
        error = self.error("a.change", f"path={home}/secret")
        self.assertEqual(error["details"]["blocked"], "files", error)
        self.assertIn(f'write = ["{self.folder.resolve()}/state", "{home}/secret"]', error["message"])
        self.assertIsNone(self.error("a.change", f"path={self.folder}/state"))
        self.configure(f'[tool.a]\nsandbox = {{ hide = ["{self.tools}"] }}\n')
        self.assertIn("which it needs to run", self.error("a.names", "path=/")["message"])

    def needs(self, layer):
        found = run("doctor", "--offline", env=self.env, cwd=self.folder).stdout
        if layer not in found.split("no walls for")[0]:
            self.skipTest(f"this system has no walls for {layer}: it gives processes no namespaces")

    def test_what_a_sandbox_is_can_be_seen(self):
        write_tool(self.tools, "a", "def f() -> int:\n    return 1\n")
        write_tool(self.tools, "b", "def f() -> int:\n    return 1\n")
        self.configure('[tool.a]\nsandbox = { preset = "reader", write = ["out"] }\n')
        shown = run("show", "a.f", env=self.env, cwd=self.folder).stdout
        out = self.folder.resolve() / "out"
        self.assertIn(f"reader: reads everything; writes temporary files, {out}; no network", shown)
        doctor = run("doctor", "--offline", env=self.env, cwd=self.folder).stdout
        self.assertIn("1 tool file with a sandbox, 1 without", doctor)
        self.assertIn(f"not there: `write` {out}", " ".join(doctor.split()))
        out.mkdir()
        self.assertNotIn("not there", run("doctor", "--offline", env=self.env, cwd=self.folder).stdout)
        self.configure('[tool.a]\nsandbox = { hide = ["secrt"] }\n')
        found = json.loads(run("doctor", "--offline", "--json", env=self.env, cwd=self.folder).stdout)
        found, = [check for check in found if check["found"].startswith("not there")]
        self.assertEqual((found["state"], found["found"]), ("good", f"not there: `hide` {self.folder.resolve()}/secrt"))
        self.put("program")
        self.configure('[builtin]\nenable = ["bash", "read_file"]\nroots = ["tools"]\n[sandbox]\npreset = "pure"\n')
        shown = {tool: run("show", tool, env=self.env, cwd=self.folder).stdout for tool in ("program", "bash", "read_file")}
        self.assertEqual([tool for tool, text in shown.items() if "pure: reads its own folder" in text], ["program", "bash"])


if __name__ == "__main__":
    unittest.main()
