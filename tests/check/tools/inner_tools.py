def register(mcp, client):
    @mcp.tool()
    def search(query: str) -> str:
        return query


def helper():
    pass
