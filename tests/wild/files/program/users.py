from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def add(name: str, age: Annotated[int, typer.Option(min=0)] = 3):
    """Add a user."""
    typer.echo(f"{name} {age}")
