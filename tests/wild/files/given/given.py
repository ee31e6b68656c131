"""A server whose tools are registered with what they need."""

from client import Client
from mcp.server.fastmcp import FastMCP
from tools import register_all

CLIENTS = []


def build(name: str = "given") -> FastMCP:
    client = Client("of build")
    CLIENTS.append(client)
    mcp = FastMCP(name)
    register_all(mcp, client)
    return mcp


def main() -> None:
    mcp = build()
    print("ready")
    mcp.run()


if __name__ == "__main__":
    main()
