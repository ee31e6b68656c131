from mcp.server.fastmcp import Context, FastMCP


def register(mcp: FastMCP, client) -> None:
    @mcp.tool(name="find-name")
    async def find(name: str, ctx: Context) -> str:
        """Find a name."""
        await ctx.info("looking")
        return client.ask(name)
