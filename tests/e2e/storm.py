"""The storm: hundreds of calls in flight over many tools while workers are killed, files edited, calls cancelled, and
hostler itself is killed and started again, all at random moments. Afterwards every acknowledged answer must match its
question, none may be lost or given twice, nobody may survive, and descriptors and memory must be back where they were.

By hand: `just storm [ROUNDS] [SEED]`; `just storm --shared …` and `--race` are in shared_storm.py. A storm in which nothing happened proves nothing: it fails when no kill landed or
no worker ever lived. `--sabotage wrong | no-kill | no-child | lose | twice` shows that it would see it.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from families import below, kill, marked, names
from harness import alive, config_file, scratch, write_tool
from wire import OPENING, Wire, line, request

TOOLS = 8
IN_FLIGHT = 200
SECONDS = 3.0  # of each round, unless said otherwise
PATIENCE = 40  # seconds until an answer that has not come is lost
ENDS = ("drain", "supervisor", "keeper", "drain", "group")
SETTINGS = '[tool]\nidle_timeout = "500ms"\n[limits]\nmax_workers = 12\nmax_queue = 4096\n'
# What may become of a call whose worker or hostler was killed, or whose file is being replaced.
EXPECTED = {"PROCESS_KILLED", "TOOL_CRASHED", "BUSY", "SHUTTING_DOWN"}

BODY = '''"""Version {version}."""
import hashlib, os, time


def _token(number):
    return hashlib.sha256(b"%d" % number).hexdigest()[:16]


def echo(number: int, sleep: float = 0.0, pad: str = "") -> dict:
    time.sleep(sleep)
    return {{"number": number{wrong}, "token": _token(number), "pid": os.getpid()}}


async def wait(number: int, sleep: float = 0.0) -> dict:
    import asyncio
    await asyncio.sleep(sleep)
    return {{"number": number, "token": _token(number), "pid": os.getpid()}}


def crash(number: int) -> dict:
    os._exit(7)
'''


def header(number):
    extra = "effects = \"pure\"" if number % 2 else "max_calls = 300"
    several = "# concurrency = 4\n" if number % 4 < 2 else ""
    return f"# /// script\n# dependencies = []\n# [tool.hostler]\n# max_workers = {1 + number % 3}\n{several}# {extra}\n# ///\n"


def write(folder, number, version, wrong=False):
    body = BODY.format(version=version, wrong=" + (number % 97 == 0)" if wrong else "")
    write_tool(folder, f"t{number}", body, header(number))


@dataclass
class Told:
    """What a storm came to."""

    rounds: int = 0
    calls: int = 0
    answered: int = 0
    failed: int = 0  # as they may
    cancelled: int = 0
    kills: int = 0  # of workers that lived
    ends: int = 0  # of hostler itself
    edits: int = 0
    workers: int = 0  # that answered
    wrong: list = field(default_factory=list)
    lost: int = 0
    survivors: int = 0
    descriptors: list = field(default_factory=list)  # before and after, of each round that hostler lived through
    memory: list = field(default_factory=list)

    def faults(self):
        found = []
        found += [f"{len(self.wrong)} wrong answers, the first: {self.wrong[0]}"] if self.wrong else []
        found += [f"{self.lost} calls lost"] if self.lost else []
        found += [f"{self.survivors} survivors"] if self.survivors else []
        found += ["no kill landed"] if not self.kills else []
        found += ["hostler itself was never killed"] if self.rounds >= len(ENDS) and not self.ends else []
        found += ["no worker ever lived"] if not self.workers else []
        found += [f"descriptors: {before} before, {after} after" for before, after in self.descriptors if after > before]
        found += [f"memory: {before} MB before, {after} MB after" for before, after in self.memory if after > before + 40]
        return found

    def __str__(self):
        return (f"{self.rounds} rounds, {self.calls} calls, {self.answered} answered, {self.failed} failed as they may, "
                f"{self.cancelled} cancelled, {self.workers} workers, {self.kills} of them killed, hostler killed {self.ends} "
                f"times, {self.edits} edits, {len(self.wrong)} wrong, {self.lost} lost, {self.survivors} survivors")


class Client:
    """A client with many calls in flight. Its own thread reads what comes."""

    padded = 0.0  # the share of calls with long arguments
    spared = 100  # of so many answers, the sabotage loses one

    def __init__(self, wire, told, chance, sabotage):
        self.wire, self.told, self.chance, self.sabotage = wire, told, chance, sabotage
        self.open, self.withdrawn, self.pids = {}, set(), {}
        self.next, self.lock, self.over = 1, threading.Lock(), False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        # Read, so that it never waits; what hostler itself did wrong is told there.
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError), os.fdopen(os.dup(self.wire.output.fileno()), "rb") as stream:
            for text in stream:
                message = json.loads(text)
                if "method" not in message:
                    self.take(message)
                    if self.sabotage == "twice" and self.told.answered % 50 == 3:
                        self.take(message)
        self.over = True

    def listen(self):
        with contextlib.suppress(OSError, ValueError), os.fdopen(os.dup(self.wire.process.stderr.fileno()), "rb") as stream:
            for text in stream:
                if b"panicked" in text:
                    place = text.decode(errors="replace").strip()
                    self.told.wrong.append(f"{place}: {next(stream, b'').decode(errors='replace').strip()}")

    def take(self, message):
        with self.lock:
            id = message.get("id")
            question = self.open.pop(id, None)
            if question is None:
                if id not in self.withdrawn:
                    self.told.wrong.append(f"an answer that nobody waits for: {message}")
                return
            if self.sabotage == "lose" and id % self.spared == 0:
                self.open[id] = question
                return
        self.judge(question, message)

    def judge(self, question, message):
        number, name = question
        result = message.get("result") or {}
        value = result.get("structuredContent") or {}
        if message.get("error") is not None or result.get("isError"):
            code = (result.get("content") or [{"text": str(message.get("error"))}])[0]["text"].split(":")[0]
            self.told.failed += 1
            if code not in EXPECTED:
                self.told.wrong.append(f"{name}({number}) failed: {str(message)[:600]}")
            return
        token = hashlib.sha256(b"%d" % number).hexdigest()[:16]
        if name.endswith("crash") or (value.get("number"), value.get("token")) != (number, token):
            self.told.wrong.append(f"{name}({number}) was answered {value}")
            return
        self.told.answered += 1
        self.pids[value["pid"]] = True

    def call(self):
        with self.lock:
            id, self.next = self.next, self.next + 1
            number = self.chance.randrange(1 << 40)
            function = "crash" if self.chance.random() < 0.004 else self.chance.choice(("echo", "echo", "wait"))
            name = f"t{self.chance.randrange(TOOLS)}_{function}"
            self.open[id] = (number, name)
        arguments = {"number": number}
        if function != "crash" and self.chance.random() < 0.1:
            arguments["sleep"] = self.chance.random() * 0.05
        if function == "echo" and self.chance.random() < self.padded:
            arguments["pad"] = "x" * self.chance.randrange(1 << 19)
        self.told.calls += 1
        self.send(request(id, "tools/call", name=name, arguments=arguments))

    def cancel(self):
        with self.lock:
            if not self.open:
                return
            id = self.chance.choice(list(self.open))
            del self.open[id]
            self.withdrawn.add(id)
        self.told.cancelled += 1
        self.send(line(method="notifications/cancelled", params={"requestId": id}))

    def send(self, data):
        with contextlib.suppress(BrokenPipeError):
            self.wire.send(data)

    def drained(self, until):
        while self.open and not self.over and time.monotonic() < until:
            time.sleep(0.01)
        return len(self.open)


def kill_worker(client, supervisor, told, sabotage):
    living = [pid for pid in list(client.pids) if alive(pid) and pid in below(supervisor)]
    if living and sabotage != "no-kill":
        told.kills += kill(client.chance.choice(living), signal.SIGKILL)


def held(pid):
    """Open descriptors, without the files of the spool, which come and go; and resident memory in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    files = [os.path.realpath(place) for place in Path(f"/proc/{pid}/fd").iterdir()]
    return len([file for file in files if not re.search(r"/journal/spool/.*\.\d{8}", file)]), pages * os.sysconf("SC_PAGE_SIZE") >> 20


