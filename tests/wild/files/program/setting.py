import typer


def setup(key: str = typer.Option("none", help="A key.")):
    """Set something up."""
    print("key", key)
