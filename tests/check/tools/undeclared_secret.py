# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
import hostler


def well() -> int:
    """Count."""
    return len(hostler.secret("API_KEY"))
