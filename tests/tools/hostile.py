# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
"""Tools that do what tools must not do. Every one of them is called by tests/e2e, and after each of them `well` is."""

import datetime
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

import hostler


def well(number: int = 1) -> int:
    """Answer in peace."""
    return number


def raises(text: str = "the boiler is cold") -> None:
    """Raise an exception."""
    raise ValueError(text)


def exits(status: int = 3) -> None:
    """Leave without a word."""
    os._exit(status)


def abandons(file: str) -> None:
    """Start a child, tell its number, and leave without it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(file, "w") as told:
        told.write(str(child.pid))
    os._exit(3)


def hangs_up() -> None:
    """Close whatever is open, and live on."""
    os.closerange(3, 256)
    time.sleep(600)


def asks_to_exit(status: int = 3) -> None:
    """Leave politely."""
    sys.exit(status)


def segfaults() -> None:
    """Die as C code dies."""
    os.kill(os.getpid(), signal.SIGSEGV)


def waits(seconds: float = 600) -> str:
    """Say that it runs, then sleep."""
    print(f"began {os.getpid()}")
    hostler.progress(1, message=f"began {os.getpid()}")
    time.sleep(seconds)
    return "slept"


def flees(file: str) -> None:
    """Leave the group of its worker, hear no signal that may be unheard, and never end."""
    os.setsid()
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with open(file, "w") as told:
        told.write(str(os.getpid()))
    while True:
        pass


def loops() -> None:
    """Never end, in Python."""
    while True:
        pass


def loops_stubbornly() -> None:
    """Never end, and catch whatever is thrown at it."""
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue


def loops_in_c() -> bool:
    """Never end, in C that looks at no signals."""
    hostler.progress(1, message=f"began {os.getpid()}")
    return all(itertools.repeat(True))


def matches() -> bool:
    """Try an expression that takes longer than the universe, without letting go of the interpreter."""
    return re.match(r"(a+)+$", "a" * 64 + "b") is not None


def prints(text: str = "hello", lines: int = 1) -> str:
    """Print."""
    for _ in range(lines):
        print(text)
    return "printed"


def writes(text: str = "raw", end: str = "\n") -> str:
    """Write to descriptor 1, past Python."""
    os.write(1, (text + end).encode())
    return "written"


def runs_child(text: str = "child") -> str:
    """Let a child write to the same place."""
    subprocess.run([sys.executable, "-c", f"import sys; print({text!r}); print({text!r} * 2, file=sys.stderr)"], check=True)
    return "waited for"


def reads() -> str:
    """Read the standard input, where the protocol once was."""
    try:
        return input()
    except EOFError:
        return "nothing there"


def asks() -> str:
    """Ask a person, and not be ready for there being none."""
    return input("your name? ")


def roars(kilobytes: int = 200) -> int:
    """Write much to standard error."""
    line = "e" * 1023 + "\n"
    for _ in range(kilobytes):
        sys.stderr.write(line)
    return kilobytes


def floods(kilobytes: int = 200) -> int:
    """Write much to descriptor 2, past Python: more than a pipe holds."""
    line = b"f" * 1023 + b"\n"
    for _ in range(kilobytes):
        os.write(2, line)
    return kilobytes


def not_a_number() -> Any:
    """Return what is no JSON."""
    return {"rows": [1.0, float("nan")]}


def a_range() -> Any:
    """Return what is no JSON."""
    return {"items": [0, {"tags": range(2)}]}


def an_object() -> Any:
    """Return what is no JSON."""
    return {"thing": object()}


def itself() -> Any:
    """Return what has no end."""
    loop: list = []
    loop.append(loop)
    return loop


def on(day: datetime.date) -> str:
    """Take what a schema can only call a text."""
    return day.strftime("%A")


def forgotten() -> None:
    """Be there for whoever reads the file, and not for whoever runs it."""


globals().pop("forgotten")


def wants(count: int, names: list[str], deep: dict[str, int]) -> list:
    """Take arguments of several kinds."""
    return [count, names, deep]
