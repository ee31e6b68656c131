"""What is called for a tool of a framework: its function, with what the framework would give it."""

from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, MethodType

from ..state import state
from .behind import package_of

_COROUTINE = 0x80


def calling(function, given, value=None, begin=None):
    """`given` are the parameters that callers do not give, each with what makes its value. `value` is the framework's own tool. `begin`
    is awaited before each call."""
    complete, read = of_framework(value)
    function = uncopied(function, given)
    if not given and complete is None and read is None and begin is None:
        return function
    complete, read = complete or dict, read or _as_it_is
    on_loop = begin is not None or any(getattr(give, "is_async", False) for give in given.values())
    if is_coroutine_function(function):
        async def call(*args, **kwargs):
            from .giving import giving

            async with giving(given, begin) as values:
                return read(_said(await function(*args, **{**complete(kwargs), **values}), values))
    elif on_loop:
        # The function itself runs where others do: on the main thread, or in one of several.
        def call(*args, **kwargs):
            from .giving import giving

            kwargs, gives = complete(kwargs), giving(given, begin)
            kwargs.update(run_on_loop(gives.__aenter__()))
            try:
                result = function(*args, **kwargs)
                if type(result) is CoroutineType:  # of a method, behind a plain function
                    result = run_on_loop(result)
                result = _said(result, kwargs)
                result = read(list(result) if hasattr(result, "__next__") else result)  # while what it was given is open
            except BaseException as error:
                if not run_on_loop(gives.__aexit__(type(error), error, error.__traceback__)):
                    raise
                return None
            run_on_loop(gives.__aexit__(None, None, None))
            return result
    else:
        def call(*args, **kwargs):
            kwargs = complete(kwargs)
            for name, give in given.items():
                kwargs[name] = give()
            result = function(*args, **kwargs)
            return _later(result, kwargs, read) if type(result) is CoroutineType else read(_said(result, kwargs))
    call.__wrapped__ = function
    return call


def uncopied(function, given):
    """agno has arguments checked by pydantic, which copies dictionaries: also the state that is to be kept."""
    return getattr(function, "raw_function", function) if "session_state" in given else function


def current_for(call, current):
    """The same with the context of MCP's frameworks as the current one, as `current` sets it; unchanged where that is None."""
    if current is None:
        return call
    if is_coroutine_function(call):
        async def within(*args, **kwargs):
            with current():
                return await call(*args, **kwargs)
    else:
        def within(*args, **kwargs):
            with current():
                result = call(*args, **kwargs)
                if type(result) is GeneratorType:
                    return list(result)
            if type(result) is CoroutineType:  # of a method, behind a plain function
                return _awaited(result, current)
            return _collected(result, current) if type(result) is AsyncGeneratorType else result
    within.__wrapped__ = call
    return within


def is_coroutine_function(function):
    """Of the function itself: what wraps a coroutine function may be none."""
    if type(function) is MethodType:
        function = function.__func__
    return type(function) is FunctionType and bool(function.__code__.co_flags & _COROUTINE)


def run_on_loop(coroutine):
    """On the worker's loop, for a function that does not run there."""
    from .. import calls

    if not state.several:
        return calls._run_async(coroutine)
    import asyncio

    return asyncio.run_coroutine_threadsafe(coroutine, calls._loop).result()


async def _awaited(coroutine, current):
    with current():
        return await coroutine


async def _collected(generator, current):
    with current():
        return [item async for item in generator]


async def _later(coroutine, given, read):
    return read(_said(await coroutine, given))


def _said(result, given):
    """A function of Open WebUI may say its result."""
    emitter = given.get("__event_emitter__") if result is None else None
    return result if emitter is None else emitter.result(result)


def _as_it_is(value):
    return value


def of_framework(value):
    """What completes the arguments and reads the result of a framework's own tool."""
    if package_of(type(value)) == "strands":
        from .strands import read

        return None, read
    if not any(package_of(base) in ("langchain_core", "crewai") for base in type(value).__mro__):
        return None, None
    from . import langchain

    return langchain.completing(value), langchain.reading(value)
