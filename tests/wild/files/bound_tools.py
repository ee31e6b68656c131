"""Classes that give a server their own methods, as a program makes them."""

import argparse

try:
    from fastmcp import Context, FastMCP
except ImportError:
    try:
        from mcp.server.fastmcp import Context, FastMCP
    except ImportError:
        from mcp.server.mcpserver import Context, MCPServer as FastMCP


class Stacks:
    def __init__(self, mcp: FastMCP, write: bool = False) -> None:
        self.write, self.made = write, []
        mcp.tool(name="manage-stacks")(self.manage)
        for tool in (self.count, self.echo):
            mcp.tool()(tool)

    async def manage(self, name: str, size: int = 1) -> str:
        """Manages a stack."""
        self.made.append(name)
        return f"{name} {size + 1} {self.write}"

    def count(self) -> int:
        return len(self.made)

    async def echo(self, ctx: Context, text: str) -> str:
        await ctx.info(text)
        return text


class Events:
    def register(self, mcp: FastMCP) -> None:
        mcp.tool(description="Looks events up.")(self.look_up)

    def look_up(self, user: str) -> list[str]:
        return [user, type(self).__name__]


class Sizes:
    def __init__(self, mcp: FastMCP, unit: str) -> None:
        self.unit = unit
        mcp.tool()(self.size)

    def size(self, n: int) -> str:
        return f"{n} {self.unit}"


mcp = FastMCP("stacks")
Sizes(mcp, unit="KB")
try:
    Events().register(mcp)
except Exception as error:
    raise RuntimeError("no events") from error


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    Stacks(mcp, given.write)
    mcp.run()


if __name__ == "__main__":
    main()
