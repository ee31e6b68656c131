from app import mcp

_notes = []


@mcp.tool()
def keep(text: str) -> int:
    """Keeps a note."""
    _notes.append(text)
    return len(_notes)
