"""Who belongs to a hostler: processes below it, and those that carry its mark."""

import os
from pathlib import Path

from harness import alive, children

MARK = b"HOSTLER_RUN="


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
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                found.append(child)
    return found


def names(pids):
    """Who they are, for people who read a failed test."""
    def name(pid):
        try:
            return f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()[:200]!r}"
        except OSError:
            return f"{pid} (gone)"

    return ", ".join(map(name, pids))


def kill(pid, number):
    """Signals a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


__all__ = ["below", "kill", "marked", "names", "zombies"]
