# /// script
# requires-python = ">=3.9"
# dependencies = []
#
# [tool.hostler]
# concurrency = 16
# secrets = ["E2E_SECRET"]
# ///
"""Tools that run side by side in one worker."""

import asyncio
import os
import subprocess
import sys
import threading
import time

import hostler

print("imported")


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


def speak(mark: str) -> list:
    """Say a mark in every way there is, in pieces, while others speak."""
    for piece in ("<", mark, ">"):
        sys.stdout.write(piece)
        time.sleep(0)
    hostler.progress(1, message=mark)
    hostler.log(mark)
    sys.stderr.write(f"[{mark}]\n")
    print()
    return [mark, len(hostler.secret("E2E_SECRET")), hostler.config["word"]]


async def speak_later(mark: str) -> list:
    """The same, on the event loop."""
    for piece in ("<", mark, ">"):
        sys.stdout.write(piece)
        await asyncio.sleep(0)
    hostler.progress(1, message=mark)
    hostler.log(mark)
    sys.stderr.write(f"[{mark}]\n")
    print()
    return [mark, len(hostler.secret("E2E_SECRET")), hostler.config["word"]]


def add(a: int, b: int) -> int:
    """Hardly anything."""
    return a + b


async def add_later(a: int, b: int) -> int:
    """The same, on the event loop."""
    return a + b


def fails(mark: str) -> None:
    """Raise."""
    time.sleep(0)
    raise ValueError(mark)


async def fails_later(mark: str) -> None:
    """The same, on the event loop."""
    await asyncio.sleep(0)
    raise ValueError(mark)


def sleeps() -> None:
    """Be stuck in a system call."""
    _begin()
    time.sleep(600)


async def sleeps_later() -> None:
    """Wait for what never comes."""
    _begin()
    await asyncio.sleep(600)


def loops() -> None:
    """Never end, in Python."""
    _begin()
    while True:
        pass


def dies() -> None:
    """End the process."""
    _begin()
    os._exit(3)


def whispers() -> str:
    """Write past Python."""
    subprocess.run(["sh", "-c", "echo from a child"], check=True)
    return "done"


def threads() -> int:
    """How many threads there are for calls."""
    return sum(thread.name.startswith("hostler-") for thread in threading.enumerate())
