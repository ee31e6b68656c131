"""Tools that a neighbour of the tool file defines, by the server of the file or by one that its functions are given."""

import os
import sys

from ..loading import FRAMEWORKS, NEWLOCALS, Function, Functions, compiled, inner_codes


def named(module, symbol):
    """The tool of a symbol `beside:PLACE:SYMBOL`, where the place is the neighbour's path from the file's folder."""
    _, place, symbol = symbol.split(":", 2)
    there = _there(_path(module, place))
    if there is not None:
        return _function(module, there, symbol)
    from .inner import Later

    # The file imports it where its server begins to run.
    return Later(symbol, lambda: _called(_function(module, neighbour(module, place), symbol), symbol))


def neighbour(module, place):
    """The module of a file, by its path from the tool file's folder. The tool file is one, too."""
    path = _path(module, place)
    if os.path.basename(module.__file__) == place:
        return module
    return _there(path) or _imported(module, path, place)


def _path(module, place):
    return os.path.join(os.path.dirname(module.__file__), place)


def scope_of(module, place):
    """What names mean in a neighbour; empty if nothing has imported it."""
    there = _there(_path(module, place))
    return {} if there is None else there.__dict__


def _there(path):
    for module in list(sys.modules.values()):
        file = module.__dict__.get("__file__") if isinstance(module, type(sys)) else None
        if isinstance(file, str) and os.path.basename(file) == os.path.basename(path) and os.path.realpath(file) == os.path.realpath(path):
            return module
    return None


def _imported(module, path, place):
    from importlib import import_module

    parts = os.path.splitext(place)[0].split(os.sep)
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    # A package of the file's own, or a module on its path.
    own = getattr(module, "__package__", None)
    relative = own and os.path.exists(os.path.join(os.path.dirname(module.__file__), "__init__.py"))
    import_module(own + "." + name if relative else name)
    there = _there(path)
    if there is None:
        raise ImportError("%s is not what `import %s` finds" % (place, name))
    return there


def _function(module, there, symbol):
    """`scope` is where names mean something: the file's server counts, too."""
    from . import adapt
    from .methods import named as named_within

    scope = type(module)(there.__name__)
    scope.__dict__.update({**module.__dict__, **there.__dict__})
    # Both may call their application `app`.
    scope.__dict__.update({"of the file " + name: value for name, value in list(module.__dict__.items()) if name in there.__dict__})
    if symbol.startswith("made:"):
        from . import inner

        return inner.named(scope, symbol, module)
    value = there.__dict__.get(symbol)
    if value is None or isinstance(value, type):
        return named_within(scope, symbol)
    codes = [code for code in inner_codes(compiled(there.__file__)) if code.co_flags & NEWLOCALS and code.co_name == symbol]
    found = Functions()
    if callable(value):
        found[symbol] = Function(symbol, value)
    if not callable(value) or not FRAMEWORKS.isdisjoint(sys.modules):
        adapt(found, scope, {symbol: codes})
    return found.get(symbol) or named_within(scope, symbol)


def _called(function, symbol):
    if function is None:
        raise RuntimeError("`%s` is not there when its file has run" % symbol)
    return function.call
