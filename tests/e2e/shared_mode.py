"""The end-to-end tests with one hostler for all clients: `scripts/test shared` (HOSTLER_E2E_SHARED=1).

Every hostler that a test starts as an MCP server attaches to a shared one, which only this test has. That its session is
there is asserted each time: one that is served alone fails its test. With the test ends the shared hostler, and nothing
that it started may survive.
"""

import atexit
import json
import os
import re
import shutil
import socket
import tempfile
import time
import unittest
from pathlib import Path

IS_ON = os.environ.get("HOSTLER_E2E_SHARED") == "1"
LIMIT = 20  # seconds until a client is attached, or a shared hostler is gone

# Tests that are about the process that a client starts, where that process is the whole hostler, by module, class or
# name. `scripts/test e2e` runs them.
STANDALONE = {
    "test_shared": "it attaches by itself, and is run with the other part",
    "test_neighbours": "the same",
    "test_http": "its servers are processes of their own",
    "test_mcp_http": "the same",
    "test_grpc": "the same",
    "test_shared_commands": "the same",
    "test_top": "the same",
    "test_attacks.Secrets.test_a_secret_that_is_printed_in_pieces_between_calls_is_redacted": "what belongs to no call is not in the shared log",
    "test_beside.Beside.test_what_nobody_said_is_nobodys": "the same",
    "test_concurrent.Together.test_what_goes_past_python_belongs_to_no_call": "the same",
    "test_orphans": "its keeper and supervisor are killed, stopped and signalled; the shared hostler's are in test_shared",
    "test_terminal": "terminals are not passed",
    "test_interrupted": "commands, no servers",
    "test_container": "a container's first process is the keeper of its hostler",
    "test_storm": "it kills the process that serves and expects its clients to lose it; the storm has a mode of its own",
    "test_limits.Processes": "limits of the process that a client starts are not those of the shared hostler",
    "test_walls": "they run as another user, whose shared hostler does not tell the tests its status",
    "test_exits.Questions": "the keeper's signals",
    "test_exits.Streams.test_files": "files are not passed",
    "test_exits.Streams.test_a_pipe_in_and_a_file_out": "files are not passed",
    "test_reload.OnTheWire.test_where_no_tool_files_lie_nobody_hears_that_they_cannot_be_watched":
        "a user namespace with limits of its own has a shared hostler of its own, which no process outside may ask for its status",
    "test_reload.OnTheWire.test_where_nothing_can_be_watched_files_are_looked_at_and_that_is_said_once":
        "a user namespace with limits of its own has a shared hostler of its own, which no process outside may ask for its status",
    "test_several.Operator.test_program_text_is_released_after_a_call_and_the_next_is_answered":
        "the shared hostler's own start is not over when it is released, and touches half of it again",
    "test_builds.Builds.test_a_caller_that_waits_for_another_hostlers_build_is_informed": "two hostlers build the same",
    "test_builds.Builds.test_a_wait_for_another_hostlers_build_counts_as_building": "two hostlers build the same",
    "test_builds.Builds.test_a_builder_that_was_stopped_is_passed_and_harms_nothing_when_it_goes_on": "two hostlers build the same",
}


def why_standalone(test):
    """Why a test is not run in this mode, or None."""
    words = test.id().split(".")
    return next((STANDALONE[name] for name in (".".join(words[:count]) for count in (1, 2, 3)) if name in STANDALONE), None)


