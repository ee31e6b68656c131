from mcp.server import Server
from mcp.types import Tool

server = Server("notes")


@server.list_tools()
async def list_tools():
    return [Tool(name=name, inputSchema={"type": "object"}) for name in ("a", "b")]


@server.call_tool()
async def call_tool(name, arguments):
    return []
