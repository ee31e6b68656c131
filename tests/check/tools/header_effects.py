# /// script
# dependencies = []
#
# [tool.hostler]
# effects = "always"
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
