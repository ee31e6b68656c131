# /// pyproject
# dependencies = ["httpx"]
# ///


def well(number: int) -> int:
    """Give the number back."""
    return number
