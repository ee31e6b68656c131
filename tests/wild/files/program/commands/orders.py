import click


@click.command()
@click.argument("item")
@click.pass_obj
def place(obj, item):
    """Place an order."""
    click.echo("%s wants %s" % (obj["user"], item))
