# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well() -> dict:
    """Ask."""
    return {"headers": ["ghp_000000000000000000000000000000000000"]}
