from mcp.server.fastmcp import FastMCP

mcp = FastMCP("clock")


@mcp.tool()
def hour(text: str) -> int:
    """The hour of a time of day."""
    return int(text.partition(":")[0])
