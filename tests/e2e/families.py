"""Who belongs to a hostler: processes below it, and those that carry its mark."""

import contextlib
import os
import signal
from pathlib import Path

from harness import TOOLS, alive, children, eventually, gone, listed_children, parent
from wire import Wire

MARK = b"HOSTLER_RUN="
KILLED = 2.0  # seconds until nothing is left when hostler itself is killed


def below(pid):
    """Every living descendant of a process."""
    found, waiting = [], [pid]
    while waiting:
        try:
            more = children(waiting.pop())
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += more
        waiting += more
    return found


def marked(supervisor):
    """Every living process that carries the mark of a run."""
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            variables = (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        mark = next((one for one in variables if one.startswith(MARK)), b"")
        if mark.split(b":")[2:3] == [b"%d" % supervisor] and alive(int(place.name)):
            found.append(int(place.name))
    return found


def zombies(pid):
    """Dead children that nobody reaped."""
    found = []
    for child in listed_children(pid):
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # reaped since it was listed
            continue
        if state == "Z":
            found.append(child)
    return found


def command(pid):
    """Its command line; nothing once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def names(pids):
    """Who they are, for people who read a failed test."""
    return ", ".join(f"{pid} {command(pid)[:200] or '(gone)'!r}" for pid in pids)


def kill(pid, number):
    """Signals a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def state(pid):
    """What a process does, in the kernel's letter."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stopped(pid):
    """Whether a process is stopped with all of its threads: only then the kernel takes it for stopped."""
    states = [place.read_text().rpartition(")")[2].split()[0] for place in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}


def kill_both(keeper, supervisor):
    """Kills hostler's two processes so that neither can clean up after the other."""
    os.kill(keeper, signal.SIGSTOP)
    eventually(lambda: stopped(keeper), "the keeper is stopped")
    os.kill(supervisor, signal.SIGKILL)
    eventually(gone(supervisor), "the supervisor is dead")
    os.kill(keeper, signal.SIGKILL)


class Family:
    """A hostler with a call under way, and everybody who belongs to it."""

    def __init__(self, hostler, number=1):
        self.keeper, self.supervisor = hostler.process.pid, hostler.supervisor
        self.tools = hostler.began(number, "families_found_and_stay")
        self.all = {self.supervisor, parent(self.tools[0]), *self.tools, *below(self.supervisor)}

    def lives(self):
        """Everybody has lived: a test that kills nobody proves nothing."""
        dead = [pid for pid in self.all if not alive(pid)]
        assert not dead and len(self.all) >= 7, f"supervisor, uv, worker and four more should live; dead: {dead} of {self.all}"
        carriers = set(marked(self.supervisor))
        assert set(self.tools) <= carriers, f"{self.tools} carry the mark; found {carriers}"
        return self

    def left(self):
        return [pid for pid in {*self.all, *marked(self.supervisor)} if alive(pid)]

    def is_gone(self, limit):
        try:
            eventually(lambda: not self.left(), "everybody is gone", limit)
        except AssertionError:
            raise AssertionError(f"left after {limit} s: {names(self.left())}") from None


@contextlib.contextmanager
def busy(**options):
    with Wire(TOOLS, **options) as hostler:
        hostler.open()
        family = Family(hostler).lives()
        try:
            yield hostler, family
        finally:
            for pid in family.left():  # a failed test leaves nothing either
                kill(pid, signal.SIGKILL)


def swept(hostler):
    """Waits until a hostler has looked for what others left; gives what it said till then."""
    said = ""
    while "searched for processes left behind by killed hostlers" not in said:
        line = hostler.process.stderr.readline().decode()
        assert line, f"it ended before it looked: {said}"
        said += line
    return said


__all__ = ["Family", "KILLED", "below", "busy", "kill", "kill_both", "marked", "names", "state", "stopped", "swept", "zombies"]
