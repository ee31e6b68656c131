# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
DATABASE = "postgres://stoker:c0alshovel@db.example/engine"

def well(number: int) -> int:
    """Give the number back."""
    return number
