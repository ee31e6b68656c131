# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def well(number: int -> int:
    return number
