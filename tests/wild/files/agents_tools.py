"""Tools of openai-agents."""

from typing_extensions import TypedDict

from agents import RunContextWrapper, function_tool


class Place(TypedDict):
    lat: float
    long: float


@function_tool
async def weather(place: Place) -> str:
    """Tells the weather of a place.

    Args:
        place: Where.
    """
    return f"sunny at {place['lat']}"


@function_tool(name_override="fetch_data", description_override="Reads a file.")
def read(ctx: RunContextWrapper, path: str, directory: str | None = None) -> str:
    return f"{ctx.context.user}:{directory or ''}/{path}"


@function_tool(strict_mode=False)
def fails(word: str) -> str:
    """Fails."""
    raise ValueError(word)
