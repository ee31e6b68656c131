"""A server that mounts others with a prefix: of this file, of another one, and one that a function makes."""

import shop
from fastmcp import FastMCP
from weather import weather_mcp

mcp = FastMCP("main")
local = FastMCP("local")


@mcp.tool
async def names() -> list[str]:
    """What FastMCP calls the tools."""
    if hasattr(mcp, "list_tools"):
        return sorted(tool.name for tool in await mcp.list_tools())
    return sorted(await mcp.get_tools())


@local.tool
def find(text: str) -> str:
    """Finds a text here."""
    return f"local {text}"


def build(greeting: str = "hello") -> FastMCP:
    made = FastMCP("made")

    @made.tool()
    def greet(name: str) -> str:
        return f"{greeting} {name}"

    return made


mcp.mount(local, "here")
mcp.mount(weather_mcp, "weather")
mcp.mount(shop.server, "my_shop")
mcp.mount(build(), "polite")

if __name__ == "__main__":
    mcp.run()
