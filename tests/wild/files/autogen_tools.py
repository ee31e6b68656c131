"""Tools of AutoGen and LlamaIndex are objects around a function."""

from autogen_core import CancellationToken
from autogen_core.tools import FunctionTool


async def price(ticker: str, cancellation_token: CancellationToken) -> float:
    """Looks a price up."""
    return float(len(ticker)) if not cancellation_token.is_cancelled() else 0.0


stock = FunctionTool(price, description="Tells the price of a stock.", name="stock-price")
