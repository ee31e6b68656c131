# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(number: int, name: str) -> int:
    """Give it back.

    Args:
        number: What to give back.
    """
    return number
