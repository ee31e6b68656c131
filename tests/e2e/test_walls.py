"""That a tool reads neither hostler nor another tool, whatever kind it is of, and that this costs it nothing else."""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from harness import HEADER, config_file, eventually
from probe import WAYS
from unprivileged import Account, USER
from wire import Wire

HERE = Path(__file__).resolve().parent
SECRET = "s3cret-of-the-client"

SPY = HEADER + '''
import os
import resource
import subprocess
import sys

sys.path.insert(0, "{programs}")
import probe


def pid() -> int:
    return os.getpid()


def reached(pids: list[int]) -> dict[str, list[str]]:
    return {{str(pid): probe.reached(pid) for pid in pids}}


def reached_child() -> list[str]:
    child = subprocess.Popen(["sleep", "60"])
    try:
        return probe.reached(child.pid)
    finally:
        child.kill()
        child.wait()


def ask_for_core_dumps(pid: int) -> str:
    most = resource.RLIM_INFINITY
    try:
        resource.prlimit(pid, resource.RLIMIT_CORE, (most, most))
    except PermissionError:
        return "refused"
    return "allowed"


def shell(command: str) -> str:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    return f"{{done.returncode}} {{done.stdout}}{{done.stderr}}"
'''

PROGRAM = '''#!/usr/bin/env python3
import json, os, sys
sys.path.insert(0, "{programs}")
import probe
if sys.argv[1:] == ["--schema"]:
    schema = {{"type": "object", "properties": {{"pids": {{"type": "array"}}}}}}
    json.dump({{"name": "{name}", "description": "Spies.", "protocol": "{protocol}", "inputSchema": schema}}, sys.stdout)
    sys.exit()
for line in sys.stdin:
    given = json.loads(line)
    found = {{str(pid): probe.reached(pid) for pid in given.get("kwargs", given)["pids"]}}
    print(json.dumps({{"result": found}} if "kwargs" in given else found), flush=True)
'''

# A build backend in the package's own folder: it needs nothing that would have to be downloaded.
BACKEND = '''
import json, os, sys
sys.path.insert(0, "{programs}")
import probe


def build_wheel(*_, **__):
    pids = json.load(open("{folder}/pids"))
    with open("{home}/built", "w") as file:
        json.dump({{str(pid): probe.reached(pid) for pid in pids}}, file)
    raise SystemExit("it has seen enough")
'''


