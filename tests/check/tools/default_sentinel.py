# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
from typing import Any

MISSING = object()


def well(value: Any = MISSING) -> bool:
    """Tell."""
    return value is MISSING
