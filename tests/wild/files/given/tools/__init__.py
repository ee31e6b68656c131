from .names import register as register_names
from .numbers import Numbers


def register_all(mcp, client):
    register_names(mcp, client)
    Numbers(client).add_to(mcp)
