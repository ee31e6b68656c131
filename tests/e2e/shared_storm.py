"""The storm over one shared hostler: four clients with hundreds of calls in flight while workers, files and the shared hostler
itself are struck. Every call is answered, by its result or a fault, and no process is left after the last client.

By hand: `just storm --shared [ROUNDS] [SEED]`, and `just storm --race [ROUNDS]` for clients that start while it is killed.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from families import below, kill, marked, names
from harness import HOSTLER, alive, config_file, environment, parent, scratch
from storm import EXPECTED, TOOLS, Cleanups, Client, Told, write
from wire import Wire

CLIENTS = 4
IN_FLIGHT = 50  # of each client
SECONDS = 6.0
PATIENCE = 40
PAUSE = 1.2  # seconds between two kills of the shared hostler, at least: its workers must have time to live
PERSON = '[shared]\nidle_exit = "400ms"\n[limits]\nmax_workers = 12\nmax_queue = 4096\n'
PROJECT = '[tool]\nidle_timeout = "500ms"\n'
LEAVES = ("input", "term", "kill")
STRUCK = ("supervisor", "keeper", "both")


@dataclass
class SharedTold(Told):
    """What a storm came to, of all clients together."""

    lost_calls: int = 0  # that got OUTCOME_UNKNOWN
    repeated: int = 0  # answers that were written and not yet recorded as written
    broken: int = 0  # lines that the killed one had written in part
    alone: int = 0  # clients that were not served by the shared hostler in the end
    ids: list = field(default_factory=list)

    def add(self, one):
        for name in ("calls", "answered", "failed", "cancelled", "lost", "lost_calls", "repeated", "broken"):
            setattr(self, name, getattr(self, name) + getattr(one, name))
        self.wrong += one.wrong

    def faults(self):
        found = super().faults()
        found += [f"{self.alone} clients with a hostler of their own"] if self.alone else []
        found += ["the shared hostler was never killed"] if not self.ends else []
        found += ["nothing was in flight when it was killed"] if self.ends and not self.lost_calls else []
        # The kernel may have taken one write of each client that the killed process could not record any more.
        most = self.ends * CLIENTS
        found += [f"{self.broken} broken lines after {self.ends} kills"] if self.broken > most else []
        found += [f"{self.repeated} answers came twice after {self.ends} kills"] if self.repeated > most * IN_FLIGHT // 10 else []
        return found

    def __str__(self):
        return (f"{super().__str__()}, {self.lost_calls} of unknown outcome, {self.repeated} answered again, "
                f"{self.broken} broken lines, {self.alone} alone")


class Guest(Client):
    """A client of the shared hostler. It counts for itself: each has threads of its own."""

    padded = 0.005
    spared = 10

    def __init__(self, wire, chance, sabotage):
        self.answered = set()
        super().__init__(wire, SharedTold(), chance, sabotage)

    def read(self):
        with contextlib.suppress(OSError, ValueError), os.fdopen(os.dup(self.wire.output.fileno()), "rb") as stream:
            for text in stream:
                try:
                    message = json.loads(text)
                except ValueError:
                    self.told.broken += 1
                    continue
                if "method" not in message:
                    self.take(message)
        self.over = True

    def take(self, message):
        if message.get("id") in self.answered and self.code(message) == "OUTCOME_UNKNOWN":
            self.told.repeated += 1
            return
        self.answered.add(message.get("id"))
        super().take(message)

    @staticmethod
    def code(message):
        result = message.get("result") or {}
        return result["content"][0]["text"].split(":")[0] if result.get("isError") else None

    def judge(self, question, message):
        if self.code(message) == "OUTCOME_UNKNOWN":
            self.told.lost_calls += 1
            self.told.failed += 1
            return
        super().judge(question, message)


class House:
    """A person's folders, and the shared hostler in them."""

    def __init__(self, root):
        self.root, self.tools = root, root / "tools"
        for name in ("run", "config/hostler"):
            (root / name).mkdir(mode=0o700, parents=True)
        config_file(root / "config" / "hostler", PERSON)
        self.project = config_file(root, PROJECT)
        self.env = environment(XDG_RUNTIME_DIR=root / "run", XDG_STATE_HOME=root / "state", XDG_CONFIG_HOME=root / "config")
        self.seen = set()  # every process that was ever found in it

    def client(self):
        return Wire(self.tools, env=self.env, arguments=("--shared", "--config", str(self.project)), cwd=self.root)

    def status(self):
        done = subprocess.run([HOSTLER, "status", "--json"], env=self.env, cwd=self.root, capture_output=True, text=True, timeout=PATIENCE)
        try:
            status = json.loads(done.stdout)
        except ValueError:
            return None
        return status if "pid" in status else None

    def processes(self, pid):
        """The shared hostler's keeper and all below it, and who carries its mark."""
        with contextlib.suppress(OSError):
            keeper = parent(pid)
            self.seen |= {pid, keeper, *below(pid)} - {1, os.getpid()}
            return keeper
        return None

    def strike(self, pid, how):
        """Kills the shared hostler. Whether it lived."""
        keeper = self.processes(pid)
        self.seen |= set(marked(pid))
        struck = {"supervisor": [pid], "keeper": [keeper], "both": [keeper, pid]}[how]
        return bool(keeper and keeper != 1 and [one for one in struck if kill(one, signal.SIGKILL)])

    def without(self, wires, limit):
        """The clients that the shared hostler does not serve. One that was killed just now is being replaced."""
        until = time.monotonic() + limit
        while True:
            status = self.status() or {"sessions": [], "pid": 0}
            alone = {wire.process.pid for wire in wires} - {session["pid"] for session in status["sessions"]}
            if not alone or time.monotonic() > until:
                break
        if status["pid"]:
            self.processes(status["pid"])
            self.seen |= set(marked(status["pid"]))
        return sorted(alone)

    def left(self, limit):
        """Who lives some time after the last client has gone."""
        until = time.monotonic() + limit
        while (left := {pid for pid in self.seen if alive(pid)}) and time.monotonic() < until:
            time.sleep(0.02)
        if left:
            print(f"left are {names(left)}", file=sys.stderr)
        for pid in left:
            kill(pid, signal.SIGKILL)
        return len(left)

    def panics(self):
        logs = (self.root / "state" / "hostler").glob("shared-*.log")
        return [line for log in logs for line in log.read_text(errors="replace").splitlines() if "panicked" in line]


