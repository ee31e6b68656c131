# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(text: str) -> dict[str, frozenset[str]]:
    """Words."""
    return {}
