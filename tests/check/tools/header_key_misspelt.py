# /// script
# requires-pyhton = ">=3.9"
# dependencies = []
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
