"""A plugin of Semantic Kernel: the decorated methods of a class."""

from typing import Annotated

from semantic_kernel.functions import kernel_function


class Lights:
    def __init__(self):
        self.on = {"porch": False}

    @kernel_function(name="get_state", description="Says whether a light is on.")
    def state(self, name: Annotated[str, "Which one."]) -> Annotated[bool, "Whether it is on."]:
        return self.on[name]

    @kernel_function
    async def change(self, name: str, on: bool = True) -> str:
        """Turns a light on or off."""
        self.on[name] = on
        return f"{name} {on}"

    def helper(self):
        """No tool."""
