from langchain_core.tools import BaseTool


class WordTool(BaseTool):
    """What the tools of this folder have in common."""

    words: dict[str, str] = {"tea": "a drink"}
