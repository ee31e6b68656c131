# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(number: int) -> int:
    """Give it back."""
    return await number
