"""A shop."""

from contextlib import asynccontextmanager

try:
    from fastmcp import FastMCP as Server
except ImportError:
    try:
        from mcp.server.fastmcp import FastMCP as Server
    except ImportError:
        from mcp.server.mcpserver import MCPServer as Server

from prices import add_prices
from tools import register_all


@asynccontextmanager
async def lifespan(_server):
    yield {"stock": {"tea": 3}}


mcp = Server("shop", lifespan=lifespan)
add_prices(mcp)


@mcp.tool()
def opening() -> str:
    """When it is open."""
    return "always"


def run() -> None:
    register_all(mcp)
    mcp.run()


if __name__ == "__main__":
    run()
