"""The same tool in a server that runs it in its own process."""

from fastmcp import FastMCP

server = FastMCP("sums")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run(transport="stdio", show_banner=False)
