import typer
import users
from setting import setup

app = typer.Typer()
app.add_typer(users.app, name="users")
app.command("set-up")(setup)
began = []


@app.callback()
def begin(verbose: bool = False):
    began.append(verbose)


@app.command()
def count() -> None:
    """Count the beginnings."""
    print(len(began))
