"""A program with a command line, whose coroutine makes a server of FastMCP and needs an argument."""

import argparse
import asyncio

from mcp.server.fastmcp import FastMCP


async def run(word: str, times: int) -> None:
    mcp = FastMCP("words")
    lock = asyncio.Lock()

    @mcp.tool()
    async def repeat(count: int = 1) -> str:
        async with lock:
            await asyncio.sleep(0)
            return " ".join([word] * count * times)

    @mcp.tool()
    def plain() -> str:
        return word

    try:
        await mcp.run_stdio_async()
    finally:
        word = "closed"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--word", default="tea")
    arguments = parser.parse_args()
    try:
        asyncio.run(run(arguments.word, 2))
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()
