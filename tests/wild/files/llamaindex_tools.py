from llama_index.core.tools import FunctionTool
from llama_index.core.tools.tool_spec.base import BaseToolSpec


def multiply(a: int, b: int) -> int:
    """Multiplies."""
    return a * b


tools = [FunctionTool.from_defaults(fn=multiply, name="times", description="Multiplies two numbers.")]


class Notes(BaseToolSpec):
    spec_functions = ["add", ("read", "aread")]

    def __init__(self) -> None:
        self.notes: list[str] = []

    def add(self, text: str) -> int:
        """Adds a note."""
        self.notes.append(text)
        return len(self.notes)

    def read(self) -> list[str]:
        """Reads all notes."""
        return self.notes

    async def aread(self) -> list[str]:
        return self.notes

    def forget(self) -> None:
        self.notes.clear()
