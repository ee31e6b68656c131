# /// script
# requires-python = "3.11"
# dependencies = []
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
