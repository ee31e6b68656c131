# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
"""A ledger that serves itself: a file as they were written before there was a hostler, with a loop of its own."""

from __future__ import annotations

import json
import os
import sys
import traceback

pack = "ledger"
__all__ = ["book", "fail", "given"]

_entries: list[int] = []
_served_by = "an importer"
_config: dict = {}
_secrets: dict = {}


def book(amount: int = 1) -> dict:
    """Enter an amount.

    Args:
        amount: How much.
    """
    _entries.append(amount)
    return {"total": sum(_entries), "pid": os.getpid(), "served_by": _served_by, "file": __file__}


def fail(text: str) -> None:
    """Raise.

    Args:
        text: With these words.
    """
    raise ValueError(text)


def given() -> dict:
    """Show what came with the call."""
    return {"config": _config, "secrets": sorted(_secrets)}


def _serve() -> None:
    global _served_by, _config, _secrets
    _served_by = "itself"
    functions = {name: globals()[name] for name in __all__}
    for line in sys.stdin:
        request = json.loads(line)
        _config, _secrets = request.get("config") or {}, request.get("secrets") or {}
        try:
            response = {"result": functions[request["function"]](**request.get("kwargs") or {}), "error": None}
        except Exception as error:
            traceback.print_exc()
            response = {"result": None, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(response), flush=True)


if __name__ == "__main__":
    _serve()
