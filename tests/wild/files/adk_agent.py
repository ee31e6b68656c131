"""An agent of ADK, with a callback; and one that its class gives methods."""

from google.adk.agents import Agent
from google.adk.tools import LongRunningFunctionTool, ToolContext


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


def ask(amount: int) -> str:
    """Asks for money."""
    return f"asked for {amount}"


class Bank:
    made = []

    def __init__(self, owner="bob"):
        self.owner = owner
        self.made.append(owner)
        self.agent = Agent(name="bank", model="none", tools=[self.whose])

    def whose(self, account: int) -> str:
        """Says whose an account is."""
        return f"{account} is {self.owner}'s, {len(self.made)}"

    def close(self):
        self.agent = None


bank = Bank("ada")
root_agent = Agent(name="dice", model="none", instruction="Roll.", tools=[roll, spend, LongRunningFunctionTool(func=ask)], before_agent_callback=before)
