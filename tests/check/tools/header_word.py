# /// scripts
# requires-python = ">=3.9"
# ///


def well(number: int) -> int:
    """Give the number back."""
    return number
