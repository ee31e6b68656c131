# /// script
# requires-python = ">=3.37"
# dependencies = []
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
