"""A toolkit of CAMEL: its tools are made of its methods."""

from camel.toolkits import FunctionTool
from camel.toolkits.base import BaseToolkit
from camel.utils import MCPServer


@MCPServer()
class WordsToolkit(BaseToolkit):
    def __init__(self, timeout=None):
        super().__init__(timeout=timeout)
        self.said = []

    def say(self, text: str, times: int = 1) -> str:
        r"""Repeats a string.

        Args:
            text (str): What to say.
        """
        self.said.append(text)
        return " ".join([text] * times) + f" {len(self.said)}"

    def get_tools(self):
        return [FunctionTool(self.say)]
