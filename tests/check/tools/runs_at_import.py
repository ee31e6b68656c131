import asyncio
import subprocess

subprocess.run(["true"])


async def search(query: str) -> str:
    return query


answer = asyncio.run(search("x"))

if __name__ == "__main__":
    asyncio.run(search("y"))
