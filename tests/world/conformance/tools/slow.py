# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# task = true
# max_workers = 8
# ///
"""Calls that are tasks."""

import time


def compute(seconds: float = 0, label: str = "") -> str:
    """Take a while."""
    time.sleep(seconds)
    return f"{label} took {seconds} s"
