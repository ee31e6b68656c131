# /// script
# requires-python = ">=3.9"
# dependencies = []
#
# [tool.hostler]
# concurrency = 16
# ///
"""Tools that are hard on those beside them in one worker."""

import _thread
import asyncio
import contextvars
import json
import os
import re
import sys
import threading
import time

import hostler


def _begin() -> None:
    hostler.progress(1, message=f"began {os.getpid()}")


def wait_at(gate: str) -> int:
    """Say that it runs, then wait until a file is there."""
    _begin()
    while not os.path.exists(gate):
        time.sleep(0.002)
    return os.getpid()


async def wait_at_later(gate: str) -> int:
    """The same, on the event loop."""
    _begin()
    while not os.path.exists(gate):
        await asyncio.sleep(0.002)
    return os.getpid()


def works_until(gate: str) -> int:
    """Run Python until a file is there."""
    _begin()
    while not os.path.exists(gate):
        for _ in range(500):  # and no system call in between, which would hand the interpreter to nobody for long
            json.loads(json.dumps({"a": [str(number) for number in range(50)]}))
    return os.getpid()


async def exits_in_a_task() -> None:
    """Ask to exit where asyncio hands it to the loop."""

    async def leaves():
        sys.exit(2)

    await asyncio.gather(leaves())


async def exits_afterwards() -> str:
    """Leave a task behind that asks to exit."""

    async def leaves():
        sys.exit(0)

    asyncio.get_running_loop().create_task(leaves())
    return "left"


async def stops_the_loop() -> str:
    """Stop what all async calls run on."""
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return "stopped"


def interrupts() -> str:
    """What Ctrl-C would do, where there is no terminal."""
    _thread.interrupt_main()
    return "interrupted"


def speaks_on() -> str:
    """Leave a thread behind that prints as this call while its last words are gathered."""
    context, go = contextvars.copy_context(), threading.Event()

    def run():
        go.wait()
        for _ in range(3):
            print("still", file=sys.stderr)

    sys.stdout.buffer.write(b"\xc3")
    threading.Thread(target=context.run, args=(run,)).start()
    go.set()
    return "spoke"


def mourns(lines: int) -> str:
    """Print, and at each step of that print once more: a destructor may run between any two, also those of whoever sends
    what was printed."""
    left = 0

    def each_step(frame, event, arg):
        nonlocal left
        if left and frame.f_globals.get("__name__") == "hostler_worker.wire":
            left -= 1
            print("gone", file=sys.stderr)
        return each_step

    sys.settrace(each_step)
    try:
        for line in range(lines):
            left = 30
            print(f"line {line}")
    finally:
        sys.settrace(None)
    return "mourned"


async def mourns_later(lines: int) -> str:
    """The same, on the event loop."""
    return mourns(lines)


def matches() -> bool:
    """Hold the interpreter in C."""
    _begin()
    return re.match(r"(a+)+$", "a" * 64 + "b") is not None


async def blocks() -> None:
    """Hold the event loop in a system call."""
    _begin()
    time.sleep(600)


async def waits() -> None:
    """Wait for what never comes."""
    _begin()
    await asyncio.sleep(600)


def sleeps() -> None:
    """Be stuck in a system call."""
    _begin()
    time.sleep(600)


async def in_a_thread(gate: str) -> str:
    """Wait in a thread that nobody can stop."""
    _begin()
    await asyncio.to_thread(wait_at, gate)
    return "waited"


def speaks_for_nobody(gate: str) -> str:
    """Leave a thread behind that knows of no call, and prints once a file is there."""

    def run():
        wait_at(gate)
        print("whose is it?")
        hostler.log("and this?")
        open(gate + ".said", "w").close()

    threading.Thread(target=run).start()
    return "left"
