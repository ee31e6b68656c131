"""Tools of Claude's SDK: they take all arguments as one dictionary, and return MCP's content as plain dictionaries."""

from base64 import b64decode

import hostler

from ..encode import ToolFailed


def calling(function):
    async def call(**arguments):
        return _read(await function(arguments))

    return call


def _read(result):
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(content, list):
        return result
    if result.get("is_error") or result.get("isError"):
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        raise ToolFailed("\n".join(texts) or "the tool failed")
    parts = [_part(part) for part in content]
    return parts[0] if len(parts) == 1 else parts


def _part(part):
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return part.get("text")
    if kind in ("image", "audio") and isinstance(part.get("data"), str):
        try:
            return hostler.File(b64decode(part["data"], validate=True), part.get("mimeType") or part.get("mime_type"))
        except ValueError:
            return part
    return part
