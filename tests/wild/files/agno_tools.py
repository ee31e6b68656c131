"""Tools of agno: functions and a toolkit."""

from agno.agent import Agent
from agno.run import RunContext
from agno.tools import Toolkit, tool


@tool(name="top_stories", description="Lists stories.", show_result=True)
def stories(count: int = 2) -> list[int]:
    return list(range(count))


@tool
def remember(item: str, run_context: RunContext) -> list[str]:
    """Keeps an item."""
    kept = run_context.session_state.setdefault("items", [])
    kept.append(item)
    return kept


@tool
def count(session_state: dict) -> int:
    """Counts."""
    session_state["count"] = session_state.get("count", 0) + 1
    return session_state["count"]


def who(agent: Agent, greeting: str, session_state: dict) -> str:
    """Greets."""
    return f"{greeting} {agent} {session_state.get('count', 0) > 0}"


assistant = Agent(tools=[who])


class Calculator(Toolkit):
    def __init__(self, precision: int = 2, **kwargs):
        self.precision = precision
        super().__init__(name="calculator", tools=[self.divide], **kwargs)
        self.register(self.up, name="round_up")

    def divide(self, a: float, b: float) -> float:
        """Divides."""
        return round(a / b, self.precision)

    def up(self, a: float) -> int:
        """Rounds up."""
        return int(-(-a // 1))

    def helper(self):
        """Not registered."""
