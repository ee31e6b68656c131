"""The storm over the journal: two hostlers of one person make calls while supervisors, keepers, whole families and workers are killed.
In the end another one waits for every call that was ever acknowledged: none may be lost or left open, none whose effects are `once`
may have been made twice, a key makes one call, and nobody was told something else than what is remembered.

By hand: `scripts/storm --journal [STRIKES] [SEED]`. With `--postgres` the store is a PostgreSQL server, which is killed as well. `--sabotage written-before-said | locks-hold | keys-are-taken-once` breaks one promise of the
journal in hostler itself, which the storm must see.
"""

import contextlib
import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from families import below, kill
from harness import HOSTLER, alive, environment, eventually, gone, scratch, write_tool
from storm import Cleanups

SEATS = 2
PAUSE = (0.3, 1.6)  # seconds between two strikes
RATE = 40  # calls a second
KEYS = 60
AT_ONCE = 500  # calls that are waited for
PATIENCE = 60  # seconds without the end of any call until those that have not ended are lost
STRIKES = ("supervisor", "keeper", "group", "worker", "end")
# What may be said of a call that has had an effect.
MAY_HAVE_RUN = {"OUTCOME_UNKNOWN", "PROCESS_KILLED", "TOOL_CRASHED", "CANCELLED", "SHUTTING_DOWN"}
# What may be said at all. A worker that is struck while it starts fails the calls that wait for it: none of them was made.
MAY_FAIL = MAY_HAVE_RUN | {"BUSY", "STARTUP_FAILED"}
GIVES_BACK = {"CANCELLED", "BUSY", "RESOURCE_EXHAUSTED"}

TOOL = '''# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# effects = "{effects}"
# journal = "{level}"
# idle_timeout = "2s"
# max_workers = 4
# ///
import os, time

def note(number: int, path: str, seconds: float = 0) -> int:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b"%d\\n" % number)
    os.close(file)
    time.sleep(seconds)
    return number
'''
KINDS = {"once": ("once", "kept"), "pure": ("pure", "kept"), "safe": ("once", "synced")}


@dataclass
class Asked:
    """A call that was asked for."""

    kind: str
    number: int
    key: str | None = None
    method: str = "calls.start"


@dataclass
class Told:
    """What a storm came to."""

    asked: int = 0
    ended: int = 0
    workers: int = 0  # that were killed
    hostlers: int = 0  # that were killed
    servers: int = 0  # that were killed
    states: Counter = field(default_factory=Counter)
    faults_of: dict = field(default_factory=dict)

    def fault(self, kind, what):
        self.faults_of.setdefault(kind, []).append(what)

    def faults(self):
        found = [f"{len(all)} {kind}, the first: {all[0]}" for kind, all in self.faults_of.items()]
        found += ["no worker was killed"] if not self.workers else []
        found += ["no hostler was killed"] if not self.hostlers else []
        return found

    def __str__(self):
        states = ", ".join(f"{count} {state}" for state, count in self.states.most_common())
        return (f"{self.asked} calls asked for, {self.ended} acknowledged and waited for ({states}), {self.hostlers} hostlers, "
                f"{self.workers} workers and {self.servers} servers killed, " + ", ".join(f"{len(self.faults_of.get(kind, []))} {kind}"
                                                               for kind in ("lost", "made twice", "left open", "told otherwise")))


