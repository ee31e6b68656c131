# /// script
# requires-python = ">=3.9"
# dependencies = []            # packages it imports, such as "httpx>=0.27"; installed on demand
#
# [tool.hostler]               # all optional; `hostler show TOOL` lists them
# effects = "pure"             # the effect of repeating a call: "pure", "idempotent" or "once"
# ///
"""Describe this file in one line."""


def greet(name: str, times: int = 1) -> str:
    """Greet somebody. A model chooses the tool by this line.

    Args:
        name: Whom to greet.
        times: How often.
    """
    return " ".join([f"Good morning, {name}!"] * times)
