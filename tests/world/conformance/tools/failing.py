# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# task = "required"
# ///
"""Calls that are tasks, and fail."""

import time


def job() -> str:
    """Fail."""
    time.sleep(1)
    raise RuntimeError("the job failed")