def blow(house, guests, told, chance, sabotage, seconds):
    """One round's wind."""
    began = time.monotonic()
    version, next_worker, next_kill, how = 0, began, began + chance.uniform(0.2, PAUSE), chance.choice(STRUCK)
    found = house.status()
    while time.monotonic() < began + seconds:
        for guest in guests:
            for _ in range(IN_FLIGHT - len(guest.open)):
                guest.call()
        roll = chance.random()
        if time.monotonic() > next_worker and found:
            workers = [pid for pid in {pid for guest in guests for pid in list(guest.pids)} if alive(pid) and pid in below(found["pid"])]
            if workers and sabotage != "no-kill":
                told.kills += kill(chance.choice(workers), signal.SIGKILL)
                next_worker = time.monotonic() + 0.3
        elif roll < 0.05:
            version += 1
            told.edits += 1
            write(house.tools, chance.randrange(TOOLS), version, sabotage == "wrong")
        elif roll < 0.2:
            chance.choice(guests).cancel()
        if time.monotonic() > next_kill and sabotage != "no-end" and (found := house.status()):
            told.ends += house.strike(found["pid"], how)
            next_kill, how = time.monotonic() + chance.uniform(PAUSE, 2 * PAUSE), chance.choice(STRUCK)
            found = None
        elif not found:
            found = house.status()
        time.sleep(0.005)


