from client import Client
from mcp.server.fastmcp import FastMCP
from tools.names import register


def serve():
    mcp = FastMCP("late")
    register(mcp, Client("late"))
    mcp.run()
