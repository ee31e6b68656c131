# /// script
# requires-python = ">=3.9"
# dependencies = []
# ///
"""What every real client does once."""

import time
from dataclasses import dataclass

import hostler


@dataclass
class Order:
    name: str
    count: int = 1


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def big(megabytes: int):
    """Return a long text."""
    return "x" * (megabytes << 20)


def steps() -> str:
    """Report progress."""
    for done in (1, 2, 3):
        hostler.progress(done, 3)
        time.sleep(0.05)  # TypeScript clients drop progress that comes in one piece with the answer
    return "done"


def order() -> dict[str, object]:
    """Ask the user."""
    answer = hostler.elicit("Who orders?", Order)
    return {"action": answer.action, "name": answer.data.name, "count": answer.data.count}


def model() -> str:
    """Ask the model."""
    return hostler.llm("What is it?")


def roots() -> list[str]:
    """Ask for folders."""
    return [root.path for root in hostler.roots()]
