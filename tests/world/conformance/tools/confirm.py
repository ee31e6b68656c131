# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# task = true
# ///
"""Calls that are tasks, and ask."""

import hostler


def delete(filename: str) -> str:
    """Ask before something is deleted."""
    form = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}
    answer = hostler.elicit(f"Delete {filename}?", form)
    return f"{filename}: {answer.action}"
