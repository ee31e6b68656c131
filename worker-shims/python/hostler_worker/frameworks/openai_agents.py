"""What openai-agents gives to its tools: a context whose `context` is the tool's settings."""

from ..state import state
from .call import Settings, call_id


def context(kind):
    values = {"context": Settings()}
    if kind.__name__ == "ToolContext":
        values |= {"tool_name": (state.params or {}).get("function", ""), "tool_call_id": call_id(), "tool_arguments": "{}"}
    try:
        return kind(**values)
    except Exception:  # of a release that takes others, or does not fit the client library beside it
        made = object.__new__(kind)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made
