//! Commands of click and typer.

use serde_json::{Value, json};

use super::file;

#[test]
fn decorators_of_click_declare_the_arguments() {
    let found = file(
        "import click\n\n\
         @click.group()\ndef cli():\n    pass\n\n\
         @cli.command('word-count', help='Counts.')\n\
         @click.argument('paths', nargs=-1, type=click.Path())\n\
         @click.argument('target', required=False)\n\
         @click.option('--limit', '-l', type=click.FloatRange(0, max=9), help='Most.')\n\
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
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let expected = json!({
        "type": "object",
        "properties": {
            "paths": texts,
            "target": {"type": "string"},
            "limit": {"type": "number", "minimum": 0, "maximum": 9, "description": "Most."},
            "verbose": {"type": "integer"},
            "sort": {"type": "boolean", "default": true},
            "dry_run": {"type": "boolean"},
            "size": {"type": "string", "enum": ["s", "l"]},
            "place": {"type": "array", "items": {"type": "integer"}},
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
    assert!(file("print(1)\n").program.is_some());
}
