# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
API_KEY = "8f14e45fceea167a5a36dedd4bea2543"

def well(number: int) -> int:
    """Give the number back."""
    return number
