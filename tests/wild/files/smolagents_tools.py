"""Tools of smolagents: a function and a class."""

from smolagents import Tool, tool


@tool
def most_liked(task: str, count: int = 1) -> str:
    """Finds the most liked models.

    Args:
        task: What they do.
        count: How many.
    """
    return f"{count} for {task}"


class Downloads(Tool):
    name = "model_downloads"
    description = "Counts downloads."
    inputs = {
        "model": {"type": "string", "description": "Its name."},
        "days": {"type": "integer", "description": "How long.", "nullable": True},
    }
    output_type = "string"

    def setup(self):
        self.ready = True
        self.is_initialized = True

    def forward(self, model: str, days: int = None) -> str:
        return f"{model} {days} {self.ready}"
