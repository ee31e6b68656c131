"""What openai-agents gives to its tools: a context whose `context` is the tool's settings."""

from ..state import state
from .langchain import _Settings


def context(kind):
    values = {"context": _Settings()}
    if kind.__name__ == "ToolContext":
        call = (state.params or {}).get("call") or {}
        values |= {"tool_name": (state.params or {}).get("function", ""), "tool_call_id": call.get("id") or "", "tool_arguments": "{}"}
    try:
        return kind(**values)
    except Exception:  # of a release that takes others, or does not fit the client library beside it
        made = object.__new__(kind)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made
