"""What tools return in the classes of a framework, as plain values and hostler's own files and links."""

import json
from base64 import b64decode

import hostler

from ..encode import ToolFailed


def read_mcp(value):
    """`TextContent`, `Image`, `ToolResult` and the like; other values as they are."""
    read = _MCP.get(type(value).__name__)
    return value if read is None else read(value)


def _one_of(value, *names):
    return next((found for name in names if (found := getattr(value, name, None)) is not None), None)


def _whole(value):
    content = list(value.content or ())
    if _one_of(value, "is_error", "isError"):
        texts = [part.text for part in content if hasattr(part, "text")]
        raise ToolFailed("\n".join(texts) or "the tool failed")
    structured = _one_of(value, "structured_content", "structuredContent")
    if structured is not None:
        return structured
    return content[0] if len(content) == 1 else content


def _resource(value):
    held = value.resource
    text = getattr(held, "text", None)
    data = b64decode(held.blob) if text is None else text.encode("utf-8", "surrogatepass")
    kind = _one_of(held, "mime_type", "mimeType") or ("application/octet-stream" if text is None else "text/plain")
    return hostler.File(data, mime_type=kind, uri=str(held.uri))


def _link(value):
    return hostler.Link(value.uri, value.name, getattr(value, "title", None), value.description, _one_of(value, "mime_type", "mimeType"),
                        value.size)


def _coded(value):
    return hostler.File(b64decode(value.data), _one_of(value, "mime_type", "mimeType"))


def _helper(value):
    """`Image`, `Audio` and `File`, which tools make of a path or of bytes."""
    kind = getattr(value, "_mime_type", None)
    path = getattr(value, "path", None)
    return hostler.File(value.data if value.data is not None else path, kind, getattr(value, "_name", None))


_MCP = {
    "TextContent": lambda value: value.text,
    "ImageContent": _coded,
    "AudioContent": _coded,
    "EmbeddedResource": _resource,
    "ResourceLink": _link,
    "CallToolResult": _whole,
    "ToolResult": _whole,
    "Image": _helper,
    "Audio": _helper,
    "File": _helper,
}


def read_agno(value):
    if type(value).__name__ != "ToolResult":
        return value
    images = [image for image in value.images or () if getattr(image, "content", None)]
    shown = [hostler.Image(image.content) for image in images]
    return [value.content, *shown] if shown else value.content


def read_langchain(value):
    """What a tool says to its agent: a `ToolMessage`, or a `Command` with one."""
    if type(value).__name__ == "Command":
        update = value.update
        pairs = update.items() if isinstance(update, dict) else update if isinstance(update, list) else ()
        messages = next((messages for key, messages in pairs if key == "messages"), None)
        messages = messages if isinstance(messages, list) else [messages]
        said = [message for message in messages if type(message).__name__ == "ToolMessage"]
        if not said:
            return update
        return read_langchain(said[0]) if len(said) == 1 else [read_langchain(message) for message in said]
    if type(value).__name__ != "ToolMessage":
        return value
    if getattr(value, "status", None) == "error":
        raise ToolFailed(str(value.content))
    return value.content


def read_openai(value):
    if type(value).__name__ == "ToolOutputText":
        return value.text
    if type(value).__name__ == "ToolOutputImage" and str(value.image_url or "").startswith("data:"):
        kind, _, data = value.image_url[5:].partition(";base64,")
        return hostler.File(b64decode(data), kind)
    return value


def read_response(value):
    """An `HTMLResponse` and the like of FastAPI."""
    body = getattr(value, "body", None)
    if not isinstance(body, bytes):
        return value
    kind = (getattr(value, "media_type", None) or "text/plain").partition(";")[0]
    if kind == "application/json":
        return json.loads(body)
    return body.decode("utf-8", "replace") if kind.startswith("text/") else hostler.File(body, kind)


def read_pydantic_ai(value):
    """A `ToolReturn`: what the tool returns, and not what it says to its agent besides."""
    return value.return_value if type(value).__name__ == "ToolReturn" else value


READERS = {"pydantic_ai": read_pydantic_ai, "starlette": read_response, "fastapi": read_response, "mcp": read_mcp, "mcp_types": read_mcp, "fastmcp": read_mcp, "agno": read_agno, "agents": read_openai,
           "langchain_core": read_langchain, "langgraph": read_langchain}
