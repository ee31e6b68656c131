"""What the end-to-end tests share: where things are, hostler as an MCP client sees it, hostler as a pipe sees it.

Started by `scripts/test`, which says where the binary is (HOSTLER_BIN) and puts uv on PATH.
"""

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import warnings
from pathlib import Path

from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

import shared_mode

for noisy in ("client", "asyncio"):
    logging.getLogger(noisy).setLevel(logging.ERROR)
warnings.filterwarnings("ignore", category=MCPDeprecationWarning)  # the legacy era is tested on purpose

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("HOSTLER_E2E_TARGET", ROOT / "target"))
HOSTLER = os.environ.get("HOSTLER_BIN", str(TARGET / "debug" / "hostler"))
EXAMPLES = ROOT / "examples" / "tools"
DATA = ROOT / "examples" / "data"
TOOLS = ROOT / "tests" / "tools"
CACHE = TARGET / "e2e-cache"
META = "hostler/outcome"
PATIENCE = 60  # seconds until something that must happen counts as never happening; no test waits for it to pass


def environment(**changes):
    """A person's environment with folders of the tests' own. None takes a variable away."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HOSTLER_", "PYTHON", "XDG_"))}
    env.pop("VIRTUAL_ENV", None)
    env.update(
        XDG_CACHE_HOME=str(CACHE / "xdg"),
        XDG_CONFIG_HOME=str(CACHE / "config"),
        XDG_DATA_HOME=str(CACHE / "data"),
        UV_CACHE_DIR=str(CACHE / "uv"),
        PIP_CACHE_DIR=str(CACHE / "pip"),
        **shared_mode.place.variables,
    )
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


def scratch(test):
    """A folder for one test."""
    folder = Path(tempfile.mkdtemp(prefix="hostler-e2e-"))
    test.addCleanup(shutil.rmtree, folder, ignore_errors=True)
    return folder


HEADER = '# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# ///\n'


def write_tool(folder, name, body, header=HEADER):
    """A tool file in a folder. Renamed into place: nobody sees half of it, and its stamp is always new."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    fresh = folder / f".{name}.fresh"
    fresh.write_text(header + body, encoding="utf-8")
    fresh.rename(path)
    return path


class Answer:
    """What one call came to, taken apart."""

    def __init__(self, result):
        self.result = result
        self.outcome = result.meta[META]
        self.metadata = self.outcome["metadata"]
        self.worker = self.metadata.get("worker")
        self.output = self.metadata.get("output") or ""
        self.text = getattr(result.content[0], "text", None)
        self.structured = result.structured_content
        self.failed = bool(result.is_error)
        self.error = self.outcome.get("error") or {}
        self.code = self.error.get("code")
        self.message = self.error.get("message", "")
        self.details = self.error.get("details", {})

    @property
    def value(self):
        assert not self.failed, self.text
        if isinstance(self.structured, dict) and set(self.structured) == {"result"}:
            return self.structured["result"]
        return self.structured


class Progress:
    """A call under way that can be waited for from inside: its progress notifications, as they come."""

    def __init__(self):
        self.notes = []
        self._news = asyncio.Event()

    async def __call__(self, progress, total, message):
        self.notes.append((progress, total, message))
        self._news.set()

    async def until(self, wanted):
        """Waits for a note that fits, and returns its message."""
        async def search():
            while True:
                for _, _, message in self.notes:
                    if message is not None and wanted(message):
                        return message
                self._news.clear()
                await self._news.wait()

        return await asyncio.wait_for(search(), PATIENCE)

    async def began(self):
        """Waits for `began PID`, which the tools of tests/tools say first when they are told to wait."""
        return int((await self.until(lambda text: text.startswith("began "))).split()[1])


class Session:
    """hostler as the official client sees it."""

    def __init__(self, client, log):
        self.client = client
        self.log = log

    async def call(self, name, /, *, progress=None, meta=None, **arguments):
        wait = self.client.call_tool(name, arguments, progress_callback=progress, meta=meta)
        return Answer(await asyncio.wait_for(wait, PATIENCE * 3))

    async def value(self, name, /, **arguments):
        return (await self.call(name, **arguments)).value

    async def start(self, name, /, **arguments):
        """Begins a call and returns when the tool itself says that it runs: (task, worker pid)."""
        progress = Progress()
        task = asyncio.ensure_future(self.call(name, progress=progress, **arguments))
        beginning = asyncio.ensure_future(progress.began())
        await asyncio.wait({task, beginning}, return_when=asyncio.FIRST_COMPLETED)
        if not beginning.done():
            beginning.cancel()
            raise AssertionError(f"{name} ended before it began: {task.result().text}")
        return task, beginning.result()

    async def tools(self):
        listed = await self.client.list_tools(cache_mode="bypass")
        return {tool.name: tool for tool in listed.tools}

    def stderr(self):
        shared_mode.settle(self.log)
        self.log.seek(0)
        return self.log.read()

    def said(self):
        """What hostler has logged, of workers too: these may be shared, and so is the log of what they do."""
        return self.stderr() + shared_mode.log()

    async def kill(self, worker):
        """Kills a worker, and waits until hostler knows. By its pid: a shared log has the ends of others too."""
        os.kill(worker, signal.SIGKILL)
        exited = re.compile(rf"worker exited\b.* pid={worker}\b")
        await eventually_async(lambda: exited.search(self.said()), "hostler sees its end")


