# /// script
# dependencies = ["mcp==1.30.0", "click==8.5.1"]
# ///
import argparse
import asyncio

from mcp.server.fastmcp import FastMCP


async def serve():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    given = parser.parse_args()
    mcp = FastMCP("places")

    @mcp.tool()
    def where() -> str:
        return given.root

    await mcp.run_stdio_async()


if __name__ == "__main__":
    asyncio.run(serve())
