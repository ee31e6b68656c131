# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(number, deep=False) -> int:
    """Give it back."""
    return number
