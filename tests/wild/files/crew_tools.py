"""Tools of a crew."""
from typing import List, Optional, Type

from crewai.tools import BaseTool, EnvVar, tool
from pydantic import BaseModel, Field, PrivateAttr


@tool("Word counter", result_as_answer=True, max_usage_count=2)
def count_words(text: str, minimum: int = 1) -> int:
    """Counts the words of a text."""
    return sum(len(word) >= minimum for word in text.split())


@tool
async def shout(text: str) -> str:
    """Returns a text in upper case."""
    return text.upper()


class LookupInput(BaseModel):
    """What to look up."""
    key: str = Field(..., description="A key.")
    others: Optional[List[str]] = Field(default=None, description="Further keys.")


class LookupTool(BaseTool):
    name: str = "Look up"
    description: str = "Looks keys up."
    args_schema: Type[BaseModel] = LookupInput
    env_vars: List[EnvVar] = [EnvVar(name="LOOKUP_KEY", description="A key", required=False)]
    prefix: str = "value of"
    _seen: List[str] = PrivateAttr(default_factory=list)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._seen.append("made")

    def _run(self, key: str, others: Optional[List[str]] = None) -> str:
        self._seen.append(key)
        return f"{self.prefix} {', '.join([key, *(others or [])])} ({len(self._seen)})"


class DayTool(BaseTool):
    name: str = "day"
    description: str = "Names a day."

    def _run(self, number: int) -> str:
        return ["Monday", "Tuesday"][number]

    async def _arun(self, number: int) -> str:
        return self._run(number)
