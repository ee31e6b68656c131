from client import Client
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("top")


class Pages:
    def __init__(self, server: FastMCP, client: Client):
        self.client = client

        @server.tool()
        def page(number: int) -> str:
            return self.client.ask(str(number))


def setup(client):
    Pages(mcp, client)


setup(Client("of the top"))
