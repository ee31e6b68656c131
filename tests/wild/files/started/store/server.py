from mcp.server.fastmcp import FastMCP


def run(settings):
    mcp = FastMCP(settings.name)

    @mcp.tool()
    def stock(item: str) -> str:
        """What is there."""
        return f"{settings.name}: {item}"

    mcp.run()
