"""A server of the SDK's low level in its second version: it is given its handlers."""

from contextlib import asynccontextmanager

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool


@asynccontextmanager
async def lifespan(server):
    yield {"notes": []}


async def handle_list_tools(ctx: ServerRequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
    """Lists the tools."""
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return ListToolsResult(tools=[Tool(name="add-note", description="Adds a note.", input_schema=text),
                                  Tool(name="fail", input_schema={"type": "object"})])


async def handle_call_tool(ctx: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
    """Calls a tool."""
    if params.name == "fail":
        return CallToolResult(content=[TextContent(type="text", text="it failed")], is_error=True)
    notes = ctx.lifespan_context["notes"]
    notes.append((params.arguments or {})["text"])
    return CallToolResult(content=[TextContent(type="text", text=f"{len(notes)} {params.name}")])


server = Server("notes", lifespan=lifespan, on_list_tools=handle_list_tools, on_call_tool=handle_call_tool)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
