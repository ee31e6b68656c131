"""Less usual ways of FastMCP: tools that are handed to the server, a context that is asked for, progress as a dependency."""

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_context
from fastmcp.tools import Tool


def double(value: int) -> int:
    """Doubles."""
    return 2 * value


async def _report(word: str) -> str:
    context = get_context()
    await context.info(f"heard {word}")
    return f"{word} {context.request_id != ''}"


def plain() -> str:
    """Asks for it in a function that does not run on the loop."""
    return type(get_context()).__name__


def helper():
    """No tool."""


mcp = FastMCP("Further", tools=[double, Tool.from_function(_report, name="report", description="Reports."), plain])