def one(house, chance, told, sabotage, seconds, patience):
    told.rounds += 1
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(house.client()) for _ in range(CLIENTS)]
        for wire in wires:
            wire.open()
        guests = [Guest(wire, chance, sabotage) for wire in wires]
        blow(house, guests, told, chance, sabotage, seconds)
        until = time.monotonic() + patience
        for guest in guests:
            told.lost += guest.drained(until)
            told.workers += len(guest.pids)
            told.add(guest.told)
        told.alone += len(house.without(wires, 10))
        for wire in wires:
            house.seen.add(wire.process.pid)
            leave(wire, chance.choice(LEAVES), told)
    told.survivors += house.left(10)
    told.wrong += house.panics()


def leave(wire, how, told):
    if how == "input":
        wire.end_input()
    else:
        wire.process.send_signal(signal.SIGTERM if how == "term" else signal.SIGKILL)
    try:
        wire.process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        told.wrong.append(f"a client's process did not end after {how}")


def storm(rounds, seed, sabotage=None, seconds=SECONDS, patience=PATIENCE, say=lambda told: None):
    """As many rounds; what they came to."""
    cleanups, told, chance = Cleanups(), SharedTold(), random.Random(seed)
    try:
        house = House(scratch(cleanups))
        for number in range(TOOLS):
            write(house.tools, number, 0, sabotage == "wrong")
        for _ in range(rounds):
            one(house, chance, told, sabotage, seconds, patience)
            say(told)
    finally:
        cleanups.run()
    return told


def race(rounds, clients=12, say=lambda text: None):
    """Clients start while the shared hostler is killed; what went wrong."""
    cleanups, faults, chance, kills = Cleanups(), [], random.Random(rounds), 0
    try:
        house = House(scratch(cleanups))
        write(house.tools, 0, 0)
        for number in range(rounds):
            with contextlib.ExitStack() as stack:
                wires = [stack.enter_context(house.client()) for _ in range(clients)]
                # Calls wait in the pipe while everybody looks for a hostler.
                opened = [threading.Thread(target=first_call, args=(wire, place, faults)) for place, wire in enumerate(wires)]
                for thread in opened:
                    thread.start()
                struck = 0
                until = time.monotonic() + 10
                while struck < 3 and time.monotonic() < until:
                    if found := house.status():
                        struck += house.strike(found["pid"], chance.choice(STRUCK))
                for thread in opened:
                    thread.join(PATIENCE)
                kills += struck
                alone = house.without(wires, 10)
                said = {wire.process.pid: said_so_far(wire) for wire in wires}
                faults += [f"round {number}: client {pid} is alone: {said[pid]}" for pid in alone]
                house.seen |= {wire.process.pid for wire in wires}
            faults += [f"round {number}: survivors"] if house.left(10) else []
            say(f"round {number + 1}, {kills} kills, {len(faults)} faults")
        faults += house.panics()
        faults += ["no kill landed"] if not kills else []
    finally:
        cleanups.run()
    return faults, kills


def first_call(wire, place, faults):
    try:
        wire.open()
        wire.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "t0_echo", "arguments": {"number": place}}}).encode() + b"\n")
        answer = wire.answer(1)
        code = Guest.code(answer)
        if code is None and answer["result"]["structuredContent"]["number"] != place:
            faults.append(f"{place} was answered {answer}")
        if code not in {None, "OUTCOME_UNKNOWN", *EXPECTED}:
            faults.append(f"{place} failed: {answer}")
    except (AssertionError, EOFError, OSError, ValueError, KeyError) as error:
        faults.append(f"{place}: {type(error).__name__} {error}")


def said_so_far(wire):
    """What a client's hostler wrote to its standard error."""
    os.set_blocking(wire.process.stderr.fileno(), False)
    return (wire.process.stderr.read() or b"").decode(errors="replace")


def main(words):
    kind, *words = words
    rounds, seed = (int(word) for word in (words + ["20", "1"][len(words):])[:2])
    say = (lambda told: print(f"\r{told}", end="", file=sys.stderr, flush=True)) if sys.stderr.isatty() else lambda told: None
    if kind == "--race":
        faults, kills = race(rounds, say=say)
        print(f"{rounds} rounds, {kills} kills, {len(faults)} faults")
    else:
        told = storm(rounds, seed, say=say)
        faults = told.faults()
        print(told)
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


__all__ = ["race", "storm"]
