from fastmcp import FastMCP

server = FastMCP("shop")


@server.tool(name="find")
def look_for(text: str) -> str:
    """Finds goods."""
    return f"goods like {text}"
