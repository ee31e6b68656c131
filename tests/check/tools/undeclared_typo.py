# /// script
# dependencies = ["requests", "httxp"]
# ///
import httpx
import jsno
import request
import helpers


def well(number: int) -> int:
    """Give the number back."""
    return number
