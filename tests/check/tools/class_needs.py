"""A class whose tools cannot be served."""


class Tools:
    def __init__(self, path: str):
        self.path = path

    def read(self) -> str:
        """Reads it."""
        return self.path
