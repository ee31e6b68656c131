# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(names: list[str] = []) -> int:  # hostler: ignore[shared-default]
    """Count."""
    return len(names)
