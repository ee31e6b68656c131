"""Tools that functions make, with decorators of their author: they are part of the tool."""

from functools import wraps
from typing import Annotated

try:
    from fastmcp import FastMCP
except ImportError:
    try:
        from mcp.server.fastmcp import FastMCP
    except ImportError:
        from mcp.server.mcpserver import MCPServer as FastMCP

tries = []


def guarded(function):
    @wraps(function)
    def checked(*args, **kwargs):
        raise PermissionError("no token")

    return checked


def again(function):
    @wraps(function)
    async def repeated(*args, **kwargs):
        for _ in range(2):
            try:
                return await function(*args, **kwargs)
            except ValueError:
                tries.append(1)
        return await function(*args, **kwargs)

    return repeated


def caught(function):
    def answered(key: str) -> str:
        try:
            return function(key)
        except KeyError:
            return "nothing"

    answered.__name__ = function.__name__
    answered.__doc__ = function.__doc__
    return answered


def create(prices):
    mcp = FastMCP("guarded")

    @mcp.tool()
    def prices_of(first: Annotated[str, "A key"], second: str) -> list[str]:
        """Says two prices."""
        return [price(first), price(second)]

    @mcp.tool()
    @guarded
    def drop(name: str) -> str:
        """Drops a table."""
        return f"dropped {name}"

    @mcp.tool()
    @again
    async def fetch(page: Annotated[int, "The page to fetch"]) -> int:
        """Fetches a page."""
        if len(tries) < 2:
            raise ValueError("not yet")
        return page

    @mcp.tool()
    @caught
    def price(key: str) -> str:
        """Says a price."""
        return prices[key]

    return mcp


def main():
    create({"tea": "2"}).run()


if __name__ == "__main__":
    main()
