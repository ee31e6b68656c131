# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
def _hidden() -> None:
    pass
