//! Commands of click and typer.

use serde_json::{Value, json};

use super::{file, names};

#[test]
fn a_group_may_have_a_class_of_its_own() {
    for group in [
        "class G(click.Group): ...\n@click.group(cls=G)\n",
        "from click_default_group import DefaultGroup\n@click.group(cls=DefaultGroup, default='show')\n",
        "class G(click.Group): ...\n@click.command(cls=G)\n",
    ] {
        let text = "@click.option('--loud', is_flag=True)\n@click.pass_context\ndef cli(ctx, loud): ...\n\
                    @cli.command('show-it')\n@click.argument('path')\n@click.pass_obj\ndef show(obj, path): ...\ndef helper(): ...\n";
        let found = file(&format!("import click\n{group}{text}"));
        assert_eq!(names(&found), ["show_it"], "{group}");
        let schema = found.functions[0].input_schema.read();
        assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["path", "loud"], "{group}");
    }
}

#[test]
fn decorators_of_click_declare_the_arguments() {
    let found = file(
        "import click\n\n\
         @click.group()\ndef cli():\n    pass\n\n\
         @cli.command('word-count', help='Counts.')\n\
         @click.argument('paths', nargs=-1, type=click.Path())\n\
         @click.argument('target', required=False)\n\
         @click.option('--limit', '-l', type=click.FloatRange(0, max=9, min_open=True), help='Most.')\n\
         @click.option('-v', '--verbose', count=True)\n\
         @click.option('--sort/--no-sort', default=True)\n\
         @click.option('--dry-run', is_flag=True)\n\
         @click.option('--size', type=click.Choice(['s', 'l']), required=True)\n\
         @click.option('--at', 'place', nargs=2, type=int)\n\
         @click.option('--key', prompt='Your key')\n\
         @click.option('--token', prompt=True, envvar='TOKEN')\n\
         @click.pass_context\n\
         def count(ctx, **given):\n    pass\n\n\
         def helper():\n    pass\n",
    );
    let [function] = &found.functions[..] else { panic!("{:?}", found.functions) };
    assert_eq!((function.name.as_str(), function.symbol.as_deref()), ("word_count", Some("count")));
    assert_eq!(function.description.as_deref(), Some("Counts."));
    let texts = json!({"type": "array", "items": {"type": "string", "format": "path"}});
    let expected = json!({
        "type": "object",
        "properties": {
            "paths": texts,
            "target": {"type": "string"},
            "limit": {"type": "number", "exclusiveMinimum": 0, "maximum": 9, "description": "Most."},
            "verbose": {"type": "integer"},
            "sort": {"type": "boolean", "default": true},
            "dry_run": {"type": "boolean"},
            "size": {"type": "string", "enum": ["s", "l"]},
            "place": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
            "key": {"type": "string"},
            "token": {"type": "string"},
        },
        "required": ["size", "key"],
        "additionalProperties": false,
    });
    assert_eq!(Value::Object(function.input_schema.read()), expected);
}

#[test]
fn parameters_of_typer_declare_the_arguments() {
    let found = file(
        "import typer\nfrom typing import Annotated\napp = typer.Typer()\n\n\
         @app.command()\n\
         def run(ctx: typer.Context, n: Annotated[int, typer.Option('--number', min=1)], force: bool = typer.Option(False, '--force'), \
         name: str = typer.Argument(..., help='Whose.')):\n    pass\n",
    );
    let expected = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "force": {"type": "boolean", "default": false},
            "name": {"type": "string", "description": "Whose."},
        },
        "required": ["n", "name"],
        "additionalProperties": false,
    });
    assert_eq!(Value::Object(found.functions[0].input_schema.read()), expected);
}

#[test]
fn a_click_command_with_decorators_of_its_own_file_takes_more() {
    let found =
        file("import click\nfrom own import shared\n\n@click.command()\n@shared\ndef run(**given):\n    pass\n");
    assert_eq!(Value::Object(found.functions[0].input_schema.read()), json!({"type": "object", "properties": {}}));
}

#[test]
fn parameters_are_called_what_click_calls_them() {
    let found = file(
        "import click\n@click.command()\n@click.option('--out', '--output')\n@click.option('-n', '--Number')\n\
         @click.option('--x', 'numBer')\n@click.option('-a/-b')\n@click.argument('FILE')\n\
         @click.option('--up', 'case', flag_value='up')\n@click.option('--down', 'case', flag_value='down')\n\
         @click.option('--pair', type=(str, int), default=('a', 1))\n@click.option('--kind', type=click.Choice(Kind), default=Kind.A)\n\
         def f(**given): ...\n",
    );
    let schema = found.functions[0].input_schema.read();
    let names: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["out", "number", "numBer", "a", "file", "case", "pair", "kind"]);
    assert_eq!(schema["properties"]["case"], json!({"type": "string", "enum": ["down", "up"]}));
    let pair = json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "maxItems": 2, "default": ["a", 1]});
    assert_eq!(schema["properties"]["pair"], pair);
    assert_eq!(schema["properties"]["kind"], json!({}));
}

