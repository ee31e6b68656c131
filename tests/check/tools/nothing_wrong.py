# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
"""A tool file without a flaw."""

import json
import re as regex

try:
    import orjson
except ImportError:
    orjson = None


def well(number: int, /, name: str = "x", *, deep: bool = False, pick: "list[str] | None" = None) -> dict:
    """Give it back.

    Args:
        number: What to give back.
        name: Whose it is.
        deep: Whether all of it.
        pick: What else.
    """
    return {"number": number, "key": json.dumps(name), "token": regex.sub("a", "b", name), "orjson": bool(orjson)}
