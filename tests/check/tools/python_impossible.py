# /// script
# requires-python = ">=3.12,<3.10"
# dependencies = []
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
