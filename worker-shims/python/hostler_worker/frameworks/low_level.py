"""Tools of the MCP SDK's low level: the handler that `@server.call_tool()` marks is called with the tool's name, and one that
`Server(on_call_tool=…)` is given with a context and the parameters of the request."""

import sys
from types import SimpleNamespace

from ..loading import Function
from .calling import current_for
from .mcp import current_of, lifespan_of


def named(module, symbol):
    """The tool of a symbol `call_tool:HANDLER:NAME` or `on_call_tool:HANDLER:NAME`."""
    kind, handler, name = symbol.split(":", 2)
    handler = module.__dict__[handler]
    if kind == "on_call_tool":
        return Function(symbol, requested(handler, name, module))
    begin = lifespan_of(module)

    return Function(symbol, current_for(handled(handler, name, begin), current_of(module)))


def handled(handler, name, begin):
    """What calls a handler for one tool."""
    async def call(**arguments):
        if begin is not None:
            await begin()
        return _read(await handler(name, arguments))

    return call


def is_of_second_sdk():
    """Whether servers are given their handlers: in the SDK's second version they have no decorators."""
    server = getattr(sys.modules.get("mcp.server.lowlevel.server"), "Server", None)
    return server is not None and not hasattr(server, "call_tool")


def requested(handler, name, module):
    """What calls a handler for one tool with a context and the parameters of a request."""
    from .mcp import context_of

    context = context_of(None, module)

    async def call(**arguments):
        given = await context(None) if getattr(context, "is_async", False) else context()
        return await handler(given.request_context, _parameters(name, arguments))

    return call


def _parameters(name, arguments):
    for place in ("mcp_types", "mcp.types"):
        kind = getattr(sys.modules.get(place), "CallToolRequestParams", None)
        if kind is not None:
            return kind(name=name, arguments=arguments)
    return SimpleNamespace(name=name, arguments=arguments, meta=None)


def _read(result):
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        return result[1]  # content, and the same in its structure
    if not isinstance(result, (list, tuple, set)) and not hasattr(result, "__next__"):
        return result
    content = list(result)
    return content[0] if len(content) == 1 else content
