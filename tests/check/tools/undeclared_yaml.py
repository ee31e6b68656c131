# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
import yaml

def well(number: int) -> int:
    """Give the number back."""
    return number
