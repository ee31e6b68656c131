"""The same with the official SDK, of either major version."""

from contextlib import asynccontextmanager

try:
    from mcp.server.mcpserver import Context, Image, MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP as Server, Image
from mcp.types import CallToolResult, TextContent
from mcp.server.session import ServerSession
from pydantic import BaseModel, Field


@asynccontextmanager
async def connected(server):
    yield {"orders": {"a1": "open"}}


mcp = Server("Orders", lifespan=connected)


class Delivery(BaseModel):
    street: str = Field(description="Street and number")
    express: bool = False


@mcp.tool()
def total(prices: list[float]) -> str:
    """Adds prices up."""
    return f"{sum(prices):.2f}"


@mcp.tool(name="find-order", description="Looks an order up.")
async def lookup(order: str, ctx: Context[ServerSession, None]) -> str:
    await ctx.info(f"looking for {order}")
    await ctx.report_progress(1, 1)
    return ctx.request_context.lifespan_context["orders"].get(order, "unknown")


@mcp.tool()
async def deliver(ctx: Context) -> str:
    """Asks where to."""
    answer = await ctx.elicit(message="Where to?", schema=Delivery)
    if answer.action == "accept" and answer.data:
        return f"{answer.data.street} {answer.data.express}"
    return answer.action


@mcp.tool()
def label() -> Image:
    """Draws a label."""
    return Image(data=b"\x89PNG\r\n\x1a\n....", format="png")


@mcp.tool()
def refused() -> CallToolResult:
    """Fails in its own words."""
    try:
        return CallToolResult(content=[TextContent(type="text", text="no stock")], isError=True)
    except Exception:
        return CallToolResult(content=[TextContent(type="text", text="no stock")], is_error=True)


@mcp.resource("orders://{number}")
def order_of(number: str) -> str:
    return f"order {number}"


@mcp.prompt()
def complaint(about: str) -> str:
    """Writes a complaint."""
    return f"Complain about {about}."


def main():
    mcp.run(transport="stdio")


if __name__ == "__main__":
    main()
