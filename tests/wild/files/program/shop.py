import click
from commands import orders
from commands.stock import stock as stock_group


@click.group()
@click.option("--user", default="nobody")
@click.pass_context
def cli(ctx, user):
    ctx.obj = {"user": user}


cli.add_command(stock_group)
cli.add_command(orders.place, name="order")


def run():
    cli()


if __name__ == "__main__":
    run()
