from fastmcp import FastMCP

weather_mcp = FastMCP("weather")


@weather_mcp.tool
def find(text: str) -> str:
    """Finds weather."""
    return f"weather of {text}"
