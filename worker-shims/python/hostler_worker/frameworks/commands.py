"""Commands of click and typer: called as a shell would call them, and what they print is the result."""

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
        words = [*way, *_words(command, kwargs)]
        with Printed() as printed:
            try:
                with root.make_context(root.name or "tool", words) as context:
                    value = root.invoke(context)
            except (Exception, SystemExit) as error:
                value = _ended(error, printed)
        return printed.text() or value

    return call


def _ended(error, printed):
    """What an exception says that ended a command. Typer has a copy of click, with classes of its own."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if hasattr(error, "format_message"):
        raise ToolFailed(error.format_message()) from None
    if isinstance(error, SystemExit):
        return printed.ended(error.code)
    if "Exit" in kinds:
        return printed.ended(getattr(error, "exit_code", 1))
    if "Abort" in kinds:
        raise printed.failed("it asked for input at a terminal, and there is none") from None
    raise error


def _words(command, kwargs):
    """The arguments as a shell would give them."""
    options, arguments, unknown = [], [], dict(kwargs)
    for parameter in command.params:
        value = unknown.pop(parameter.name, None)
        if value is None:
            continue
        if parameter.param_type_name == "argument":
            arguments += map(_word, value if isinstance(value, list) else [value])
        else:
            options += _option(parameter, value)
    for name in unknown:
        known = ", ".join(parameter.name for parameter in command.params)
        raise Mismatch(name, "one of the command's parameters (%s)" % (known or "it has none"), shown=False)
    return [*options, "--", *arguments]


def _option(parameter, value):
    name = max(parameter.opts, key=len)
    if getattr(parameter, "is_flag", False) and isinstance(value, bool):
        off = parameter.secondary_opts
        return [name] if value else [max(off, key=len)] if off else []
    if getattr(parameter, "count", False):
        return [name] * value
    if getattr(parameter, "multiple", False):
        return [word for one in value for word in (name, *map(_word, one if isinstance(one, list) else [one]))]
    return [name, *map(_word, value if isinstance(value, list) else [value])]


def _word(value):
    return value if isinstance(value, str) else str(value)
