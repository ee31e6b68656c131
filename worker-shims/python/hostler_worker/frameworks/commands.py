"""Commands of click and typer: called with the values that a call gives, and what they print is the result."""

from ..convert import Mismatch
from ..encode import ToolFailed
from ..printed import Printed
from .behind import package_of, unwrapped

_CLICK = ("click", "rich_click", "typer")


class Commands:
    """The commands of a module, each with the words that lead to it from the outermost group."""

    def __init__(self, module):
        self._ways = {}  # by the identity of a command and of its function
        self._kept = []  # so that no other object gets one of these identities
        for root in _roots(module):
            self._walk(root, root, ())

    def _walk(self, root, command, words):
        function = unwrapped(getattr(command, "callback", None))
        for one in (command, function):
            way = self._ways.get(id(one))
            # A command of a group needs what the group prepares.
            if one is not None and (way is None or len(way[2]) < len(words)):
                self._ways[id(one)] = root, command, words
                self._kept.append(one)
        if len(words) < 16:
            for name, inner in list((getattr(command, "commands", None) or {}).items()):
                self._walk(root, inner, (*words, name))

    def calling(self, value, function):
        """What calls the command that a function of the file is; None for other functions."""
        way = self._ways.get(id(value)) or self._ways.get(id(unwrapped(function)))
        return None if way is None else calling(*way)


def run_by_typer(function):
    """What calls a function as `typer.run(function)` does."""
    from typer import Typer
    from typer.main import get_command

    app = Typer(add_completion=False)
    app.command()(function)
    command = get_command(app)
    return calling(command, command, ())


def _roots(module):
    for value in list(module.__dict__.values()):
        if not any(package_of(kind) in _CLICK for kind in type(value).__mro__):
            continue
        if hasattr(value, "make_context"):
            yield value
        elif getattr(value, "registered_commands", None) or getattr(value, "registered_groups", None):
            from typer.main import get_command

            yield get_command(value)


def calling(root, command, way):
    def call(**kwargs):
        values = _values(command, kwargs)
        with Printed() as printed:
            # The groups before it read their names as from a command line; its own values are given, not parsed.
            command.make_parser = lambda context: _Parser(values)
            try:
                with root.make_context(root.name or "tool", [*way, "--"]) as context:
                    value = root.invoke(context)
            except (Exception, SystemExit) as error:
                value = _ended(error, printed)
            finally:
                del command.make_parser
            printed.finish()
        return printed.text() or value

    return call


class _Parser:
    """In place of click's parser of a command line."""

    _opt_prefixes = frozenset()

    def __init__(self, values):
        self._values = values

    def parse_args(self, args):
        return dict(self._values), [], []


def _values(command, kwargs):
    """The values by the names of their parameters, as click's parser would give them."""
    values, unknown = {}, dict(kwargs)
    for parameter in command.params:
        value = unknown.pop(parameter.name, None)
        if value is None:
            value = _default_of_prompt(parameter) if parameter.name not in values else None
        if value is not None:
            values[parameter.name] = _raw(parameter, value)
    for name in unknown:
        known = ", ".join(parameter.name for parameter in command.params)
        raise Mismatch(name, "one of the command's parameters (%s)" % (known or "it has none"), shown=False)
    return values


def _default_of_prompt(parameter):
    """There is no terminal, so the default is the answer."""
    default = getattr(parameter, "default", None)
    is_plain = isinstance(default, (str, int, float, bool, list, tuple))
    return default if getattr(parameter, "prompt", None) and is_plain else None


def _raw(parameter, value):
    if getattr(parameter, "is_flag", False) or getattr(parameter, "count", False):
        return value
    if isinstance(value, (list, tuple)):
        return [tuple(map(_word, one)) if isinstance(one, (list, tuple)) else _word(one) for one in value]
    return _word(value)


def _word(value):
    return value if isinstance(value, str) else str(value)


def _ended(error, printed):
    """The result of a command that ended with an exception. Typer has a copy of click, with classes of its own."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if hasattr(error, "format_message"):
        raise ToolFailed(error.format_message()) from None
    if isinstance(error, SystemExit):
        return printed.ended(error.code)
    if "Exit" in kinds:
        return printed.ended(getattr(error, "exit_code", 1))
    if "Abort" in kinds:
        asked = isinstance(error.__context__, (EOFError, KeyboardInterrupt))
        raise printed.failed("it asked for input at a terminal, and there is none" if asked else "it was aborted") from None
    raise error
