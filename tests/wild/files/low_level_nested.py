"""Servers of the SDK's low level in its second version that functions make: one has its handlers within it, one is a class with methods."""

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext


@dataclass
class Shelf:
    notes: list[str] = field(default_factory=list)


@asynccontextmanager
async def opened(server: Server[Shelf]):
    yield Shelf()


TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def build_server() -> Server[Shelf]:
    async def list_tools(ctx: ServerRequestContext, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="keep-note", description="Keeps a note.", input_schema=TEXT)])

    async def call_tool(ctx: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        shelf = ctx.lifespan_context
        shelf.notes.append(params.arguments["text"])
        return types.CallToolResult(content=[types.TextContent(text=f"{params.name}: {', '.join(shelf.notes)}")])

    return Server[Shelf]("notes", lifespan=opened, on_list_tools=list_tools, on_call_tool=call_tool)


class Counter:
    def __init__(self, step: int = 2):
        self.count, self.step = 0, step
        self.server = Server("counter", on_list_tools=self.listed, on_call_tool=self.called)

    async def listed(self, ctx, params) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="count", input_schema={"type": "object"})])

    async def called(self, ctx, params) -> types.CallToolResult:
        self.count += self.step
        return types.CallToolResult(content=[types.TextContent(text=str(self.count))])


def run_from_args(build):
    build().run()


if __name__ == "__main__":
    run_from_args(build_server)
