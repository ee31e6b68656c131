"""Tools of Strands Agents: functions, and methods of a class."""

from strands import Agent, ToolContext, tool


@tool
def letters(word: str, letter: str) -> int:
    """Counts a letter in a word.

    Args:
        word: Where.
        letter: What.
    """
    return word.count(letter)


@tool
def alone(word: str, agent: object = None) -> str:
    """Says whether it has an agent."""
    return f"{word} {agent is None}"


@tool(name="whoami", context=True)
def who(greeting: str, tool_context: ToolContext) -> str:
    """Greets."""
    return f"{greeting} {bool(tool_context.tool_use['toolUseId'])}"


@tool
def keep(text: str) -> dict:
    """Keeps a text."""
    if text == "nothing":
        return {"status": "error", "content": [{"text": "there is nothing"}]}
    return {"status": "success", "content": [{"text": f"kept {text}"}]}


@tool
def pages() -> dict:
    """Lists pages."""
    return {"content": [{"text": "x"}], "next_page": "abc"}


@tool(inputSchema={"json": {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}, "required": ["colour"]}})
def paint(colour: str) -> str:
    """Paints."""
    return f"{colour} paint"


class Database:
    def __init__(self, dsn: str = "memory"):
        self.dsn = dsn

    @tool
    def query(self, sql: str) -> dict:
        """Asks the database."""
        return {"dsn": self.dsn, "sql": sql}

    @tool
    def drop(self, text: str) -> dict:
        """Drops a text."""
        return {"status": "error", "content": [{"text": "there is nothing"}]}


def build(prefix: str = "x"):
    @tool
    def stamp(text: str) -> str:
        """Stamps a text."""
        return f"{prefix} {text}"

    return Agent(tools=[stamp])
