"""A server as FastMCP's users write it: decorated functions, a context, resources, prompts, and a program."""

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from fastmcp import Context, FastMCP
from fastmcp.dependencies import Depends
from fastmcp.utilities.types import Image
from pydantic import Field


stock = None


@asynccontextmanager
async def connected(server):
    global stock
    stock = {"tea": 3}
    yield {"orders": {"a1": "open"}}


mcp = FastMCP("Orders", lifespan=connected)


@dataclass
class Delivery:
    street: str
    express: bool = False


asked = 0


def tax_rate() -> float:
    global asked
    asked += 1
    return 0.25 * asked


@mcp.tool
def total(prices: list[float], currency: Literal["EUR", "USD"] = "EUR") -> str:
    """Adds prices up.

    Args:
        prices: What each item costs.
    """
    return f"{sum(prices):.2f} {currency}"


@mcp.tool(name="find-order", description="Looks an order up.", annotations={"readOnlyHint": True})
async def lookup(order: Annotated[str, Field(description="Its number.", min_length=2)], ctx: Context) -> str:
    await ctx.info(f"looking for {order}")
    await ctx.report_progress(progress=1, total=1)
    return ctx.request_context.lifespan_context["orders"].get(order, "unknown")


@mcp.tool
async def deliver(ctx: Context) -> str:
    """Asks where to."""
    answer = await ctx.elicit("Where to?", response_type=Delivery)
    match answer.action:
        case "accept":
            return f"{answer.data.street} {answer.data.express}"
        case other:
            return other


@mcp.tool
def taxed(price: float, rate: float = Depends(tax_rate), same: float = Depends(tax_rate)) -> float:
    """Adds the tax."""
    return price * (1 + rate) if rate == same else -1.0


@mcp.tool
def in_stock(item: str) -> int:
    """Counts what there is, which the lifespan has found out."""
    return stock.get(item, 0)


@mcp.tool
def careful(ctx: Context) -> bool:
    """Asks for what the context may lack."""
    return getattr(ctx, "not_there", None) is None and not hasattr(ctx, "nor_this")


@mcp.tool
def label() -> Image:
    """Draws a label."""
    return Image(data=b"\x89PNG\r\n\x1a\n....", format="png")


@mcp.tool
async def translate(ctx: Context) -> str:
    """Uses what the context lacks."""
    return await ctx.translate("x")


@mcp.resource("orders://{number}")
def order_of(number: str) -> str:
    return f"order {number}"


@mcp.prompt
def complaint(about: str) -> str:
    """Writes a complaint."""
    return f"Complain about {about}."


def format_price(price: float) -> str:
    return f"{price:.2f}"


if __name__ == "__main__":
    mcp.run()
