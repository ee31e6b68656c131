from .orders import add_orders


def register_all(mcp):
    from tools.late import add_late

    add_orders(mcp)
    add_late(mcp)
