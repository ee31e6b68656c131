# /// script
# dependencies = []
# [tool.hostler]
# icon = "icon.py"
# ///
"""Icons are images."""


def well(number: int) -> int:
    """Give it back."""
    return number
