# /// script
# requires-python = ">=3.9"
# dependencies = []
#
# [tool.hostler]
# secrets = ["E2E_SECRET"]
# ///
"""What a worker can see of the world."""

import os
import sys
from pathlib import Path

import hostler


def environment() -> dict:
    """Its variables."""
    return dict(os.environ)


def processes() -> list[dict]:
    """Command line and variables of itself and of its parent, as the system shows them to anybody."""
    def variables(place):
        try:
            return (place / "environ").read_bytes().decode("utf-8", "replace")
        except PermissionError:  # hostler's own
            return ""

    seen = []
    for pid in (os.getpid(), os.getppid()):
        place = Path(f"/proc/{pid}")
        seen.append({
            "pid": pid,
            "cmdline": (place / "cmdline").read_bytes().decode("utf-8", "replace"),
            "environ": variables(place),
        })
    return seen


def secret_length() -> int:
    """How long the secret is."""
    return len(hostler.secret("E2E_SECRET"))


def undeclared() -> str:
    """A secret that the header does not name."""
    return hostler.secret("E2E_OTHER")


def config() -> dict:
    """Its settings."""
    return dict(hostler.config)


def path() -> list[str]:
    """Where modules are looked for."""
    return sys.path
