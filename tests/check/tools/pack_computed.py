# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
pack = "a" + "b"

def well(number: int) -> int:
    """Give the number back."""
    return number
