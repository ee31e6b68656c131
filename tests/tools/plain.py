# /// script
# requires-python = ">=3.9"
# dependencies = []
#
# [tool.hostler]
# timeout = "45s"
# effects = "idempotent"
# ///
"""Ordinary tools with arguments of every kind, for the command line."""

from typing import Literal, Optional


def kinds(
    count: int = 0, ratio: float = 0.0, flag: bool = False, word: str = "", names: Optional[list[str]] = None,
    mode: Literal["fast", "slow"] = "fast", extra: Optional[dict] = None,
) -> dict:
    """Give back what came.

    Args:
        count: How many.
    """
    return {"count": count, "ratio": ratio, "flag": flag, "word": word, "names": names, "mode": mode, "extra": extra}


def greet(name: str = "you") -> str:
    """A line of text."""
    return f"good morning, {name}"


def number() -> float:
    """A number."""
    return 1.5


def nothing() -> None:
    """Nothing."""


def lines() -> list[str]:
    """A list."""
    return ["a", "b"]
