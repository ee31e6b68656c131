# /// script
# dependencies = [
#  1
# ///
def well(number: int) -> int:
    """Give the number back."""
    return number