class Walls(unittest.TestCase):
    def setUp(self):
        self.account = Account(self, SECRET_OF_CLIENT=SECRET)
        probe = self.account.programs / "probe.py"
        shutil.copyfile(HERE / "probe.py", probe)
        probe.chmod(0o644)
        for name in ("spy", "other"):
            self.account.tool(f"{name}.py", SPY.format(programs=self.account.programs))

    def serve(self, config="", before=()):
        config = config_file(self.account.folder, config)
        config.chmod(0o644)
        words = [*before, *self.account.become, self.account.hostler]
        return Wire(self.account.tools, env=self.account.env, arguments=["--config", str(config)], cwd=self.account.folder,
                    program=words)

    def program(self, name, protocol):
        text = PROGRAM.format(programs=self.account.programs, name=name, protocol=protocol)
        self.account.tool(name, text, 0o755)

    def strangers(self, hostler):
        """hostler's two processes, another tool's worker, and a program that has nothing to do with hostler, as a client."""
        client = subprocess.Popen([*self.account.become, "sleep", "600"], env=self.account.env)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        eventually(lambda: Path(f"/proc/{client.pid}/cmdline").read_bytes().startswith(b"sleep"), "it sleeps")
        found = [hostler.process.pid, hostler.supervisor, hostler.value(90, "other_pid"), client.pid]
        for pid in found:  # as another user it would prove nothing
            user = Path(f"/proc/{pid}/status").read_text().partition("Uid:")[2].split()[0]
            self.assertEqual(int(user), USER if os.geteuid() == 0 else os.geteuid())
        return found

    def refused(self, found, pids):
        self.assertEqual(found, {str(pid): [] for pid in pids})

    def test_python_tools(self):
        for launcher in ("uv", "direct"):
            with self.subTest(launcher), self.serve(f'[tool]\nlauncher = "{launcher}"\n') as hostler:
                hostler.open()
                pids = self.strangers(hostler)
                self.refused(hostler.value(1, "spy_reached", pids=pids), pids)
                self.assertEqual(hostler.value(2, "spy_reached_child"), list(WAYS), "its own children are its own")

    def test_executables(self):
        self.program("each", "once")
        self.program("staying", "bare")
        with self.serve() as hostler:
            hostler.open()
            pids = self.strangers(hostler)
            for number, name in enumerate(("each", "staying"), 1):
                with self.subTest(name):
                    self.refused(hostler.value(number, name, pids=pids), pids)

    def test_the_shell(self):
        config = f'[builtin]\nenable = ["bash"]\nroots = ["{self.account.home}"]\n'
        with self.serve(config) as hostler:
            hostler.open()
            pids = self.strangers(hostler)
            command = f"{self.account.programs}/python3 {self.account.programs}/probe.py {' '.join(map(str, pids))}"
            self.assertEqual(hostler.value(1, "bash", command=command)["stdout"].split(), [f"{pid}:" for pid in pids])

    def test_code_that_uv_runs_while_it_builds(self):
        package = self.account.folder / "package"
        package.mkdir()
        (package / "pyproject.toml").write_text(
            '[project]\nname = "spy-package"\nversion = "1"\n'
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
        places = {"programs": self.account.programs, "folder": self.account.folder, "home": self.account.home}
        (package / "backend.py").write_text(BACKEND.format(**places))
        header = f'# /// script\n# requires-python = ">=3.9"\n# dependencies = ["spy-package @ file://{package}"]\n# ///\n'
        self.account.tool("builder.py", header + "def f() -> int:\n    return 1\n")
        with self.serve() as hostler:
            hostler.open()
            pids = self.strangers(hostler)
            (self.account.folder / "pids").write_text(json.dumps(pids))
            hostler.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"builder_f","arguments":{}}}\n')
            answer = hostler.answer(1)["result"]
            self.assertTrue(answer["isError"], answer)
            built = self.account.home / "built"
            self.assertTrue(built.exists(), answer)
            self.refused(json.loads(built.read_text()), pids)

    def test_a_tool_that_may_gain_privileges_has_no_domain(self):
        with self.serve("[tool.spy]\nnew_privileges = true\n") as hostler:
            hostler.open()
            keeper, supervisor, other, client = self.strangers(hostler)
            self.assertEqual(hostler.value(1, "spy_reached", pids=[keeper, supervisor]), {str(keeper): [], str(supervisor): []},
                             "hostler is closed by itself")
            self.assertEqual(hostler.value(2, "spy_reached", pids=[other, client]),
                             {str(pid): list(WAYS) for pid in (other, client)})
            line = "grep NoNewPrivs /proc/self/status"
            self.assertEqual(hostler.value(3, "spy_shell", command=line).split(), ["0", "NoNewPrivs:", "0"])
            self.assertEqual(hostler.value(4, "other_shell", command=line).split(), ["0", "NoNewPrivs:", "1"])

    def test_no_tool_makes_another_one_dump_its_memory(self):
        # Raising a limit of another process needs no look into it, and a signal ends it with a dump.
        limit = "import resource; print(*resource.getrlimit(resource.RLIMIT_CORE))"
        words = "python3 -c '" + limit + "'"
        unlimited = ("prlimit", "--core=0:unlimited")
        config = '[tool.free]\nnew_privileges = true\n[builtin]\nenable = ["bash"]\nroots = ["/"]\n'
        self.account.tool("free.py", SPY.format(programs=self.account.programs))
        with self.serve(config, before=unlimited) as hostler:
            hostler.open()
            for number, name in enumerate(("other", "free"), 1):
                with self.subTest(name):
                    pid = hostler.value(10 + number, f"{name}_pid")
                    self.assertEqual(hostler.value(20 + number, "spy_ask_for_core_dumps", pid=pid), "refused")
                    self.assertEqual(hostler.value(30 + number, f"{name}_shell", command=words), "0 1 1\n")
            self.assertEqual(hostler.value(40, "bash", command=words)["stdout"], "1 1\n")

    def test_the_environment_is_not_in_the_block_that_the_system_shows(self):
        if os.geteuid() != 0:
            self.skipTest("only root may look")
        with self.serve() as hostler:
            hostler.open()
            for pid in (hostler.process.pid, hostler.supervisor):
                self.assertNotIn(SECRET.encode(), Path(f"/proc/{pid}/environ").read_bytes())
            # What hostler passes on is still there.
            self.assertIn(str(self.account.home), hostler.value(1, "spy_shell", command="echo $HOME"))

    def test_files_move_and_link_between_folders(self):
        moves = "cd $HOME && mkdir -p a b && touch a/f && mv a/f b/f && ln b/f a/g && cp -rl b a/c && mv a/c b/c && echo moved"
        with self.serve() as hostler:
            hostler.open()
            self.assertEqual(hostler.value(1, "spy_shell", command=moves), "0 moved\n")

    def test_hostler_within_a_tool(self):
        inner = f"{self.account.hostler} call --tools {self.account.tools} spy.shell command='{self.account.hostler} call --tools {self.account.tools} other.pid'"
        with self.serve() as hostler:
            hostler.open()
            said = hostler.value(1, "spy_shell", command=inner)
            self.assertRegex(said, r"^0 .*0 \d+")

    def test_where_no_further_domain_fits(self):
        # The kernel nests 16. Tools then share the last one with hostler, which is closed by itself.
        with self.serve(before=(sys.executable, str(HERE / "nested.py"), "16")) as hostler:
            hostler.open()
            keeper, supervisor, *_ = self.strangers(hostler)
            self.refused(hostler.value(1, "spy_reached", pids=[keeper, supervisor]), [keeper, supervisor])

    def test_nothing_is_left_when_hostler_is_killed(self):
        # hostler cannot look into its own half any more than others can.
        with self.serve() as hostler:
            hostler.open()
            worker = hostler.value(1, "spy_pid")
            os.kill(hostler.supervisor, 9)
            self.assertEqual(hostler.ended(3.0), -9)
            eventually(lambda: not Path(f"/proc/{worker}").exists(), "the worker is gone")


if __name__ == "__main__":
    unittest.main()