@contextlib.asynccontextmanager
async def connected(*tools, config=None, mode="auto", env=None, cwd=None, verbose=False, flags=(), **options):
    """A hostler of one's own, started and ended by the official client."""
    arguments = ["serve", *shared_mode.words(flags), *flags]
    env = shared_mode.limited(env if env is not None else environment(), config)
    for folder in tools or (TOOLS,):
        arguments += ["--tools", str(folder)]
    if config is not None:
        arguments += ["--config", str(config)]
    if verbose:
        arguments += ["-v"]
    # env -i: the client lays what it is given over a few variables of its own choice.
    words = [shutil.which("env"), "-i", *(f"{name}={value}" for name, value in env.items()), HOSTLER, *arguments]
    # A log is appended to: without that its writer goes on where it was read last, and writes over what it said.
    with tempfile.NamedTemporaryFile() as kept, open(kept.name, "a+") as log, tempfile.NamedTemporaryFile("r") as started:
        words = ["-c", 'echo $$ >"$0"; exec "$@"', started.name, *words]
        server = StdioServerParameters(command="/bin/sh", args=words, cwd=cwd or ROOT)
        async with Client(stdio_client(server, errlog=log), mode=mode, **options) as client:
            failure = None
            try:
                if shared_mode.IS_ON:
                    # A client that asks nothing at its start does not wait for the shell that writes it.
                    await eventually_async(lambda: os.fstat(started.fileno()).st_size, "the server is started")
                    await asyncio.to_thread(shared_mode.wait_attached, int(started.read()), env)
                yield Session(client, log)
            except Exception as error:  # told after the client has gone: it wraps what passes through it, twice
                failure = error
        if failure is not None:
            log.seek(0)
            failure.add_note("hostler said:\n" + log.read()) if hasattr(failure, "add_note") else None
            raise failure


def config_file(folder, text):
    """A hostler.toml with this text."""
    path = folder / "hostler.toml"
    path.write_text(text, encoding="utf-8")
    return path


def run(*words, env=None, cwd=None, stdin=None, timeout=PATIENCE * 3):
    """hostler run to its end from the command line."""
    words = ("serve", "--standalone", *words[1:]) if words[:1] == ("serve",) else words
    text = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        [HOSTLER, *map(str, words)], env=env if env is not None else environment(), cwd=cwd or ROOT,
        capture_output=True, text=True, timeout=timeout, **text)


def alive(pid):
    """Whether a process is there and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid):
    """The living children of a process."""
    return [child for child in listed_children(pid) if alive(child)]


def listed_children(pid):
    """The children of all threads of a process, dead ones too. Threads come and go while they are looked at."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (thread / "children").read_text().split())
    return found


class Calling(unittest.TestCase):
    """Calls tools by `hostler call`, in `self.folder` and with `self.env`."""

    def outcome(self, *words):
        done = run("call", "--json", *words, env=self.env, cwd=self.folder)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def value(self, *words):
        outcome = self.outcome(*words)
        self.assertIsNone(outcome["error"], outcome)
        return outcome["result"]

    def error(self, *words):
        return self.outcome(*words)["error"]


def supervisor(keeper):
    """The process below the one that was started: that one only keeps watch."""
    eventually(lambda: children(keeper), "the keeper has a supervisor")
    found, = children(keeper)
    return found


def eventually(holds, what, limit=10.0):
    """Polls what only the system can tell."""
    deadline = time.monotonic() + limit
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.01)


async def eventually_async(holds, what, limit=10.0):
    deadline = time.monotonic() + limit
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit} s: {what}")
        await asyncio.sleep(0.01)


def gone(*pids):
    return lambda: not any(alive(pid) for pid in pids)


class Gate:
    """A named pipe on which a tool waits until the test lets it go on. No file descriptor is inherited, nothing sleeps."""

    def __init__(self, folder, name="gate"):
        self.path = folder / name
        os.mkfifo(self.path)

    def open(self):
        """Lets one waiting tool go on."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                os.close(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK))
                return
            except OSError:  # nobody reads yet
                if time.monotonic() > deadline:
                    raise AssertionError("nobody waits at the gate") from None
                time.sleep(0.005)


__all__ = [
    "Answer", "CACHE", "DATA", "EXAMPLES", "Gate", "HEADER", "HOSTLER", "MCPError", "META", "PATIENCE", "Progress", "ROOT",
    "Session", "TARGET", "TOOLS", "alive", "children", "config_file", "connected", "environment", "eventually", "eventually_async", "gone",
    "parent", "run", "scratch", "supervisor", "write_tool",
]
