"""Commands of click and typer: called with the values that a call gives, and what they print is the result."""

from ..convert import Mismatch
from ..encode import ToolFailed
from ..printed import Printed
from .behind import package_of, unwrapped
from .call import source

_CLICK = ("click", "rich_click", "typer")


class Commands:
    """The commands of a module, each with the words that lead to it from the outermost group."""

    def __init__(self, module):
        self._ways = {}  # by the identity of a command and of its function
        self._kept = []  # so that no other object gets one of these identities
        self._module = module
        self._values = {}  # what the file has for each outermost group
        for value, root in _roots(module):
            self._values[id(root)] = value
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
        return None if way is None else calling(*way, object_for(self._values[id(way[0])], self._module))

    def chain(self, value):
        """The command that a value of the file is, after the groups above it."""
        root, _, words = self._ways[id(value)]
        return chain(root, words)


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
            yield value, value
        elif getattr(value, "registered_commands", None) or getattr(value, "registered_groups", None):
            from typer.main import get_command

            yield value, get_command(value)


def chain(root, words):
    commands = [root]
    for word in words:
        commands.append(commands[-1].commands[word])
    return commands


def calling(root, command, words, obj=lambda: None):
    """What calls a command that `words` lead to from the outermost group. `obj` makes what the file's program passes to that."""
    def call(**kwargs):
        commands = chain(root, words)
        given = _given(commands, kwargs)
        with Printed() as printed:
            # Only the names of the subcommands are parsed; the values are handed over as they are.
            for one, values in zip(commands, given):
                one.make_parser = lambda context, values=values, is_last=one is command: _Parser(values, is_last)
            try:
                with root.make_context(root.name or "tool", [*words, "--"], obj=obj()) as context:
                    value = root.invoke(context)
            except (Exception, SystemExit) as error:
                value = _ended(error, printed)
            finally:
                for one in commands:
                    del one.make_parser
            printed.finish()
        return printed.text() or value

    return call


class _Parser:
    """In place of click's parser of a command line."""

    _opt_prefixes = frozenset()

    def __init__(self, values, is_last):
        self._values, self._is_last = values, is_last

    def parse_args(self, args):
        return dict(self._values), [] if self._is_last else list(args), []


def _given(commands, kwargs):
    """For each command, the values by the names of its parameters, as click's parser would give them. An option of the inner command has
    precedence over one of that name of a group."""
    unknown, given = dict(kwargs), []
    for command in reversed(commands):
        values = {}
        for parameter in command.params:
            is_open = parameter.name in unknown or parameter.required  # one that both need is given to both
            value = kwargs.get(parameter.name) if is_open and parameter.name not in values else None
            if value is None and parameter.name not in values:
                value = _default_of_prompt(parameter)
            if value is not None:
                values[parameter.name] = _raw(parameter, value)
        given.insert(0, values)
        for parameter in command.params:
            unknown.pop(parameter.name, None)
    for name in unknown:
        known = ", ".join(parameter.name for command in commands for parameter in command.params)
        raise Mismatch(name, "one of the command's parameters (%s)" % (known or "it has none"), shown=False)
    return given


def object_for(group, module):
    """What makes the object of `cli(obj={})`, where the file calls its outermost group like that."""
    found = []

    def make():
        if not found:
            found.append(_written_object(group, module))
        try:
            return None if found[0] is None else eval(found[0], module.__dict__)
        except NameError:  # a variable of the function that calls it
            return None

    return make


def _written_object(group, module):
    text = source()
    if b"obj" not in text:
        return None
    import ast

    try:
        tree = ast.parse(text)
    except SyntaxError:  # it was changed after it was loaded
        return None
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and module.__dict__.get(call.func.id) is group:
            for keyword in call.keywords:
                if keyword.arg == "obj":
                    return compile(ast.Expression(keyword.value), module.__file__, "eval")
    return None


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