#[test]
fn commands_are_made_by_calls_too() {
    let found = file(
        "import typer\napp = typer.Typer()\n@app.command()\ndef a(): ...\ndef b(): ...\ndef c(): ...\n\
         @app.command(hidden=True)\ndef d(): ...\napp.command('bee', help='B.')(b)\nif __name__ == '__main__':\n    app()\n",
    );
    assert_eq!(super::names(&found), ["a", "bee"]);
    let run = file(
        "import typer\ndef main(x: int): ...\ndef other(): ...\nif __name__ == '__main__':\n    typer.run(main)\n",
    );
    assert_eq!((super::names(&run), run.functions[0].symbol.as_deref()), (vec!["main"], Some("typer.run:main")));
}

#[test]
fn a_program_describes_its_command_line() {
    let found = file(
        "import argparse\ndef main():\n    p = argparse.ArgumentParser(description='Reports.')\n    \
         p.add_argument('name', help='Whose.')\n    p.add_argument('-n', '--times', required=True, choices=[1, 2])\n    \
         s = p.add_subparsers()\n    s.add_parser('greet', help='Greets.').add_argument('--loud', action='store_true')\n\
         if __name__ == '__main__':\n    main()\n",
    );
    let program = found.program.unwrap();
    let expected = "Reports.\n\nIts command line (`argv`):\n- `name`: Whose.\n- `-n`, `--times`, one of [1,2], required\n- command `greet`: Greets.\n\
                    - `--loud`";
    assert_eq!((program.name.as_str(), program.description.as_deref()), ("main", Some(expected)));
    assert!(file("def f(): ...\n").program.is_none());
    for text in ["print(1)\n", "def f(): ...\nif f():\n    print(1)\nwith f(): ...\n", "def main(): ...\nmain()\n"] {
        assert!(file(text).program.is_some(), "{text}");
    }
}

#[test]
fn groups_above_give_their_options_and_their_names() {
    let found = file(
        "import click\n@click.group()\n@click.option('--url', required=True)\n@click.option('--name')\ndef cli(url, name): ...\n\
         @cli.group('db')\n@click.option('--dry', is_flag=True)\ndef database(dry): ...\n\
         @database.command('list')\n@click.option('--name', default='x')\ndef list_db(name): ...\n\
         @database.command()\ndef db_drop(): ...\n\
         @cli.command('list')\ndef list_all(): ...\n\
         @click.command(cls=click.Group)\ndef other(): ...\n@other.command()\ndef inner(): ...\n\
         @click.command()\ndef added(): ...\ncli.add_command(added)\n",
    );
    let described: Vec<_> = found.functions.iter().map(|one| (one.name.as_str(), one.symbol())).collect();
    let expected =
        [("db_list", "list_db"), ("db_drop", "db_drop"), ("list", "list_all"), ("inner", "inner"), ("added", "added")];
    assert_eq!(described, expected);
    let schema = found.functions[0].input_schema.read();
    let keys: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((keys, &schema["required"]), (vec!["name", "dry", "url"], &json!(["url"])));
    assert_eq!(schema["properties"]["name"], json!({"type": "string", "default": "x"}), "the command's own");
    assert_eq!(found.functions[4].input_schema.read()["required"], json!(["url"]));
    let typer = file(
        "import typer\napp = typer.Typer()\nusers = typer.Typer()\nmerged = typer.Typer()\napp.add_typer(users, name='users')\n\
         app.add_typer(merged)\n@app.callback()\ndef main(loud: bool = False): ...\n@users.command()\ndef add(name: str): ...\n\
         @merged.command()\ndef show(): ...\n",
    );
    let names: Vec<_> = typer.functions.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["users_add", "show"]);
    let schema = typer.functions[0].input_schema.read();
    assert_eq!(
        schema["properties"],
        json!({"name": {"type": "string"}, "loud": {"type": "boolean", "default": false}})
    );
}

#[test]
fn groups_in_a_circle_are_read_in_bounded_time() {
    file("import click\n@a.command(cls=click.Group)\ndef a(): ...\n");
    file(
        "import click\nclass G(click.Group): ...\n@click.group()\ndef cli(): ...\n@cli.command(cls=G)\ndef cli(): ...\n",
    );
    file(
        "import click\n@b.group()\ndef a(): ...\n@a.group()\ndef b(): ...\n@b.command()\ndef f(): ...\na.add_command(a)\n",
    );
}
