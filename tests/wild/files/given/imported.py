from looking import look, look_again
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("imported")
mcp.tool(description="Look for it.")(look)


def more():
    mcp.add_tool(look_again, name="look-again")
