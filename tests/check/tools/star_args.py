# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(*numbers: int) -> int:
    """Add."""
    return sum(numbers)
