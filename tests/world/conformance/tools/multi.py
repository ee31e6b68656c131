# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# task = true
# ///
"""Calls that are tasks, and ask two things at once."""

import threading

import hostler


def input() -> str:
    """Ask two questions."""
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    said = {}

    def ask(what):
        said[what] = hostler.elicit(f"Which {what}?", form, key=what).action

    threads = [threading.Thread(target=ask, args=(what,)) for what in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return str(sorted(said.items()))
