"""Tools of an agent of Pydantic AI."""

import random

from pydantic_ai import Agent, RunContext

agent = Agent("test", deps_type=str)


@agent.tool_plain
def roll(sides: int = 6) -> int:
    """Rolls a die."""
    return random.Random(1).randint(1, sides)


@agent.tool
async def player(ctx: RunContext[str], greeting: str) -> str:
    """Names the player."""
    return f"{greeting} {ctx.deps.user}"
