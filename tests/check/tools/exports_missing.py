# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
__all__ = ["well", "gone"]

def well(number: int) -> int:
    """Give the number back."""
    return number
