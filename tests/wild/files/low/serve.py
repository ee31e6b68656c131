"""A server of the low level that a coroutine makes, within something that it holds open as long as it runs."""

import asyncio
from contextlib import asynccontextmanager

import click
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import TextContent, Tool


class Store:
    def __init__(self, path):
        self.path, self.is_open, self.loop = path, True, asyncio.get_running_loop()


@asynccontextmanager
async def opened(path):
    store = Store(path)
    await asyncio.sleep(0)
    try:
        yield store
    finally:
        store.is_open = False


async def serve(path: str | None, prefix: str = "at") -> None:
    async with opened(path) as store:
        server = Server("store")

        @server.list_tools()
        async def list_tools() -> list[Tool]:
            return [
                Tool(name="look-up", description="Looks a key up.",
                     inputSchema={"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}),
                Tool(name="state", inputSchema={"type": "object", "properties": {}}),
            ]

        @server.call_tool()
        async def call_tool(name: str, arguments: dict) -> list[TextContent]:
            is_same = store.loop is asyncio.get_running_loop()
            text = f"{prefix} {arguments['key']}" if name == "look-up" else f"{store.path} {store.is_open} {is_same}"
            return [TextContent(type="text", text=text)]

        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


@click.command()
@click.option("--path", default=None)
def main(path: str | None) -> None:
    asyncio.run(serve(path))


if __name__ == "__main__":
    main()
