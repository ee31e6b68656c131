"""Tools of the MCP SDK's low level: the handler that `@server.call_tool()` marks is called with the tool's name."""

from ..loading import Function
from .calling import current_for
from .mcp import current_of, lifespan_of


def named(module, symbol):
    """The tool of a symbol `call_tool:HANDLER:NAME`."""
    _, handler, name = symbol.split(":", 2)
    handler = module.__dict__[handler]
    begin = lifespan_of(module)

    return Function(symbol, current_for(handled(handler, name, begin), current_of(module)))


def handled(handler, name, begin):
    """What calls a handler for one tool."""
    async def call(**arguments):
        if begin is not None:
            await begin()
        return _read(await handler(name, arguments))

    return call


def _read(result):
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        return result[1]  # content, and the same in its structure
    if not isinstance(result, (list, tuple, set)) and not hasattr(result, "__next__"):
        return result
    content = list(result)
    return content[0] if len(content) == 1 else content
