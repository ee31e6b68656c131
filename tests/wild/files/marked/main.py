from app import mcp
import tools.notes  # noqa: F401


def main():
    mcp.run()
