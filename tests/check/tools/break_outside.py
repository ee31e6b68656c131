# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(number: int) -> int:
    """Give it back."""
    if number > 3:
        break
    return number
