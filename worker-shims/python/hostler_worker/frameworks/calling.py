"""What is called for a tool of a framework: its function, with what the framework would give it."""

from .behind import package_of, unwrapped

_COROUTINE = 0x80


def calling(function, given, value=None):
    """`given` are the parameters that callers do not give, each with what makes its value. `value` is the framework's own tool."""
    complete, read = of_langchain(value)
    if not given and complete is None and read is None:
        return function
    complete, read = complete or dict, read or _as_it_is
    code = getattr(unwrapped(function), "__code__", None)
    if (code is not None and code.co_flags & _COROUTINE) or any(getattr(give, "is_async", False) for give in given.values()):
        async def call(*args, **kwargs):
            from .giving import giving

            async with giving(given) as values:
                result = function(*args, **{**complete(kwargs), **values})
                if hasattr(result, "__await__"):
                    result = await result
                elif hasattr(result, "__anext__"):
                    result = [item async for item in result]
                elif hasattr(result, "__next__"):
                    result = list(result)  # while what it was given is open
                return read(result)
    else:
        def call(*args, **kwargs):
            kwargs = complete(kwargs)
            for name, give in given.items():
                kwargs[name] = give()
            return read(function(*args, **kwargs))
    call.__wrapped__ = function
    return call


def _as_it_is(value):
    return value


def of_langchain(value):
    if not any(package_of(base) in ("langchain_core", "crewai") for base in type(value).__mro__):
        return None, None
    from . import langchain

    return langchain.completing(value), langchain.reading(value)
