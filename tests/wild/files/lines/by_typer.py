# /// script
# dependencies = ["mcp==1.30.0", "typer==0.29.2"]
# ///
import typer
from mcp.server.fastmcp import FastMCP


def main(root: str = typer.Option(..., help="Where.")):
    mcp = FastMCP("places")

    @mcp.tool()
    def where() -> str:
        return root

    mcp.run()


if __name__ == "__main__":
    typer.run(main)
