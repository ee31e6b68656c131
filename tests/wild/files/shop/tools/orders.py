from models import Order

ORDERS = []


def add_orders(mcp):
    @mcp.tool()
    async def place(order: Order) -> int:
        """Places an order.

        Args:
            order: What is wanted.
        """
        ORDERS.append(order)
        return sum(one.many for one in ORDERS)
