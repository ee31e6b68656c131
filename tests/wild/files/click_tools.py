"""Commands of click: one alone, and two of a group."""

import logging
import sys
import threading

import click


@click.command()
@click.option("--count", "-c", default=1, type=click.IntRange(1, 5), help="How often.")
@click.option("--shout/--no-shout", default=False, help="In capitals.")
@click.option("--tag", "tags", multiple=True, help="More words.")
@click.argument("name")
def greet(count, shout, tags, name):
    """Greets somebody."""
    for _ in range(count):
        click.echo(" ".join([name.upper() if shout else name, *tags]))


def with_format(function):
    return click.option("--format", "form", type=click.Choice(["plain", "loud"]), default="plain")(function)


@click.group()
@click.option("--unit", default="words", help="What is counted.")
@click.option("--limit", type=int, default=1)
@click.pass_context
def cli(context, unit, limit):
    """Tools for files."""
    context.obj.update(unit=unit, seen=context.obj["seen"] + 1, outer=limit)


@cli.group("store")
@click.option("--path", required=True)
@click.pass_obj
def store_group(settings, path):
    settings["path"] = path


@store_group.command()
@click.option("--key", default="all")
@click.pass_obj
def keep(settings, key):
    """Keeps something."""
    click.echo(" ".join(map(str, [settings["path"], key, settings["unit"], settings["outer"], settings["seen"]])))


@cli.command("word-count", help="Counts words.")
@click.argument("words", nargs=-1)
@click.option("--limit", type=int, required=True)
@with_format
@click.pass_obj
def count(settings, words, limit, form):
    if len(words) > limit:
        raise click.UsageError(f"more than {limit} words")
    print(len(words), settings["unit"] + ("!" if form == "loud" else ""))


@cli.command()
@click.option("--code", default=3)
def leaves(code):
    """Ends with a status."""
    click.echo("leaving")
    sys.exit(code) if code > 9 else click.get_current_context().exit(code)


@click.command
@click.password_option()
@click.confirmation_option()
def reset(password):
    """Writes bytes, and ends in the middle."""
    click.echo(password.encode())
    sys.exit(0)


@click.command()
@click.option("--out", "--output", default="-")
@click.option("--pair", nargs=2, type=int, default=(0, 0))
@click.option("--upper", "case", flag_value="upper", default="lower")
@click.option("--lower", "case", flag_value="lower")
@click.option("--color", is_flag=True, default=True)
@click.option("--point", type=(str, int), multiple=True)
@click.option("--name", prompt=True, default="nobody")
@click.argument("first", required=False)
@click.argument("second", required=False)
def forms(**given):
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level="INFO")
    logging.info("%s", sorted(given.items()))
    threading.Timer(0.05, print, ["later"]).start()


def helper():
    """No command."""


if __name__ == "__main__":
    cli(obj={"seen": 0})
