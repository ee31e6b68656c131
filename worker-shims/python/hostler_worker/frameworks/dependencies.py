"""`Depends(connect)`: what the function `connect` returns, yields or opens, once for each call."""

from inspect import isasyncgenfunction, isgeneratorfunction

import hostler


def of(value, module):
    """What gives the value of a default or a note; None when it is no dependency."""
    name = "fn" if type(value).__name__ == "Resolve" else "factory"
    factory = getattr(value, name, None) or getattr(value, "dependency", None)
    if callable(factory):
        return _Dependency(factory, module)
    if type(value).__name__ == "_CurrentContext":
        from . import mcp

        return mcp.context_of(None, module)
    if type(value).__name__ == "Progress":
        return _Progress
    if hasattr(type(value), "__aenter__"):  # another of FastMCP's
        return _Entered(value)
    return None


class _Dependency:
    is_async = True

    def __init__(self, factory, module):
        from .injected import given_to

        self.factory, self.given = factory, given_to(factory, module)

    async def __call__(self, stack):
        if self.factory not in stack.made:
            stack.made[self.factory] = await self._make(stack)
        return stack.made[self.factory]

    async def _make(self, stack):
        from contextlib import asynccontextmanager, contextmanager

        values = {}
        for name, give in self.given.items():  # of what it depends on itself
            values[name] = await give(stack) if getattr(give, "is_async", False) else give()
        factory = self.factory
        if isasyncgenfunction(factory):
            factory = asynccontextmanager(factory)
        elif isgeneratorfunction(factory):
            factory = contextmanager(factory)
        made = factory(**values)
        if hasattr(made, "__await__"):
            made = await made
        if hasattr(type(made), "__aenter__"):
            return await stack.enter_async_context(made)
        if hasattr(made, "gen") and hasattr(type(made), "__enter__"):  # of contextlib; other things that can be entered are values
            return stack.enter_context(made)
        return made


class _Progress:
    """FastMCP's `Progress()`."""

    def __init__(self):
        self.current, self.total, self.message = None, 1, None

    async def set_total(self, total):
        if total < 1:
            raise ValueError("the total must be at least 1, got %r" % total)
        self.total = total

    async def increment(self, amount=1):
        self.current = (self.current or 0) + amount
        self._report()

    async def set_message(self, message):
        self.message = message
        self._report()

    def _report(self):
        hostler.progress(self.current or 0, self.total, self.message)


class _Entered:
    is_async = True

    def __init__(self, value):
        self.value = value

    async def __call__(self, stack):
        return await stack.enter_async_context(self.value)
