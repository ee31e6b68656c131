from llama_index.core.tools import FunctionTool


def multiply(a: int, b: int) -> int:
    """Multiplies."""
    return a * b


tools = [FunctionTool.from_defaults(fn=multiply, name="times", description="Multiplies two numbers.")]