class Place:
    """The runtime folder and the state folder of one test."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-shared-"))
        (self.folder / "run").mkdir(0o700)
        self.variables = {"XDG_RUNTIME_DIR": str(self.folder / "run"), "XDG_STATE_HOME": str(self.folder / "state")}

    def statuses(self, folder=None):
        """The status of each shared hostler that runs here, with its socket."""
        found = []
        for path in sorted((Path(folder or self.folder / "run") / "hostler").glob("*.sock")):
            answer = ask(path, "status")
            if answer is not None:
                found.append((path, answer))
        return found

    def log(self):
        """What the shared hostlers wrote into their logs."""
        return "".join(path.read_text(errors="replace") for path in (self.folder / "state").rglob("*.log"))

    def stop(self):
        """Ends this place."""
        self.end()
        assert "panicked" not in self.log(), self.log()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self):
        """Ends what runs here, and asserts that nothing of it survives."""
        left = set()
        for path, status in self.statuses():
            pid = status["pid"]
            left |= {pid, parent(pid), *below(pid)}
            ask(path, "stop")
        late = time.monotonic() + LIMIT
        while left := {pid for pid in left if alive(pid)}:
            assert time.monotonic() < late, f"processes survive the shared hostler: {[named(pid) for pid in left]}\n{self.log()}"
            time.sleep(0.005)


def ask(path, method):
    """The result of a method of the control socket, or None without an answer."""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(LIMIT)
            link.connect(str(path))
            link.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode() + b"\n")
            answer = json.loads(link.makefile().readline() or "{}")
    except (FileNotFoundError, ConnectionError):
        return None
    return answer.get("result")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def named(pid):
    try:
        return pid, Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return pid, "gone"


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def below(pid):
    """All processes below one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = parent(folder.name)
            except (FileNotFoundError, ProcessLookupError):
                pass
    found, new = set(), {pid}
    while new:
        new = {child for child, above in parents.items() if above in new} - found
        found |= new
    return found


# The place of the test that runs. The tests with a hostler for each client have one for each process of theirs: nothing
# may run there, a command would use it.
place = Place()


def words(arguments):
    """The words that make `hostler serve` attach, or not."""
    return [] if {"--shared", "--standalone"} & set(arguments) else ["--shared" if IS_ON else "--standalone"]


def log():
    """What the shared hostler of the test logged of what concerns no session alone."""
    return place.log() if IS_ON else ""


def settle(file):
    """Waits until nothing is on its way into a log: a session's lines come by its attached process, answers do not."""
    size, late = -1, time.monotonic() + LIMIT
    while IS_ON and size != (size := os.fstat(file.fileno()).st_size) and time.monotonic() < late:
        time.sleep(0.05)


def end():
    """Ends the shared hostler: its workers outlive the session that started them."""
    if IS_ON:
        place.end()


def limited(env, config):
    """Variables with which the `[limits]` of a configuration are in force: those of the shared hostler are the person's."""
    limits = re.search(r"^\[limits\]\n(?:[^\[].*\n)*", Path(config).read_text(errors="replace"), re.M) if IS_ON and config else None
    if limits is None:
        return env
    own = place.folder / "config" / "hostler" / "hostler.toml"
    if not own.exists() or own.read_text() != limits[0]:
        end()
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(limits[0])
    return {**env, "XDG_CONFIG_HOME": str(place.folder / "config")}


def wait_attached(process, env):
    """Asserts that a process is attached, unless it has ended. Gives the pid of the shared hostler."""
    late = time.monotonic() + LIMIT
    while process_lives(process):
        for _, status in place.statuses(env.get("XDG_RUNTIME_DIR")):
            if process in [session["pid"] for session in status["sessions"]]:
                return status["pid"]
        assert time.monotonic() < late, f"process {process} is not served by the shared hostler:\n{place.log()}"
        time.sleep(0.003)
    return None


def process_lives(pid):
    return alive(pid)


def install():
    """Gives every test a place of its own, or asserts that it started no shared hostler."""
    run = unittest.TestCase.run

    def run_alone(test, result=None):
        test.addCleanup(lambda: test.assertEqual(place.statuses(), [], "it started a shared hostler"))
        return run(test, result)

    def run_in_place(test, result=None):
        global place
        why = why_standalone(test)
        if why is not None:
            setattr(test, test._testMethodName, unittest.skip(why)(lambda: None))
            return run(test, result)
        shutil.rmtree(place.folder, ignore_errors=True)
        place = Place()
        test.addCleanup(place.stop)
        return run(test, result)

    unittest.TestCase.run = run_in_place if IS_ON else run_alone


install()
atexit.register(lambda: place.stop())  # what no test has started
