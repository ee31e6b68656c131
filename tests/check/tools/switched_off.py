# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(number) -> int:  # hostler: ignore[missing-hint]
    """Give it back."""
    return number
