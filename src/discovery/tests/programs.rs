//! Programs of click and typer in several files.

use super::several::served;

const PRODUCTS: &str = "import click\n@click.group()\ndef products(): ...\n@products.command('list')\ndef list_products(): ...\n\
                        @products.group()\ndef stock(): ...\n@stock.command()\ndef count(): ...\ndef helper(): ...\n";
const USERS: &str = "import typer\napp = typer.Typer(name='people')\n@app.command()\ndef add(name: str): ...\n@app.command('all')\ndef every(): ...\n";

#[test]
fn groups_of_other_files_have_their_words() {
    let cli = "import click\nfrom commands.products import products\nfrom commands import cart\n@click.group()\ndef cli(): ...\n@cli.group('do')\n\
               def doing(): ...\ndoing.add_command(products)\ncli.add_command(cart.cart, name='basket')\ndef safe(): cli()\n";
    let cart = "import click\nfrom .more import extra\n@click.group()\ndef cart(): ...\ncart.add_command(extra, 'extra-one')\n@cart.command()\ndef show(): ...\n";
    let more = "import click\n@click.command()\ndef extra(): ...\n@click.command()\ndef apart(): ...\n";
    let files = [
        ("cli.py", cli),
        ("commands/__init__.py", ""),
        ("commands/products.py", PRODUCTS),
        ("commands/cart.py", cart),
        ("commands/more.py", more),
    ];
    assert_eq!(
        served(&files),
        [
            "cli.do_products_list beside:commands/products.py:list_products",
            "cli.do_products_stock_count beside:commands/products.py:count",
            "cli.basket_show beside:commands/cart.py:show",
            "cli.basket_extra_one beside:commands/more.py:extra",
        ]
    );
}

#[test]
fn applications_of_other_files_have_their_words() {
    let main = "import typer\nimport users\nfrom tools import app as tools_app\nfrom setup import setup\n\
                app = typer.Typer()\napp.add_typer(users.app)\napp.add_typer(tools_app, name='kit')\napp.command('set-up')(setup)\n\
                @app.command()\ndef own(): ...\n";
    let tools = USERS.replace("name='people'", "");
    let setup = "import typer\ndef setup(key: str = typer.Option('x')): ...\ndef helper(): ...\n";
    let files = [("main.py", main), ("users.py", USERS), ("tools.py", &tools), ("setup.py", setup)];
    assert_eq!(
        served(&files),
        [
            "main.own own",
            "main.people_add beside:users.py:add",
            "main.people_all beside:users.py:every",
            "main.kit_add beside:tools.py:add",
            "main.kit_all beside:tools.py:every",
            "main.set_up beside:setup.py:setup",
        ]
    );
}

#[test]
fn only_what_a_program_takes_whole_is_no_tool_file() {
    let mcp = "from fastmcp import FastMCP\nimport click\nmcp = FastMCP('x')\n@mcp.tool\ndef search(): ...\n@click.command()\ndef serve(): ...\n";
    let cli = "import click\nfrom server import serve\n@click.group()\ndef cli(): ...\ncli.add_command(serve)\n";
    assert_eq!(served(&[("server.py", mcp), ("cli.py", cli)]), ["server.search search", "server.serve serve"]);
    let foreign =
        "import click\nfrom uvicorn import main\nimport lib\n@click.group()\ndef cli(): ...\ncli.add_command(main)\n";
    assert_eq!(served(&[("cli.py", foreign), ("lib.py", "def main(path): ...\n")]), [""; 0]);
}

#[test]
fn programs_that_attach_each_other_end() {
    let group = |name: &str, other: &str| {
        let own = format!(
            "import click\nimport {other}\n@click.group()\ndef {name}(): ...\n@{name}.command()\ndef of_{name}(): ...\n"
        );
        (0..8).fold(own, |text, number| format!("{text}{name}.add_command({other}.{other}, 'x{number}')\n"))
    };
    let (a, b, c) = (group("a", "b"), group("b", "c"), group("c", "b"));
    let found = served(&[("a.py", &a), ("b.py", &b), ("c.py", &c)]);
    assert_eq!(found.iter().filter(|one| one.starts_with("a.")).count(), 1 + 8 + 8 * 8);
    let empty = |own: usize| {
        let start = format!("import click\n@click.group()\ndef g{own}(): ...\n");
        (0..14).fold(start, |text, other| format!("{text}import b{other}\ng{own}.add_command(b{other}.g{other})\n"))
    };
    let files: Vec<_> = (0..14).map(|number| (format!("b{number}.py"), empty(number))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(served(&files), [""; 0]);
}

#[test]
fn commands_are_those_of_the_named_file() {
    let main = "import typer\nfrom commands import users, orders\napp = typer.Typer()\napp.add_typer(users.app, name='u')\napp.add_typer(orders.app, name='o')\n";
    let of = |name: &str| {
        format!(
            "import typer\napp = typer.Typer()\n@app.command()\ndef {name}(): ...\n@app.command()\ndef also_{name}(): ...\n"
        )
    };
    let (users, orders) = (of("add"), of("drop"));
    let files = [
        ("main.py", main),
        ("commands/__init__.py", ""),
        ("commands/users/__init__.py", "from .cli import app\n"),
        ("commands/users/cli.py", &users),
        ("commands/orders/__init__.py", "from .cli import app\n"),
        ("commands/orders/cli.py", &orders),
    ];
    assert_eq!(
        served(&files),
        [
            "main.u_add beside:commands/users/cli.py:add",
            "main.u_also_add beside:commands/users/cli.py:also_add",
            "main.o_drop beside:commands/orders/cli.py:drop",
            "main.o_also_drop beside:commands/orders/cli.py:also_drop",
        ]
    );
}

#[test]
fn a_program_without_commands_has_no_tools() {
    for text in [
        "import click\n@click.group()\ndef cli(): ...\ndef safe(): cli()\n",
        "import typer\napp = typer.Typer()\ndef helper(): ...\n",
    ] {
        assert_eq!(served(&[("cli.py", text)]), [""; 0], "{text}");
    }
    // No program attaches it.
    assert_eq!(
        served(&[("users.py", USERS), ("other.py", "import users\ndef f(): ...\n")]),
        ["other.f f", "users.add add", "users.all every"]
    );
}
