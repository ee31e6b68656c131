from mcp.server.fastmcp import Context

looked = []


async def look(what: str, ctx: Context) -> int:
    await ctx.info("looking")
    looked.append(what)
    return len(looked)


def look_again(times: int = 1) -> list[str]:
    """Look again."""
    return looked * times
