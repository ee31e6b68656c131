"""Tools of LangChain: decorated functions, a structured tool of a plain function, a class."""

from functools import wraps
from typing import Annotated, Optional, Type

from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from pydantic import BaseModel, Field


class Search(BaseModel):
    """What to look for."""

    query: str = Field(description="Words to look for")
    limit: int = Field(default=3, description="How many", ge=1)


@tool
def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


@tool("search-tool", args_schema=Search, return_direct=True)
def search(query: str, limit: int) -> list[str]:
    """Searches."""
    return [f"{query} {place}" for place in range(limit)]


@tool(args_schema={"type": "object", "properties": {"sides": {"type": "integer", "minimum": 2}}, "required": ["sides"]})
def largest(sides, count=1):
    """Says the most that dice can show."""
    return sides * count


@tool
async def whose(item: str, user: Annotated[str, InjectedToolArg], call: Annotated[str, InjectedToolCallId], config: RunnableConfig) -> str:
    """Says whose it is."""
    return f"{item} is {user}'s, {len(call)}, {config['configurable']['user']}"


@tool
def greet(name: str, greeting: Annotated[str, InjectedToolArg] = "Hello") -> str:
    """Greets."""
    return f"{greeting}, {name}!"


@tool(response_format="content_and_artifact")
def measured(text: str) -> tuple[str, dict]:
    """Measures."""
    return f"{len(text)} characters", {"length": len(text)}


@tool
def keep(text: str, call: Annotated[str, InjectedToolCallId]):
    """Keeps a text, and says so to the agent."""
    return ToolMessage(f"kept {text}", tool_call_id=call, status="error" if text == "nothing" else "success")


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


adding = StructuredTool.from_function(func=add, name="Adder", description="Adds two numbers.")


class Weather(BaseTool):
    name: str = "weather"
    description: str = "Tells the weather."
    args_schema: Type[BaseModel] = Search

    def _run(self, query: str, limit: int, run_manager: Optional[CallbackManagerForToolRun] = None) -> str:
        return f"{query}: {'sun ' * limit}".strip()


class Browse(BaseTool):
    name: str = "browse"
    description: str = "Opens a page."

    def _run(self, url: str) -> str:
        raise NotImplementedError("it waits")

    async def _arun(self, url: str) -> str:
        return f"page {url}"


def loud(function):
    @wraps(function)
    def louder(*args, **kwargs):
        return function(*args, **kwargs) + "!"

    return louder


def build_tools():
    @tool
    @loud
    def shout(text: str) -> str:
        """Shouts."""
        return text.upper()

    return [shout]
