# /// script
# dependencies = []
#
# [tool.hostler]
# timeuot = "3s"
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
