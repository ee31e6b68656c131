# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
from typing import Any


def well(key: Any = lambda x: x) -> str:
    """Sort."""
    return str(key)
