"""Tools of an agent of Pydantic AI."""

import random

from pydantic_ai import Agent, FunctionToolset, RunContext, ToolReturn

agent = Agent("test", deps_type=str)


@agent.tool_plain
def roll(sides: int = 6) -> int:
    """Rolls a die."""
    return random.Random(1).randint(1, sides)


@agent.tool
async def player(ctx: RunContext[str], greeting: str) -> str:
    """Names the player."""
    return f"{greeting} {ctx.deps.user}"


@agent.tool_plain
def said() -> ToolReturn:
    """Tells the agent more than it returns."""
    return ToolReturn(return_value=7, content=["seven"], metadata={"kept": True})


def flip() -> str:
    """Flips a coin."""
    return "heads"


def tails() -> str:
    """Flips another one."""
    return "tails"


tools = FunctionToolset(tools=[flip])
tools.add_function(tails, name="coin")


@tools.tool_plain
def turn(side: str) -> str:
    """Turns it."""
    return side
