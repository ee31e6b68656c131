# /// script
# requires-python = ">=three"
# dependencies = []
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
