"""A server of the SDK's low level: one handler lists the tools, another one is called for all of them."""

import asyncio
from contextlib import asynccontextmanager
from enum import Enum

import mcp.types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, Field

NOTE = "The text of the note, "
TEXT = {"type": "string", "description": NOTE}


class Names(str, Enum):
    REMOVE = "remove-note"


class Found(BaseModel):
    words: list[str] = Field(min_length=1)
    limit: int = 10


@asynccontextmanager
async def lifespan(server):
    yield {"notes": []}


app = Server("notes", lifespan=lifespan)


@app.list_tools()
async def list_tools() -> list[types.Tool]:
    """Lists the tools."""
    return [
        types.Tool(
            name="add_note",
            description="Adds a note, " "and counts them.",
            inputSchema={
                "type": "object",
                "properties": {"text": TEXT, "tags": {"type": "array", "items": {"type": "string"}}, "size": {"enum": sizes()}},
                "required": ["text"],
            },
            annotations=types.ToolAnnotations(idempotentHint=True),
        ),
        types.Tool(name=Names.REMOVE.value, inputSchema={"type": "object", "properties": {}}),
        types.Tool(name="find", description="Finds notes.", inputSchema=Found.model_json_schema()),
    ]


@app.call_tool()
async def call_tool(name: str, arguments: dict) -> list[types.TextContent]:
    context = app.request_context
    notes = context.lifespan_context["notes"]
    if name == "add_note":
        notes.append(arguments["text"])
        await context.session.send_log_message("info", f"{len(notes)} notes")
        await context.session.send_progress_notification(context.meta.progressToken, 1, 1)
        return [types.TextContent(type="text", text=f"{len(notes)} {arguments.get('size')}")]
    if name == "find":
        found = [note for note in notes if any(word in note for word in arguments["words"])]
        return [types.TextContent(type="text", text=note) for note in found]
    if not notes:
        return types.CallToolResult(content=[types.TextContent(type="text", text="there are no notes")], isError=True)
    raise ValueError(f"nothing to remove with {name}")


def sizes():
    return ["a", "b"]


async def main():
    async with stdio_server() as (read, write):
        await app.run(read, write, app.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
