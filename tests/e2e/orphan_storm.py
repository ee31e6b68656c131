"""A storm: hostler with four workers that ignore TERM, INT and HUP, each with children and a daemon, killed at random moments.

By hand: `scripts/orphan-storm [ROUNDS] [SEED]`. Fails when anybody survives, and when there was nobody to kill.
"""

import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from families import below, kill, marked, names
from harness import TOOLS, alive, scratch
from wire import Wire, call

WORKERS = 4
LIMIT = 2.0  # seconds until nobody is left
VICTIMS = ("supervisor", "keeper", "group")


@dataclass
class Told:
    """What a storm came to."""

    rounds: int = 0
    landed: int = 0  # kills of somebody who lived
    lived: int = 0  # processes that lived below when the kill came
    survivors: int = 0
    slowest: float = 0.0  # seconds until nobody was left

    def __str__(self):
        return (f"{self.rounds} rounds, {self.landed} kills landed, {self.lived} processes lived then, "
                f"{self.survivors} survivors, the slowest round clean after {self.slowest * 1000:.0f} ms")


def write_tools(folder):
    """Four tool files, and so four workers."""
    text = (TOOLS / "families.py").read_text(encoding="utf-8")
    for number in range(WORKERS):
        (folder / f"family{number}.py").write_text(text, encoding="utf-8")


def one(folder, chance, told):
    """One round: start, wait for a random moment, kill, look."""
    victim = VICTIMS[told.rounds % len(VICTIMS)]
    told.rounds += 1
    with Wire(folder) as hostler:
        hostler.open()
        keeper, supervisor = hostler.process.pid, hostler.supervisor
        for number in range(WORKERS):
            hostler.send(call(number + 1, f"family{number}_found_and_stay", number + 1))
        if chance.random() < 0.5:  # all of them run; otherwise any moment of their start
            running = 0
            while running < WORKERS:
                running += ((hostler.read().get("params") or {}).get("message") or "").startswith("began ")
        time.sleep(chance.random() * 0.4)
        members = {supervisor, *below(supervisor), *marked(supervisor)}
        told.lived += sum(map(alive, members)) - 1
        began = time.monotonic()
        if victim == "group":
            os.killpg(keeper, signal.SIGKILL)
            told.landed += 1
        else:
            told.landed += kill(supervisor if victim == "supervisor" else keeper, signal.SIGKILL)
        left = []
        while time.monotonic() - began < LIMIT:
            left = [pid for pid in {*members, *marked(supervisor)} if alive(pid)]
            if not left:
                break
        told.slowest = max(told.slowest, time.monotonic() - began)
        told.survivors += len(left)
        if left:
            print(f"round {told.rounds}, {victim} killed: left are {names(left)}", file=sys.stderr)
            for pid in left:
                kill(pid, signal.SIGKILL)


def storm(rounds, seed, say=lambda told: None):
    """As many rounds; what they came to."""
    class Cleanups(list):
        def addCleanup(self, *what, **how):
            self.append((what, how))

    cleanups, told, chance = Cleanups(), Told(), random.Random(seed)
    folder = scratch(cleanups)
    try:
        write_tools(folder)
        for _ in range(rounds):
            one(Path(folder), chance, told)
            say(told)
    finally:
        for (what, *words), how in cleanups:
            what(*words, **how)
    return told


def main(words):
    rounds, seed = (int(word) for word in (words + ["40", "1"][len(words):])[:2])
    told = storm(rounds, seed, say=lambda told: print(f"\r{told}", end="", file=sys.stderr, flush=True))
    print(file=sys.stderr)
    print(told)
    return 0 if told.survivors == 0 and told.landed == rounds and told.lived > rounds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
