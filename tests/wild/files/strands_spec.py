"""A module of Strands that describes its tool."""

from typing import Any

from strands.types.tools import ToolResult, ToolUse

TOOL_SPEC = {
    "name": "convert",
    "description": "Converts a length.",
    "inputSchema": {
        "json": {
            "type": "object",
            "properties": {"metres": {"type": "number"}, "to": {"type": "string", "enum": ["feet", "miles"]}},
            "required": ["metres"],
        }
    },
}


def format_result(value: float, unit: str) -> str:
    return f"{value:.2f} {unit}"


def convert(tool: ToolUse, **kwargs: Any) -> ToolResult:
    asked = tool["input"]
    if asked["metres"] < 0:
        return {"toolUseId": tool["toolUseId"], "status": "error", "content": [{"text": "a length is not negative"}]}
    unit = asked.get("to", "feet")
    value = asked["metres"] * (3.28084 if unit == "feet" else 0.000621371)
    return {"toolUseId": tool["toolUseId"], "status": "success", "content": [{"text": format_result(value, unit)}]}
