"""Servers whose tools are made by functions: a factory, a function that is given the server, a program and a class."""

from contextlib import asynccontextmanager
from datetime import date

try:
    from fastmcp import Context, FastMCP
except ImportError:
    try:
        from mcp.server.fastmcp import Context, FastMCP
    except ImportError:
        from mcp.server.mcpserver import Context, MCPServer as FastMCP


class Profile:
    """Written by what it declares, as the SDK does."""

    name: str
    age: int

    def __init__(self, name):
        self.name, self.age, self.other = name, 3, object()


@asynccontextmanager
async def lifespan(server):
    yield {"stock": 3}


def create_server(name: str = "shop") -> FastMCP:
    mcp = FastMCP(name, lifespan=lifespan)
    orders = []

    @mcp.tool()
    def order(item: str, day: date) -> int:
        """Order an item for a day."""
        orders.append((item, day.isoformat()))
        return len(orders)

    @mcp.tool()
    def profile(name: str) -> Profile:
        """Find a profile."""
        return Profile(name)

    @mcp.tool(name="in-stock", description="What is left.")
    async def left(context: Context) -> int:
        await context.info("looking")
        return context.request_context.lifespan_context["stock"]

    return mcp


def register_maths(mcp: FastMCP) -> None:
    @mcp.tool()
    def times(a: int, b: int = 2) -> int:
        return a * b


class Notes:
    def __init__(self) -> None:
        self.notes = ["first"]
        self.mcp = FastMCP("notes")
        self.register()

    def register(self) -> None:
        @self.mcp.tool()
        def note(text: str) -> list[str]:
            self.notes.append(text)
            return self.notes


def helper(value: int) -> int:
    return value


def main() -> None:
    mcp = FastMCP("program")

    @mcp.tool()
    def upper(text: str) -> str:
        return text.upper()

    register_maths(mcp)
    mcp.run()


if __name__ == "__main__":
    main()
