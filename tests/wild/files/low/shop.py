"""A class that holds a server of the low level and lists tools of another file."""

import asyncio

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from _listed import tools_for


class Shop:
    def __init__(self):
        self.app = Server("shop")
        self.sold = []
        self.set_up()

    def set_up(self):
        @self.app.list_tools()
        async def listed():
            return tools_for(self)

        @self.app.call_tool()
        async def called(name, arguments):
            self.sold.append(arguments.get("item", name))
            return [{"type": "text", "text": ", ".join(self.sold)}][0]["text"]

    async def run(self):
        async with stdio_server() as streams:
            await self.app.run(*streams, self.app.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(Shop().run())
