# /// script
# dependencies = [">=2"]
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