def at_rest(wire, supervisor):
    """What hostler holds when it has made a call and its worker has left."""
    wire.value("first", "t0_echo", number=1)
    limit = time.monotonic() + 15
    while below(supervisor) and time.monotonic() < limit:
        time.sleep(0.02)
    return held(supervisor)


def blow(client, folder, supervisor, told, chance, sabotage, seconds):
    """One round's wind: calls without end, and something happening every now and then."""
    end, version = time.monotonic() + seconds, 0
    # On a busy machine workers take longer to answer, and one that has not cannot be killed.
    latest = end + (0 if sabotage else PATIENCE)
    while time.monotonic() < (end if client.pids and told.kills else latest) and not client.over:
        for _ in range(IN_FLIGHT - len(client.open)):
            client.call()
        roll = chance.random()
        if roll < 0.05:
            kill_worker(client, supervisor, told, sabotage)
        elif roll < 0.08:
            version += 1
            told.edits += 1
            write(folder, chance.randrange(TOOLS), version, sabotage == "wrong")
        elif roll < 0.2:
            client.cancel()
        time.sleep(0.005)


def settle(client, supervisor, told, before, patience):
    """hostler lives: everything is answered, and what was taken is given back once the workers have left."""
    told.lost += client.drained(time.monotonic() + patience)
    limit = time.monotonic() + 15
    while (below(supervisor) or held(supervisor)[0] > before[0]) and time.monotonic() < limit:
        time.sleep(0.05)
    after = held(supervisor)
    told.descriptors.append((before[0], after[0]))
    told.memory.append((before[1], after[1]))


