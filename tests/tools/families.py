# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
"""Tools that found families: what they start does all it can to outlive them."""

import os
import signal
import subprocess
import sys
import time

import hostler

DEAF = "import signal, time\nfor n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\n"
SLEEP = "time.sleep(600)"


def _child(**how):
    """A child that hears no polite signal."""
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", DEAF + SLEEP], **how).pid


def _daemon():
    """A grandchild in a session of its own, whose parent is gone: all that a daemon does to be nobody's."""
    read, write = os.pipe()
    program = (
        DEAF + "import os\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        f"os.write({write}, b'%d' % os.getpid())\nos.close({write})\n" + SLEEP
    )
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([sys.executable, "-I", "-S", "-c", program], pass_fds=(write,), check=True, **quiet)
    os.close(write)
    with os.fdopen(read) as told:
        return int(told.read())


def _found():
    """A child in the group, one in a session of its own, one that holds the pipes, a daemon."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return [_child(**quiet), _child(start_new_session=True, **quiet), _child(start_new_session=True), _daemon()]


def _grow_deaf():
    """Hear nothing that can be left unheard, also what hostler interrupts with. Children inherit it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1))


def found() -> list[int]:
    """Found a family and answer: who they are."""
    return [os.getpid(), *_found()]


def found_and_stay(seconds: float = 600) -> str:
    """Found a family, say who they are, hear no polite request to end, and sleep."""
    _grow_deaf()
    hostler.progress(1, message=" ".join(map(str, ["began", os.getpid(), *_found()])))
    time.sleep(seconds)
    return "slept"


def chains(count: int, seconds: float, folder: str) -> int:
    """Start chains of processes of which each starts the next and ends, in a session of its own, until the time is over.
    Each says in a file of its chain that it is there."""
    link = (
        "import os, sys, time\n"
        f"end = time.monotonic() + {seconds}\n"
        "while time.monotonic() < end:\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
        "    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)\n"
        "    os.write(file, b'%10d' % os.getpid())\n"
        "    os.close(file)\n"
    )
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for number in range(count):
        subprocess.Popen([sys.executable, "-I", "-S", "-c", link, os.path.join(folder, str(number))], **quiet)
    return os.getpid()


def unmarked() -> list[int]:
    """Start a child that inherits no variable, in a session of its own."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return [os.getpid(), _child(env={}, start_new_session=True, **quiet)]
