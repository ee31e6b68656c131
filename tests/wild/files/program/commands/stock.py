import click


@click.group(name="stock")
@click.pass_obj
def stock(obj):
    click.echo("stock of %s" % obj["user"])


@stock.command("list")
@click.argument("kind")
@click.option("--many", type=int, default=1, help="How many.")
def list_all(kind, many):
    """List what there is."""
    click.echo(" ".join([kind] * many))
