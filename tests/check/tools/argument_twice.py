# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(number: int, number: int) -> int:
    """Give it back."""
    return number