def one(root, chance, told, sabotage, seconds, patience):
    folder, end = root / "tools", ENDS[told.rounds % len(ENDS)]
    told.rounds += 1
    with Wire(folder, arguments=["--config", str(root / "hostler.toml")]) as wire:
        wire.open()
        supervisor = wire.supervisor
        before = at_rest(wire, supervisor)
        client = Client(wire, told, chance, sabotage)
        blow(client, folder, supervisor, told, chance, sabotage, seconds)
        if sabotage != "no-child":
            told.workers += len(client.pids)
        members = {supervisor, *below(supervisor), *marked(supervisor)}
        if end == "drain":
            settle(client, supervisor, told, before, patience)
        elif end == "group":
            os.killpg(wire.process.pid, signal.SIGKILL)
            told.ends += 1
        else:
            told.ends += kill(supervisor if end == "supervisor" else wire.process.pid, signal.SIGKILL)
    limit = time.monotonic() + 5
    left = members
    while left and time.monotonic() < limit:
        left = {pid for pid in members | set(marked(supervisor)) if alive(pid)}
    told.survivors += len(left)
    if left:
        print(f"round {told.rounds} ({end}): left are {names(left)}", file=sys.stderr)
        for pid in left:
            kill(pid, signal.SIGKILL)


class Cleanups(list):
    """Stands in for a test."""

    def addCleanup(self, *what, **how):  # noqa: N802, unittest's own name
        self.append((what, how))

    def run(self):
        for (what, *words), how in self:
            what(*words, **how)


def storm(rounds, seed, sabotage=None, seconds=SECONDS, patience=PATIENCE, say=lambda told: None):
    """As many rounds; what they came to."""
    cleanups, told, chance = Cleanups(), Told(), random.Random(seed)
    root = scratch(cleanups)
    try:
        config_file(root, SETTINGS)
        for number in range(TOOLS):
            write(root / "tools", number, 0, sabotage == "wrong")
        for _ in range(rounds):
            one(root, chance, told, sabotage, seconds, patience)
            say(told)
    finally:
        cleanups.run()
    return told


def main(words):
    sabotage = None
    if "--sabotage" in words:
        place = words.index("--sabotage")
        sabotage = words[place + 1]
        words = words[:place] + words[place + 2:]
    rounds, seed = (int(word) for word in (words + ["20", "1"][len(words):])[:2])
    shown = sys.stderr.isatty()
    told = storm(rounds, seed, sabotage, say=lambda told: shown and print(f"\r{told}", end="", file=sys.stderr, flush=True))
    print(("\n" if shown else "") + str(told))
    if told.descriptors:
        print("descriptors and MB before and after:", ", ".join(
            f"{fds} {memory}" for fds, memory in zip(told.descriptors, told.memory)))
    for fault in told.faults():
        print(f"FAILED: {fault}")
    return 1 if told.faults() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
