"""From an annotation to a converter: `convert(value, path)`, or None where values pass as they come.

An annotation nobody here knows passes too: a guess would turn a good argument into a fault.
"""

import sys
import typing
from _collections_abc import Iterable, Mapping, Set

from . import containers, scalars
from .convert import Mismatch

_NONE = type(None)
_LONGEST = 500  # arguments of a generic class, as text
_EXACT = {str: "a string", int: "a whole number", bool: "true or false", list: "a list", dict: "an object", _NONE: "null"}
QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final")  # around the type of a field
_UNION = {typing.Union}
if hasattr(sys.modules["types"] if "types" in sys.modules else None, "UnionType"):
    _UNION.add(sys.modules["types"].UnionType)


class Builder:
    """Builds within one namespace, the globals where the annotation was written. `bound` is what type parameters stand for. With
    `checks`, values of plain types are checked, too: in a union they decide which member is meant."""

    def __init__(self, namespace, made=None, bound=None, checks=False):
        self.namespace = namespace
        self.made = {} if made is None else made  # classes begun or done: a class may contain itself
        self.bound = bound or {}
        self.checks = checks
        self.itself = None  # the class that is being built, and its arguments

    def within(self, namespace, bound=None, checks=False):
        other = Builder(namespace, self.made, bound, self.checks or checks)
        other.itself = self.itself
        return other

    def build(self, hint):
        hint = self.resolve(hint)
        if hint is None or hint is typing.Any:
            return None
        if type(hint).__name__ == "TypeVar":
            return self.build(self.bound.get(hint)) if self.bound.get(hint) is not hint else None
        origin = typing.get_origin(hint)
        if origin is not None:
            return self._once(hint, lambda: self._generic(hint, origin, typing.get_args(hint)))
        if hasattr(hint, "__supertype__"):  # NewType
            return self.build(hint.__supertype__)
        if hasattr(hint, "__value__") and _is_of_pydantic(hint):  # JsonValue
            return _adapted(hint)
        if hasattr(hint, "__value__"):  # type X = ...
            return self._once(hint, lambda: self._alias(hint, ()) if getattr(hint, "__type_params__", ()) else self.build(hint.__value__))
        if getattr(hint, "_name", "") == "Self" and self.itself is not None:
            return self._class(*self.itself)
        if not isinstance(hint, type):
            return None
        if hint in _EXACT:
            return exactly(hint) if self.checks else None
        return self._class(hint)

    def _once(self, hint, build):
        """Built once; inside itself (an alias may mention itself) it is stood in for."""
        try:
            # `A | B` equals `B | A`, and means another order.
            key = (id(self.namespace), hint, str(hint), self.checks, self.itself, *self.bound.values())
            if key in self.made:
                return self.made[key]
        except Exception:  # notes that cannot be hashed or shown
            return build()
        self.made[key] = lambda value, path: done(value, path) if done is not None else value
        done = build()
        self.made[key] = done
        return done

    def resolve(self, hint):
        text = getattr(hint, "__forward_arg__", hint)
        if not isinstance(text, str):
            return hint
        # A typed dictionary that is made from one of another file says whose names it means.
        module = getattr(hint, "__forward_module__", None)
        namespace = getattr(sys.modules.get(module, module), "__dict__", self.namespace) if module is not None else self.namespace
        try:
            return self.resolve(eval(text, namespace))
        except NameError:
            return self._guarded(text, namespace)
        except Exception:
            return None  # newer syntax than this Python has

    def _guarded(self, text, namespace):
        from .guarded import Names

        try:
            return self.resolve(eval(text, namespace, Names(namespace)))
        except Exception:
            return None

    def _generic(self, hint, origin, args):
        if hasattr(hint, "__metadata__"):
            return self._annotated(hint)
        if getattr(origin, "_name", "") in QUALIFIERS:
            return self.build(args[0])
        if any(getattr(note, "__name__", type(note).__name__) == "_OnErrorOmit" for arg in args for note in getattr(arg, "__metadata__", ())):
            return _adapted(hint)  # the container leaves such items out
        if origin in _UNION:
            return self._of_pydantic(hint) or self._of_structs(args) or self._union(args)
        if origin is typing.Literal:
            return _literal(args)
        if not isinstance(origin, type):
            return self._alias(origin, args) if hasattr(origin, "__value__") else None
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
        return self._class(origin, self._arguments(args))

    def _alias(self, alias, args):
        """`type Pair[T] = tuple[T, T]`"""
        args = self._arguments(args)
        if "pydantic" in sys.modules and None not in args:  # that is a name for type checkers only
            from . import models

            convert = models.made_of_its_own(alias[args], self.namespace, alias.__value__)
            if convert is not None:
                return convert
        from .structured import bound_by

        return self.within(self.namespace, bound_by(alias, args)).build(alias.__value__)

    def _arguments(self, args):
        """The arguments of a generic class, with what the type parameters in them stand for."""
        return tuple(self.substituted(self.resolve(arg)) for arg in args)

    def substituted(self, hint):
        parameters = getattr(hint, "__parameters__", ())
        if not self.bound or isinstance(hint, type) and not hasattr(hint, "__origin__"):
            return hint
        if type(hint).__name__ == "TypeVar":
            return self.bound.get(hint, hint)
        try:
            return hint[tuple(self.bound.get(one, one) for one in parameters)] if parameters else hint
        except TypeError:
            return hint

    def _of_pydantic(self, hint):
        """A union as pydantic converts it, where the file has imported that: it chooses by how well each member fits."""
        is_plain = all(isinstance(arg, type) and arg in _EXACT for arg in typing.get_args(hint))
        if "pydantic" not in sys.modules or is_plain or _is_optional(hint) or self.bound:
            return None
        from . import models

        return models.made_of_its_own(hint, self.namespace)

    @staticmethod
    def _of_structs(args):
        """A union of nothing but tagged structs of msgspec, which finds the one that is meant."""
        if not all(map(_has_tag, args)):
            return None
        from . import structured

        return structured.told_apart(args)

    def _annotated(self, hint):
        """Notes are for readers, except those that pydantic makes part of the type."""
        if "pydantic" in sys.modules:
            from .notes import decides

            if any(decides(note, hint.__origin__) for note in hint.__metadata__):
                return _adapted(hint)
        return self.build(hint.__origin__)

    def noted_key(self, hint):
        """Of keys with notes, which no schema states; None where the file has not imported pydantic, or they are none for it."""
        if "pydantic" not in sys.modules:
            return None
        from . import models

        return models.key(hint, self.namespace)

    def unpacked(self, hint):
        """The converters of `**options: Unpack[Options]` by option, or None when it is no such thing."""
        hint = self.resolve(hint)
        inner = typing.get_args(hint)
        if not inner or getattr(typing.get_origin(hint), "_name", "") != "Unpack" or not hasattr(inner[0], "__total__"):
            return None
        from . import structured

        return structured.hints_of(inner[0], self)

    def _class(self, cls, args=()):
        if len(str(args)) > _LONGEST:
            args = ()  # a class that holds itself with ever longer arguments
        key = (cls, self.checks, *args)
        try:
            if key in self.made:
                return self.made[key]
        except TypeError:
            args, key = (), (cls, self.checks)
        known = scalars.converter(cls)
        if known is None and (cls in (set, frozenset, tuple) or containers.is_deque(cls)):
            known = containers.of_items(self, (), cls)
        if known is None and (cls.__module__ == "collections" or containers.is_frozendict(cls)):
            known = containers.of_mapping(self, cls, ())
        if known is not None:
            return known
        # Stands in for the class inside itself until it is built.
        self.made[key] = lambda value, path: done(value, path) if done is not None else value
        done = self._structured(cls, args)
        self.made[key] = done
        return done

    def _structured(self, cls, args):
        from . import structured

        within = self.within(structured.namespace_of(cls, self.namespace), structured.bound_by(cls, args))
        within.itself = cls, args
        return structured.converter(cls, within, args)

    def _union(self, args):
        resolved = map(self.resolve, args)
        args = sorted((arg for arg in resolved if arg is not None), key=_rank)  # without names for type checkers only
        tagged = [arg for arg in args if _has_tag(arg)]
        if 1 < len(tagged) < len(args):
            args = [arg for arg in args if not _has_tag(arg)] + [typing.Union[tuple(tagged)]]
        exact = frozenset(arg for arg in args if isinstance(arg, type) and arg in _EXACT)
        if all(arg in exact for arg in args) and not self.checks:
            return None  # all plain: the host has checked them against the schema
        optional = exact == {_NONE} and len(args) == 2
        builder = self if optional or self.checks else self.within(self.namespace, self.bound, True)
        built = [(arg, builder.build(arg)) for arg in args if arg not in exact]
        if any(convert is None and not _is_plain_generic(arg) for arg, convert in built):
            return None  # one member takes anything
        others = [convert or exactly(typing.get_origin(arg)) for arg, convert in built]
        takes_float = any(arg is float for arg in args)

        def convert(value, path):
            if type(value) in exact:
                return value
            if takes_float and type(value) in (int, float):
                return scalars.converter(float)(value, path)
            if type(value) is float and int in exact and value.is_integer():
                return int(value)
            if optional:
                return others[0](value, path)
            expected = [words for kind, words in _EXACT.items() if kind in exact]
            for other in others:
                try:
                    return other(value, path)
                except Mismatch as error:
                    expected.append(str(error).partition(": expected ")[2].partition(", got ")[0])
            raise Mismatch(path, " or ".join(part for part in expected if part), value)

        return convert


def _rank(arg):
    """Members that JSON has, or that are narrower than another one, are tried first."""
    if typing.get_origin(arg) is list:
        return 0
    return 2 if getattr(arg, "__name__", "") == "datetime" else 1


def _has_tag(hint):
    return getattr(getattr(hint, "__struct_config__", None), "tag", None) is not None


def _is_optional(hint):
    args = typing.get_args(hint)
    return len(args) == 2 and _NONE in args


def _is_of_pydantic(hint):
    return (getattr(hint, "__module__", None) or "").partition(".")[0] == "pydantic"


def _adapted(hint):
    from . import models

    return models.adapted(hint)


def _is_plain_generic(hint):
    return typing.get_origin(hint) in (list, dict)


def exactly(kind):
    def convert(value, path):
        if kind is int and type(value) is float and value.is_integer():
            return int(value)
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
