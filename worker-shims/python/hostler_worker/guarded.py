"""Names that a module has for type checkers only: what is under `if TYPE_CHECKING:`.

Schemas are read from the text, where such a name means its type. So it is imported when an annotation turns out to need it.
"""

import sys

_found = {}  # by the module's file


def names_of(namespace):
    """By name, what there is under `if TYPE_CHECKING:` of the module with this namespace, as far as it can be imported."""
    file = namespace.get("__file__")
    if file not in _found:
        _found[file] = {}  # meanwhile: what is imported may ask, too
        _found[file] = _run(file, dict(namespace))
    return _found[file]


def _run(file, place):
    import ast

    known = set(place)
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (TypeError, OSError, SyntaxError, ValueError):
        return {}
    for block in tree.body:
        if isinstance(block, ast.If) and _is_for_checkers(block.test):
            for one in (part for statement in block.body for part in _parts(ast, statement)):
                try:
                    if not _runs_a_loaded_file_again(ast, one, place):
                        exec(compile(ast.Module([one], []), file, "exec"), place)
                except Exception:
                    continue  # the stubs of a package have names that it does not have itself
    return {name: value for name, value in place.items() if name not in known}


def _is_for_checkers(test):
    return getattr(test, "id", None) == "TYPE_CHECKING" or getattr(test, "attr", None) == "TYPE_CHECKING"


def _parts(ast, statement):
    """One statement for each imported name: another one may be missing."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [statement]
    names = {field: getattr(statement, field) for field in ("module", "level") if hasattr(statement, field)}
    return [ast.copy_location(type(statement)(names=[alias], **names), statement) for alias in statement.names]


def _runs_a_loaded_file_again(ast, statement, place):
    """Whether it imports a file that is loaded under another name, as the tool file is."""
    from importlib.util import find_spec

    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return False
    name = "." * getattr(statement, "level", 0) + (getattr(statement, "module", None) or "")
    spec = find_spec(name if isinstance(statement, ast.ImportFrom) else statement.names[0].name, place.get("__package__"))
    origin = getattr(spec, "origin", None)
    loaded = [module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == origin]
    return bool(origin and loaded) and spec.name not in sys.modules