class Seat:
    """A place where a hostler serves, with a thread that reads what it answers."""

    def __init__(self, world):
        self.world, self.open, self.next, self.lock = world, {}, 1, threading.Lock()
        self.process = subprocess.Popen([HOSTLER, "serve", "--rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, cwd=world.root, env=world.env, start_new_session=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError):
            for text in self.process.stdout:
                try:
                    message = json.loads(text)
                except ValueError:
                    continue  # cut off by a kill
                if "method" not in message:
                    with self.lock:
                        asked = self.open.pop(message.get("id"), None)
                    if asked:
                        self.world.heard(asked, message)

    def send(self, method, params, asked):
        with self.lock:
            id, self.next = self.next, self.next + 1
            self.open[id] = asked
        data = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(data.encode() + b"\n")
            self.process.stdin.flush()

    def below(self):
        """The supervisor and whom it started."""
        with contextlib.suppress(OSError):
            return below(self.process.pid)
        return []

    def strike(self, how, chance):
        """Whether it hit somebody who lived."""
        family = self.below()
        if how == "worker":
            return len(family) > 1 and kill(chance.choice(family[1:]), signal.SIGKILL)
        if how == "group" or not family:
            os.killpg(self.process.pid, signal.SIGKILL)
        elif how == "end":
            self.process.send_signal(signal.SIGTERM)
        else:
            kill(family[0] if how == "supervisor" else self.process.pid, signal.SIGKILL)
        self.close()
        for pid in family:
            eventually(gone(pid), f"{pid} is gone after {how}", limit=10)
        return True

    def close(self):
        self.process.wait(20)
        self.reader.join(5)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()


class World:
    """A person's folders, what was asked for in them, and what was said of it."""

    def __init__(self, root, chance, sabotage, patience, server):
        self.root, self.chance, self.told, self.patience, self.server = root, chance, Told(), patience, server
        self.env = environment(XDG_STATE_HOME=str(root / "state"), **({"HOSTLER_SABOTAGE": sabotage} if sabotage else {}))
        self.strikes, self.may_fail = STRIKES, MAY_FAIL
        if server:
            settings = root / "config/hostler"
            settings.mkdir(parents=True)
            (settings / "hostler.toml").write_text(f'[journal]\nstore = "{server.url}"\n')
            self.env |= {"XDG_CONFIG_HOME": str(root / "config")}
            self.strikes, self.may_fail = (*STRIKES, "server"), MAY_FAIL | {"RESOURCE_EXHAUSTED"}
        self.acknowledged, self.outcomes, self.of_key = {}, {}, {}
        self.number = 0
        for name, (effects, level) in KINDS.items():
            write_tool(root / "tools", name, TOOL.format(effects=effects, level=level), header="")

    def heard(self, asked, message):
        """An answer. Runs on the threads of seats."""
        result = message.get("result")
        if result is None:
            if message["error"]["data"]["code"] not in self.may_fail:
                self.told.fault("refused", message)
        elif asked.method == "calls.start":
            id = result["call"]
            self.acknowledged[id] = asked
            if asked.key:
                self.of_key.setdefault(asked.key, set()).add(id)
        else:
            self.acknowledged.setdefault(result["call_id"], asked)
            self.outcomes[result["call_id"]] = result

    def ask(self, seat):
        roll, self.told.asked = self.chance.random(), self.told.asked + 1
        if roll < 0.05 and self.acknowledged:
            seat.send("calls.cancel", {"call": self.chance.choice(list(self.acknowledged))}, None)
            return
        kind, key = self.chance.choice(list(KINDS)), None
        if roll < 0.25:
            which = self.chance.randrange(KEYS)
            key, number, kind = f"key-{which}", -which - 1, list(KINDS)[which % len(KINDS)]
        else:
            self.number += 1
            number = self.number
        seconds = 0 if key else self.chance.choice((0, 0, 0.05, 0.3, 1.5))
        params = {"tool": f"{kind}.note", "arguments": {"number": number, "path": str(self.root / kind), "seconds": seconds}}
        if roll > 0.8:
            seat.send("calls.run", params, Asked(kind, number, method="calls.run"))
        else:
            seat.send("calls.start", params | {"background": True} | ({"key": key} if key else {}), Asked(kind, number, key))

    def blow(self, seats, strikes):
        for number in range(strikes):
            end = time.monotonic() + self.chance.uniform(*PAUSE)
            while time.monotonic() < end:
                self.ask(self.chance.choice(seats))
                time.sleep(1 / RATE)
            place, how = self.chance.randrange(len(seats)), self.strikes[number % len(self.strikes)]
            if how == "server":
                self.server.kill()
                self.server.start()
                self.told.servers += 1
                continue
            if seats[place].strike(how, self.chance):
                self.told.workers += how == "worker"
                self.told.hostlers += how not in ("worker", "end")
            if how != "worker":
                seats[place] = Seat(self)

    def settle(self, seats):
        """Another hostler waits for everything that was acknowledged."""
        for seat in seats:
            seat.strike("group", self.chance)
        last, open = Seat(self), sorted(set(self.acknowledged) - set(self.outcomes))
        asked = iter(open)
        ended, limit = 0, time.monotonic() + self.patience
        while time.monotonic() < limit and alive(last.process.pid):
            # A connection has 1,024 open requests at most.
            for id in itertools.islice(asked, AT_ONCE - len(last.open)):
                last.send("calls.wait", {"call": id}, Asked("", 0, method="calls.wait"))
            if not last.open:
                break
            time.sleep(0.1)
            if len(self.outcomes) > ended:
                ended, limit = len(self.outcomes), time.monotonic() + self.patience
        for id in set(open) - set(self.outcomes):
            self.told.fault("lost", id)
        last.strike("end", self.chance)

    def judge(self):
        made = {kind: Counter(int(text) for text in self.lines(kind)) for kind in KINDS}
        for kind, (effects, _) in KINDS.items():
            for number, count in made[kind].items():
                if effects == "once" and count > 1:
                    self.told.fault("made twice", f"{kind} {number}: {count} times")
        rows = self.rows()
        for id, outcome in self.outcomes.items():
            self.judge_one(id, outcome, rows.get(id), made)
        for key, ids in self.of_key.items():
            if len([id for id in ids if not self.gave_back(id)]) > 1:
                self.told.fault("keys with two calls", f"{key}: {ids}")
        for id, (state, *_) in rows.items():
            if state in ("created", "running", "orphaned", "stale"):
                self.told.fault("left open", f"{id} {state}")

    def gave_back(self, id):
        """Whether a call may have given its key back: it may have ended before it began."""
        outcome = self.outcomes.get(id)
        return outcome and not outcome["success"] and outcome["error"]["code"] in GIVES_BACK

    def judge_one(self, id, outcome, row, made):
        asked, self.told.ended = self.acknowledged[id], self.told.ended + 1
        code = None if outcome["success"] else outcome["error"]["code"]
        self.told.states[code or "complete"] += 1
        count = made[asked.kind][asked.number]
        if code is None and (outcome["result"] != asked.number or not count):
            self.told.fault("told otherwise", f"{id} answered {outcome['result']}, made {count} times")
        elif code and (code not in self.may_fail or code == "STARTUP_FAILED" and "SIGKILL" not in outcome["error"]["message"]):
            self.told.fault("failed", outcome)
        elif code and code not in MAY_HAVE_RUN and count and not (asked.key and self.gave_back(id)):  # else the key's next call made it
            self.told.fault("told otherwise", f"{id} failed with {code}, but was made")
        if row is None or (row[0] == "complete") != (code is None):
            self.told.fault("told otherwise", f"{id} ended with {code or 'a result'}, remembered is {row}")

    def lines(self, kind):
        path = self.root / kind
        return path.read_text().splitlines() if path.exists() else []

    def rows(self):
        sql = "SELECT id, state, code, tool_name FROM {}tool_calls"
        if self.server:
            return {id: rest for id, *rest in self.server.sql(sql.format("hostler."))}
        store = sqlite3.connect(f"file:{self.root}/state/hostler/journal/calls.db?mode=ro", uri=True)
        with contextlib.closing(store):
            return {id: rest for id, *rest in store.execute(sql.format(""))}


def storm(strikes, seed, sabotage=None, patience=PATIENCE, server=None):
    """As many strikes; what they came to."""
    cleanups = Cleanups()
    world = World(scratch(cleanups), random.Random(seed), sabotage, patience, server)
    seats = [Seat(world) for _ in range(SEATS)]
    try:
        world.blow(seats, strikes)
        world.settle(seats)
        world.judge()
    finally:
        for seat in seats:
            with contextlib.suppress(OSError):
                os.killpg(seat.process.pid, signal.SIGKILL)
        cleanups.run()
    return world.told


def main(words):
    words = [word for word in words if word != "--journal"]
    sabotage = None
    if "--sabotage" in words:
        place = words.index("--sabotage")
        sabotage = words[place + 1]
        words = words[:place] + words[place + 2:]
    server = None
    if "--postgres" in words:
        words.remove("--postgres")
        sys.path.append(str(Path(__file__).parents[1] / "world"))
        from server import Server  # of other tests
        server = Server()
    strikes, seed = (int(word) for word in (words + ["30", "1"][len(words):])[:2])
    try:
        told = storm(strikes, seed, sabotage, server=server)
    finally:
        if server:
            server.remove()
    print(told)
    for fault in told.faults():
        print(f"FAILED: {fault}")
    return 1 if told.faults() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
