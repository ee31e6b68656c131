from tools.orders import ORDERS


def add_late(mcp):
    @mcp.tool()
    def opening() -> str:
        return "it has this name no more"

    @mcp.tool()
    def placed() -> list[str]:
        """What was ordered."""
        return [order.item for order in ORDERS]
