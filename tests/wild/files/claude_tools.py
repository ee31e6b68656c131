"""Tools of Claude's SDK: their arguments stand in the decorator, and arrive as one dictionary."""

from typing import Annotated, TypedDict

from claude_agent_sdk import create_sdk_mcp_server, tool


class Search(TypedDict):
    query: Annotated[str, "What to look for."]
    limit: int


@tool("add", "Adds two numbers.", {"a": float, "b": float})
async def add_numbers(args):
    return {"content": [{"type": "text", "text": f"{args['a'] + args['b']}"}]}


@tool("find", "Finds things.", Search)
async def find(args: dict) -> dict:
    return {"content": [{"type": "text", "text": args["query"]}, {"type": "text", "text": str(args["limit"])}]}


@tool("divide", "Divides.", {"type": "object", "properties": {"by": {"type": "integer", "minimum": 0}}, "required": ["by"]})
async def divide(args):
    if args["by"] == 0:
        return {"content": [{"type": "text", "text": "by zero"}], "is_error": True}
    return {"content": [{"type": "text", "text": str(12 // args["by"])}]}


server = create_sdk_mcp_server(name="numbers", tools=[add_numbers, find, divide])
