"""Tools of Strands: they return content with a status, and functions of modules with a `TOOL_SPEC` take a request."""

import hostler

from ..encode import ToolFailed
from ..loading import Function
from .call import call_id
from .calling import is_coroutine_function


def named(module, symbol):
    """The tool of a symbol `tool_spec:NAME`."""
    name = symbol.partition(":")[2]
    function = module.__dict__[name]

    def request(arguments):
        return {"toolUseId": call_id() or "hostler", "name": name, "input": arguments}

    async def later(**arguments):
        return read(await function(request(arguments)))

    def call(**arguments):
        return read(function(request(arguments)))

    return Function(symbol, later if is_coroutine_function(function) else call)


def read(result):
    content = result.get("content") if isinstance(result, dict) and "status" in result else None
    if not isinstance(content, list):
        return result
    if result.get("status") == "error":
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        raise ToolFailed("\n".join(texts) or "the tool failed")
    parts = [_part(part) for part in content]
    return parts[0] if len(parts) == 1 else parts


def _part(part):
    """`{"text": …}`, `{"json": …}`, `{"image": {"format": "png", "source": {"bytes": …}}}`"""
    if not isinstance(part, dict) or len(part) != 1:
        return part
    (kind, value), = part.items()
    if kind in ("text", "json"):
        return value
    data = value.get("source", {}).get("bytes") if isinstance(value, dict) else None
    if not isinstance(data, bytes):
        return part
    kind = {"image": "image/", "video": "video/", "document": "application/"}.get(kind)
    return hostler.File(data, kind + str(value.get("format"))) if kind else part
