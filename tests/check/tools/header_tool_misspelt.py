# /// script
# dependencies = []
#
# [tool.hosteler]
# timeout = "3s"
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
