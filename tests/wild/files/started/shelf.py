"""A server with a decorator and methods of the file, and another one that its program makes."""

import argparse

from mcp.server.fastmcp import FastMCP


class Books:
    def __init__(self, names: list[str]) -> None:
        self.names = names

    def count(self) -> int:
        """Counts the books."""
        return len(self.names)


mcp = FastMCP("shelf")
books = Books(["dune", "emma"])
mcp.tool(name="count_books")(books.count)


def tool(title=None):
    def decorate(function):
        return mcp.tool(title=title)(function)

    return decorate


@tool(title="Look")
def look(name: str) -> bool:
    """Looks for a book."""
    return name in books.names


def make(root: str) -> FastMCP:
    from mcp.server.fastmcp import Context

    made = FastMCP("made")

    @made.tool()
    async def place(name: str, ctx: Context) -> str:
        """Where a book is."""
        await ctx.info(name)
        return f"{root}/{name}"

    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default="/shelf")
    make(parser.parse_args().root).run()
