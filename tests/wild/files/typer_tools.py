"""Commands of typer."""

from enum import Enum
from typing import Annotated, Optional

import typer

app = typer.Typer()
users = typer.Typer()
app.add_typer(users, name="users")
settings = {}


class Size(str, Enum):
    small = "small"
    large = "large"


@app.command()
def order(
    item: str,
    amount: Annotated[int, typer.Option(help="How many.", min=1)] = 2,
    size: Size = Size.small,
    gift: bool = False,
    note: Optional[str] = typer.Option(None, help="A text."),
):
    """Orders something."""
    print(f"{amount} {size.value} {item}{' as a gift' if gift else ''}{': ' + note if note else ''}")


@app.callback()
def prepare(shop: str = "corner shop"):
    """What all commands need."""
    settings["shop"] = shop


@users.command()
def add(name: str, context: typer.Context, admin: Annotated[bool, typer.Option("--admin", "-a")] = False):
    """Adds a user."""
    print(f"{context.info_name} {name} of {settings['shop']}{', who may do all' if admin else ''}")


@app.command("cancel-order")
def cancel(number: int = typer.Argument(..., help="Which one.")):
    """Cancels an order."""
    if number < 0:
        raise typer.Exit(2)
    typer.echo(f"cancelled {number}")


if __name__ == "__main__":
    app()
