# /// script
# dependencies = ["requests", "httxp"]
# ///
import httpx
import helpers


def well(number: int) -> int:
    """Give the number back."""
    return number
