"""Converters for containers, given the builder of what is inside."""

import typing

from . import scalars
from .convert import Mismatch

_DEEPEST = 16


def is_deque(cls):
    return cls.__module__ == "collections" and cls.__name__ == "deque"


def of_items(builder, args, make):
    each = builder.build(args[0]) if args else None
    if each is None and make is list:
        return _plain(builder, list)

    def convert(value, path):
        if type(value) is not list:
            raise Mismatch(path, "a list", value)
        if each is not None:
            value = [each(item, "%s[%d]" % (path, index)) for index, item in enumerate(value)]
        try:
            return make(value)
        except TypeError:
            raise Mismatch(path, "a list of values that can be in a set", value) from None

    return convert


def of_tuple(builder, args):
    if len(args) == 2 and args[1] is Ellipsis:
        return of_items(builder, args[:1], tuple)
    middle = next((place for place, arg in enumerate(args) if _rest(arg) is not None), None)
    if middle is not None and middle < len(args) - 1:
        return _with_middle(builder, args[:middle], _rest(args[middle]), args[middle + 1:])
    rest = _rest(args[-1]) if args else None
    if rest is not None:
        args = args[:-1]
    each = [] if args in ((), ((),)) else [builder.build(arg) for arg in args]
    further = builder.build(rest) if rest is not None else None

    def convert(value, path):
        if type(value) is not list or len(value) < len(each) or rest is None and len(value) > len(each):
            raise Mismatch(path, "a list of %d%s" % (len(each), "" if rest is None else " or more"), value)
        made = []
        for index, item in enumerate(value):
            one = each[index] if index < len(each) else further
            made.append(item if one is None else one(item, "%s[%d]" % (path, index)))
        return tuple(made)

    return convert


def _with_middle(builder, before, rest, after):
    """`tuple[str, *tuple[int, ...], bool]`"""
    checking = builder.within(builder.namespace, builder.bound, True)  # no schema says where the last items begin
    first = [builder.build(arg) for arg in before]
    last, further = [checking.build(arg) for arg in after], checking.build(rest)

    def convert(value, path):
        if type(value) is not list or len(value) < len(first) + len(last):
            raise Mismatch(path, "a list of %d or more" % (len(first) + len(last)), value)
        each = first + [further] * (len(value) - len(first) - len(last)) + last
        pairs = enumerate(zip(each, value))
        return tuple(item if one is None else one(item, "%s[%d]" % (path, index)) for index, (one, item) in pairs)

    return convert


def _rest(arg):
    """The X of *tuple[X, ...] and Unpack[tuple[X, ...]]."""
    is_unpacked = getattr(arg, "__unpacked__", False) or getattr(typing.get_origin(arg), "_name", "") == "Unpack"
    inner = arg if getattr(arg, "__unpacked__", False) else (typing.get_args(arg) or (None,))[0]
    args = typing.get_args(inner)
    return args[0] if is_unpacked and len(args) == 2 and args[1] is Ellipsis else None


def of_mapping(builder, origin, args):
    make = _maker(builder, origin, args)
    if origin.__name__ == "Counter":
        args = (*args, int)
    if len(args) != 2 and make is None:
        return _plain(builder, dict)
    kind, inner = args if len(args) == 2 else (None, None)
    key = _key(builder, kind)
    item = builder.build(inner)
    if key is None and item is None and make is None:
        return _plain(builder, dict)

    def convert(value, path):
        if type(value) is not dict:
            raise Mismatch(path, "an object", value)
        made = {
            (name if key is None else key(name, "%s key %s" % (path, name))):
            (one if item is None else item(one, "%s.%s" % (path, name)))
            for name, one in value.items()
        }
        return made if make is None else make(made)

    return convert


def _plain(builder, kind):
    from .types import exactly

    return exactly(kind) if builder.checks else None


def _key(builder, hint):
    """The converter of keys, which are strings in JSON."""
    hint = builder.resolve(hint)
    for _ in range(_DEEPEST):
        inner = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
        if hasattr(hint, "__metadata__"):
            noted = builder.noted_key(hint)
            if noted is not None:
                return noted
            inner = hint.__origin__
        others = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        if inner is None and len(others) == 1 and type(None) in typing.get_args(hint):
            inner = others[0]
        if inner is None:
            break
        hint = builder.resolve(inner)
    if hint in (int, float, bool):
        return scalars.from_text(hint)
    return scalars.key_of_enum(hint) or (None if hint is str else builder.build(hint))


def is_frozendict(cls):  # 3.15
    return cls.__module__ == "builtins" and cls.__name__ == "frozendict"


def _maker(builder, origin, args):
    """For the mappings of `collections` and `frozendict`; None where a dict is what is wanted."""
    if is_frozendict(origin):
        return origin
    if origin.__module__ != "collections":
        return None
    if origin.__name__ == "defaultdict":
        inner = builder.resolve(args[1]) if len(args) == 2 else None
        inner = typing.get_origin(inner) or inner
        factory = inner if inner in (int, float, str, bool, list, dict, set, tuple) else None
        return lambda made: origin(factory, made)
    return origin if origin.__name__ in ("OrderedDict", "Counter") else None
