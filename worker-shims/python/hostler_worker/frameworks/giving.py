"""The values of what a framework gives, for as long as one call takes."""


class giving:
    """`async with giving(given, begin) as values`: what is a coroutine is awaited, and what a dependency opened is closed at the end."""

    def __init__(self, given, begin=None):
        self.given, self.begin = given, begin

    async def __aenter__(self):
        from contextlib import AsyncExitStack

        self.stack = AsyncExitStack()
        self.stack.made = {}  # what dependencies gave in this call
        await self.stack.__aenter__()
        try:
            if self.begin is not None:
                await self.begin()
            values = {}
            for name, give in self.given.items():
                values[name] = await give(self.stack) if getattr(give, "is_async", False) else give()
            return values
        except BaseException as error:
            await self.stack.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(self, *raised):
        return await self.stack.__aexit__(*raised)
