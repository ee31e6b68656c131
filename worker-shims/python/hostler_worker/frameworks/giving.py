"""The values of what a framework gives, for as long as one call takes."""


class giving:
    """`async with giving(given) as values`: what is a coroutine is awaited, and what a dependency opened is closed at the end."""

    def __init__(self, given):
        self.given = given

    async def __aenter__(self):
        from contextlib import AsyncExitStack

        self.stack = AsyncExitStack()
        await self.stack.__aenter__()
        try:
            values = {}
            for name, give in self.given.items():
                values[name] = await give(self.stack) if getattr(give, "is_async", False) else give()
            return values
        except BaseException as error:
            await self.stack.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(self, *raised):
        return await self.stack.__aexit__(*raised)
