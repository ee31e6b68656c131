"""Names that a module has for type checkers only: what is under `if TYPE_CHECKING:`.

Schemas are read from the text, where such a name means its type. So it is imported when an annotation turns out to need it.
"""

import __future__
import sys
from threading import RLock

_read = {}  # by the module's file
_reading = RLock()


class Names(dict):
    """The names of the module with this namespace, and those under `if TYPE_CHECKING:`, which are made when they are looked up."""

    def __init__(self, namespace):
        super().__init__()
        self.namespace = namespace

    def __missing__(self, name):
        if name in self.namespace:
            return self.namespace[name]
        with _reading:
            value = _blocks_of(self.namespace.get("__file__")).run(name, self.namespace)
        if value is None:
            raise KeyError(name)
        return value


def _blocks_of(file):
    if file not in _read:
        _read[file] = _Blocks(file)
    return _read[file]


class _Blocks:
    """The statements of one file that only type checkers run, by the names that they bind."""

    def __init__(self, file):
        import ast

        self.ast, self.file, self.made, self.statements, self.flags = ast, file, {}, {}, 0
        try:
            with open(file, "rb") as source:
                tree = ast.parse(source.read())
        except (TypeError, OSError, SyntaxError, ValueError):
            return
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                self.flags |= sum(getattr(__future__, alias.name).compiler_flag for alias in statement.names if hasattr(__future__, alias.name))
        self._collect(tree.body, False)

    def _collect(self, body, guarded):
        for statement in body:
            if isinstance(statement, self.ast.If):
                is_for_checkers, is_against = _means(self.ast, statement.test)
                self._collect(statement.body, guarded or is_for_checkers)
                self._collect(statement.orelse, guarded or is_against)
            elif isinstance(statement, self.ast.Try):
                self._collect(statement.body, guarded)
            elif guarded:
                for one in self._parts(statement):
                    for name in _bound(self.ast, one):
                        self.statements.setdefault(name, one)

    def _parts(self, statement):
        """One statement for each imported name: stubs have names that their packages do not have."""
        if not isinstance(statement, (self.ast.Import, self.ast.ImportFrom)):
            return [statement]
        names = {field: getattr(statement, field) for field in ("module", "level") if hasattr(statement, field)}
        return [self.ast.copy_location(type(statement)(names=[alias], **names), statement) for alias in statement.names]

    def run(self, name, namespace):
        """What this name means; None where it is not there, or cannot be made."""
        statement = self.statements.pop(name, None)  # once, also where it fails or mentions itself
        if statement is None:
            return self.made.get(name)
        place = {**namespace, **self.made}
        for node in self.ast.walk(statement):
            if getattr(node, "id", None) in self.statements:
                place[node.id] = self.run(node.id, namespace)
        try:
            if not _runs_a_loaded_file_again(self.ast, statement, namespace):
                exec(compile(self.ast.Module([statement], []), self.file, "exec", self.flags, dont_inherit=True), place)
        except (Exception, SystemExit):
            return None
        self.made[name] = place.get(name)
        return self.made[name]


def _means(ast, test):
    """Whether only type checkers run what follows, and whether only they run the rest."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _means(ast, test.operand)[::-1]
    if isinstance(test, ast.BoolOp):
        return any(_means(ast, value)[0] for value in test.values), False
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None)), False


def _bound(ast, statement):
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        alias = statement.names[0]
        return [alias.asname or alias.name.partition(".")[0]]
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None), getattr(statement, "name", None)]
    return [name for target in targets for name in [getattr(target, "id", target)] if isinstance(name, str)]


def _runs_a_loaded_file_again(ast, statement, namespace):
    """Whether it imports a file that is loaded under another name, as the tool file is."""
    from importlib.util import find_spec

    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return False
    name = "." * getattr(statement, "level", 0) + (getattr(statement, "module", None) or "")
    spec = find_spec(name if isinstance(statement, ast.ImportFrom) else statement.names[0].name, namespace.get("__package__"))
    origin = getattr(spec, "origin", None)
    loaded = [module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == origin]
    return bool(origin and loaded) and spec.name not in sys.modules
