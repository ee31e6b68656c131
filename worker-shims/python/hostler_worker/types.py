"""From an annotation to a converter: `convert(value, path)`, or None where values pass as they come.

An annotation nobody here knows passes too: a guess would turn a good argument into a fault.
"""

import sys
import typing
from _collections_abc import Iterable, Mapping, Set

from . import containers, scalars
from .convert import Mismatch

_NONE = type(None)
_EXACT = {str: "a string", int: "a whole number", bool: "true or false", list: "a list", dict: "an object", _NONE: "null"}
_UNION = {typing.Union}
if hasattr(sys.modules["types"] if "types" in sys.modules else None, "UnionType"):
    _UNION.add(sys.modules["types"].UnionType)


class Builder:
    """Builds within one namespace, the globals where the annotation was written."""

    def __init__(self, namespace, made=None):
        self.namespace = namespace
        self.made = {} if made is None else made  # classes begun or done: a class may contain itself

    def build(self, hint):
        hint = self.resolve(hint)
        if hint is None or hint is typing.Any:
            return None
        origin = typing.get_origin(hint)
        if origin is not None:
            return self._once(hint, lambda: self._generic(hint, origin, typing.get_args(hint)))
        if hasattr(hint, "__supertype__"):  # NewType
            return self.build(hint.__supertype__)
        if hasattr(hint, "__value__") and _is_of_pydantic(hint):  # JsonValue
            return _adapted(hint)
        if hasattr(hint, "__value__"):  # type X = ...
            return self._once(hint, lambda: self.build(hint.__value__))
        if not isinstance(hint, type) or hint in _EXACT:
            return None
        return self._class(hint)

    def _once(self, hint, build):
        """Built once; inside itself (an alias may mention itself) it is stood in for."""
        try:
            key = (id(self.namespace), hint)
            if key in self.made:
                return self.made[key]
        except TypeError:  # notes that cannot be hashed
            return build()
        self.made[key] = lambda value, path: done(value, path) if done is not None else value
        done = build()
        self.made[key] = done
        return done

    def resolve(self, hint):
        text = getattr(hint, "__forward_arg__", hint)
        if not isinstance(text, str):
            return hint
        try:
            return self.resolve(eval(text, self.namespace))
        except Exception:
            return None  # a name for type checkers only, or newer syntax than this Python has

    def _generic(self, hint, origin, args):
        if hasattr(hint, "__metadata__"):
            return self._annotated(hint)
        if getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly", "Final"):
            return self.build(args[0])
        if any(getattr(note, "__name__", type(note).__name__) == "_OnErrorOmit" for arg in args for note in getattr(arg, "__metadata__", ())):
            return _adapted(hint)  # the container leaves such items out
        if origin in _UNION:
            return self._union(args)
        if origin is typing.Literal:
            return _literal(args)
        if not isinstance(origin, type):
            return self.build(origin) if hasattr(origin, "__value__") else None
        if hint is typing.Tuple:  # alone it looks like the empty one
            return containers.of_items(self, (), tuple)
        if origin is tuple:
            return containers.of_tuple(self, args)
        if issubclass(origin, Set):
            return containers.of_items(self, args, frozenset if origin is frozenset else set)
        if issubclass(origin, Mapping) and not hasattr(origin, "__total__"):
            return containers.of_mapping(self, origin, args)
        if issubclass(origin, Iterable) and (origin is list or origin.__module__ == "collections.abc"):
            return containers.of_items(self, args, list)
        if args == (bytes,) and origin.__module__ == "re":
            return scalars.pattern_of_bytes
        if containers.is_deque(origin):
            return containers.of_items(self, args, origin)
        return self._class(origin)

    def _annotated(self, hint):
        """Notes are for readers, except those that pydantic makes part of the type."""
        if "pydantic" in sys.modules:
            from .notes import decides

            if any(decides(note, hint.__origin__) for note in hint.__metadata__):
                return _adapted(hint)
        return self.build(hint.__origin__)

    def unpacked(self, hint):
        """The converters of `**options: Unpack[Options]` by option, or None when it is no such thing."""
        hint = self.resolve(hint)
        inner = typing.get_args(hint)
        if not inner or getattr(typing.get_origin(hint), "_name", "") != "Unpack" or not hasattr(inner[0], "__total__"):
            return None
        from . import structured

        return structured.hints_of(inner[0], self)

    def _class(self, cls):
        if cls in self.made:
            return self.made[cls]
        known = scalars.converter(cls)
        if known is None and (cls in (set, frozenset, tuple) or containers.is_deque(cls)):
            known = containers.of_items(self, (), cls)
        if known is None and cls.__module__ == "collections":
            known = containers.of_mapping(self, cls, ())
        if known is not None:
            return known
        # Stands in for the class inside itself until it is built.
        self.made[cls] = lambda value, path: done(value, path) if done is not None else value
        done = self._structured(cls)
        self.made[cls] = done
        return done

    def _structured(self, cls):
        from . import structured

        namespace = getattr(sys.modules.get(cls.__module__), "__dict__", self.namespace)
        return structured.converter(cls, Builder(namespace, self.made))

    def _union(self, args):
        args = [self.resolve(arg) for arg in args]
        exact = frozenset(arg for arg in args if isinstance(arg, type) and arg in _EXACT)
        built = [(arg, self.build(arg)) for arg in args if arg is not None]
        if any(convert is None and arg not in exact and not _is_plain_generic(arg) for arg, convert in built):
            return None  # one member takes anything
        others = [(convert or _exactly(typing.get_origin(arg))) for arg, convert in built if arg not in exact]
        if not others:
            return None  # all plain: the host has checked them against the schema
        optional = exact == {_NONE} and len(others) == 1

        def convert(value, path):
            if type(value) in exact:
                return value
            if optional:
                return others[0](value, path)
            expected = [_EXACT[kind] for kind in exact]
            for other in others:
                try:
                    return other(value, path)
                except Mismatch as error:
                    expected.append(str(error).partition(": expected ")[2].partition(", got ")[0])
            raise Mismatch(path, " or ".join(part for part in expected if part), value)

        return convert


def _is_of_pydantic(hint):
    return (getattr(hint, "__module__", None) or "").partition(".")[0] == "pydantic"


def _adapted(hint):
    from . import models

    return models.adapted(hint)


def _is_plain_generic(hint):
    return typing.get_origin(hint) in (list, dict)


def _exactly(kind):
    def convert(value, path):
        if type(value) is not kind:
            raise Mismatch(path, _EXACT[kind], value)
        return value

    return convert


def _literal(args):
    def convert(value, path):
        for one in args:
            plain = getattr(one, "value", one)
            if type(value) is type(plain) and value == plain or value == getattr(one, "name", one) and plain is not one:
                return one
        raise Mismatch(path, "one of " + ", ".join(repr(getattr(one, "value", one)) for one in args), value)

    return convert
