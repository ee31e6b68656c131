# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(names: list[str] = []) -> int:  # hostler: ignore[shared-defaults]
    """Count."""
    return len(names)
