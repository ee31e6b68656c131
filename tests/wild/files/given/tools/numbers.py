class Numbers:
    """Tools about numbers."""

    def __init__(self, client):
        self._client = client

    def add_to(self, mcp):
        @mcp.tool()
        def add(a: int, b: int = 1) -> str:
            return self._client.ask(str(a + b))
