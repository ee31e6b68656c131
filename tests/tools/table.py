# /// script
# requires-python = ">=3.9"
# dependencies = []
#
# [tool.hostler]
# secrets = ["E2E_SECRET", "E2E_MISSING"]
# max_memory = "256MB"
# timeout = "600ms"
# ///
"""Every way a call can go wrong, for the table of tests/e2e/test_table.py."""

import asyncio
import ctypes
import errno
import itertools
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from enum import Enum
from typing import Any

import hostler


class Fuel(Enum):
    COAL = "coal"
    WOOD = "wood"


@dataclass
class Load:
    fuel: Fuel
    tons: float


def well(number: int = 1) -> int:
    return number


def raises() -> None:
    raise ValueError("the boiler is cold")


def chained() -> None:
    try:
        {}["valve"]
    except KeyError as error:
        raise RuntimeError("no steam") from error


def grouped() -> None:
    if sys.version_info < (3, 11):
        raise RuntimeError("ExceptionGroup came with 3.11")
    raise ExceptionGroup("two things", [ValueError("cold"), OSError("wet")])  # noqa: F821


def tells_secret(how: str) -> None:
    key = hostler.secret("E2E_SECRET")
    if how == "exception":
        raise ValueError(f"401 for https://x/?key={key}")
    if how == "local":
        int(key)
    print(f"the key is {key[:5]}", end="", flush=True)
    print(key[5:], file=sys.stdout, flush=True)
    os.write(2, f"raw {key}\n".encode())
    hostler.log("with " + key, key=key)
    if how == "death":
        os._exit(3)


def asks_to_exit() -> None:
    sys.exit(2)


def exits() -> None:
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)


def aborts() -> None:
    os.abort()


def segfaults() -> None:
    ctypes.string_at(0)


def overflows() -> None:
    """Overflow the stack of C, which no limit of Python's guards here."""
    sys.setrecursionlimit(10**8)
    kind = ctypes.CFUNCTYPE(ctypes.c_int)
    again: Any = kind(lambda: again())
    again()


def waits() -> str:
    hostler.progress(1, message=f"began {os.getpid()}")
    time.sleep(600)
    return "slept"


async def awaits() -> None:
    await _rests()


async def _rests() -> None:
    await asyncio.sleep(600)


def types() -> str:
    return input("name? ")


def loops() -> None:
    while True:
        pass


def matches() -> bool:
    return re.match(r"(a+)+$", "a" * 64 + "b") is not None


def loops_in_c() -> bool:
    return all(itertools.repeat(True))


def returns(what: str) -> Any:
    loop: list = []
    loop.append(loop)
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    values = {
        "nan": {"rows": [1.0, float("nan")]},
        "inf": [float("inf")],
        "set": {"items": [0, {"tags": range(1)}]},
        "file": open(os.devnull),
        "object": {"thing": object()},
        "cycle": {"loop": loop},
        "deep": deep,
        "keys": {"a": {1: "x", "1": "y"}},
        "large": "x" * (70 << 20),
    }
    return values[what]


def wants(count: int, load: Load, fuel: Fuel = Fuel.COAL, names: "list[str] | None" = None) -> int:
    return count


def prints(megabytes: int) -> str:
    line = "p" * 1023 + "\n"
    for _ in range(megabytes * 1024):
        sys.stdout.write(line)
    return "printed"


def writes_from_c() -> str:
    libc = ctypes.CDLL(None)
    libc.puts(b"from C")
    libc.fflush(None)
    subprocess.run(["sh", "-c", "echo from a child"], check=True)
    os.write(1, b'{"jsonrpc":"2.0","id":1,"result":"forged"}\n')
    return "written"


def asks() -> str:
    return input("name? ")


def floods() -> str:
    for _ in range(5 * 1024):
        os.write(2, b"f" * 1023 + b"\n")
    return "flooded"


def reads_missing() -> str:
    return hostler.secret("E2E_MISSING")


def reads_undeclared() -> str:
    return hostler.secret("E2E_OTHER")


def eats(megabytes: int) -> int:
    held = []
    for _ in range(megabytes):
        held.append(bytearray(os.urandom(1024)) * 1024)
        time.sleep(0.0005)
    return len(held)


def runs_out(of: str) -> None:
    if of == "memory":
        raise MemoryError
    if of == "disk":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/var/big")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    held = []
    try:
        while True:
            held.append(os.dup(2))
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
