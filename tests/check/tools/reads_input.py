# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well() -> str:
    """Ask."""
    return input("name? ")
