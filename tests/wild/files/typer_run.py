"""A script that typer runs."""

import typer


def main(name: str, times: int = typer.Option(1, help="How often."), polite: bool = typer.Option(True, "--polite")):
    """Greets."""
    for _ in range(times):
        print(f"Hello {name}{', please' if polite else ''}")


if __name__ == "__main__":
    typer.run(main)
