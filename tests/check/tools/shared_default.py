# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(names: list[str] = []) -> list[str]:
    """Collect."""
    return names
