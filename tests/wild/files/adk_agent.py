"""An agent of ADK, with a callback."""

from google.adk.agents import Agent
from google.adk.tools import ToolContext


def roll(sides: int, tool_context: ToolContext) -> list[int]:
    """Rolls a die."""
    rolled = tool_context.state.setdefault("rolled", [])
    rolled.append(sides)
    tool_context.actions.skip_summarization = True
    return rolled


def spend(amount: int, tool_context: ToolContext = None) -> int:
    return tool_context.session.budget - amount


def before(callback_context):
    """Called by ADK."""


root_agent = Agent(name="dice", model="none", instruction="Roll.", tools=[roll, spend], before_agent_callback=before)
