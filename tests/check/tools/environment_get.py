# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
from os import getenv

PLACE = getenv("SHED_FOLDER")

def well(number: int) -> int:
    """Give the number back."""
    return number
