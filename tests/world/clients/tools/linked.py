# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# large = "link"
# ///
"""Results that are too large for their answer become links."""


def big(megabytes: int):
    """Return a long text."""
    return "x" * (megabytes << 20)
