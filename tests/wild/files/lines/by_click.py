# /// script
# dependencies = ["mcp==1.30.0", "click==8.5.1"]
# ///
import click
from mcp.server.fastmcp import FastMCP


@click.command()
@click.option("--root", required=True)
@click.argument("rest")
def main(root, rest):
    mcp = FastMCP("places")

    @mcp.tool()
    def where() -> str:
        return root

    mcp.run()


if __name__ == "__main__":
    main()
