# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
import os

KEY = os.environ["BRAVE_API_KEY"]

def well(number: int) -> int:
    """Give the number back."""
    return number
