# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(number: int) -> int:
    """Give it back.

    Args:
        nubmer: What to give back.
        number: The same.
    """
    return number
