# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(text: str) -> set[str]:
    """Words."""
    return set(text.split())
