# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
"""Tools that talk while they work."""

import hostler


def count(to: int = 3) -> int:
    """Count aloud."""
    for number in range(1, to + 1):
        hostler.progress(number, to, f"at {number}")
    return to


def log(text: str, level: str = "info") -> str:
    """Write a line into the log."""
    hostler.log(text, level=level, pages=3)
    return "logged"
