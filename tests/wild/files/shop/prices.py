try:
    from fastmcp import Context
except ImportError:
    try:
        from mcp.server.fastmcp import Context
    except ImportError:
        from mcp.server.mcpserver import Context


def rounded(value: float) -> float:
    return round(value, 2)


def add_prices(server):
    @server.tool(name="price_of", description="What it costs.")
    def price(item: str, ctx: Context, many: int = 1) -> float:
        stock = ctx.request_context.lifespan_context["stock"]
        return rounded(many * 1.5 if item in stock else 0.0)
