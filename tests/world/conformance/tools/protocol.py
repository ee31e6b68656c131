# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# task = true
# ///
"""Calls that are tasks, and end with an error of the protocol."""

import hostler


def error_job() -> str:
    """Ask for folders, which the client does not have."""
    return str(hostler.roots())
