# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
"""Tools that wait until a test lets them go on, and tools that leave traces."""

import asyncio
import os
import subprocess
import sys
import time

import hostler


def echo(number: int) -> dict:
    """Give back the number, and who gave it."""
    return {"number": number, "pid": os.getpid()}


def printing_echo(number: int) -> int:
    """Give back the number, and print it."""
    print(f"number {number}")
    return number


def wait_at(gate: str) -> dict:
    """Say that it runs, then wait until somebody opens the named pipe for writing."""
    hostler.progress(1, message=f"began {os.getpid()}")
    with open(gate, "rb") as pipe:
        pipe.read()
    return {"pid": os.getpid()}


def leave_trace(path: str) -> str:
    """Make a file: proof that this ran."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("ran")
    return path


def nap(seconds: float) -> str:
    """Say that it runs, then sleep."""
    hostler.progress(1, message=f"began {os.getpid()}")
    time.sleep(seconds)
    return "slept"


async def nap_async(seconds: float) -> str:
    """The same, in an event loop."""
    hostler.progress(1, message=f"began {os.getpid()}")
    await asyncio.sleep(seconds)
    return "slept"


def with_child(seconds: float = 600) -> str:
    """Start a child that sleeps, say both their numbers, then sleep as well."""
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    hostler.progress(1, message=f"began {os.getpid()} {child.pid}")
    time.sleep(seconds)
    return "slept"


def deaf_to_term(seconds: float = 600) -> str:
    """Ignore every polite request to end."""
    import signal

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    hostler.progress(1, message=f"began {os.getpid()}")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            time.sleep(seconds)
        except BaseException:
            continue
    return "slept"
