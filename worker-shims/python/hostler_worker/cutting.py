"""Results without the fields that a subclass adds to the pydantic model that a function declares, as pydantic writes them. A file that does
not use pydantic never comes here."""

import sys
from _collections_abc import AsyncIterable, Iterable, Mapping

from .types import _NONE, _UNION, QUALIFIERS, Builder

_DEEPEST = 16


def cut_of(function):
    """What removes these fields from a result, and adds their names to a set; None where no model is declared."""
    from .convert import annotations_of

    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    try:
        hint = annotations_of(inner).get("return")
        return None if hint is None else Cutter(getattr(inner, "__globals__", {})).of(hint, _DEEPEST)
    except Exception:
        return None  # an annotation that fails to be read


class Cutter:
    def __init__(self, namespace, made=None):
        self.namespace = namespace
        self.made = {} if made is None else made  # by class; one that is being made is stood in for within itself

    def of(self, hint, left):
        hint = Builder(self.namespace).resolve(hint)
        if hint is None or not left or any(type(note).__name__ == "SerializeAsAny" for note in getattr(hint, "__metadata__", ())):
            return None
        inner = hint.__origin__ if hasattr(hint, "__metadata__") else getattr(hint, "__value__", None) or getattr(hint, "__supertype__", None)
        if inner is not None:
            return self.of(inner, left - 1)
        origin, args = getattr(hint, "__origin__", None), getattr(hint, "__args__", ())
        if type(hint) in _UNION or origin in _UNION:
            return self._union(args, left - 1)
        if getattr(origin, "_name", "") in QUALIFIERS:
            return self.of(args[0], left - 1)
        if isinstance(hint, type) and origin is None:
            return self._class(hint, left - 1)
        return self._container(origin, args, left - 1) if isinstance(origin, type) and args else None

    def _union(self, args, left):
        resolved = [Builder(self.namespace).resolve(arg) for arg in args if arg is not _NONE]
        if len(resolved) == 1:
            return self.of(resolved[0], left)
        classes = {arg: self.of(arg, left) for arg in resolved if isinstance(arg, type) and not hasattr(arg, "__total__")}
        others = [cut for arg in resolved if not isinstance(arg, type) or arg not in classes if (cut := self.of(arg, left)) is not None]
        if not any(classes.values()) and not others:
            return None

        def cut(value, dropped):
            nearest = next((base for base in type(value).__mro__ if base in classes), None)
            if nearest is not None:
                return value if classes[nearest] is None else classes[nearest](value, dropped)
            return others[0](value, dropped) if len(others) == 1 else value

        return cut

    def _container(self, origin, args, left):
        if origin is tuple and args[-1] is not Ellipsis:
            return _fixed([self.of(arg, left) for arg in args])
        if issubclass(origin, Mapping):
            each = self.of(args[1], left) if len(args) == 2 else None
            return each and (lambda value, dropped: {key: each(item, dropped) for key, item in value.items()}
                             if isinstance(value, Mapping) else value)
        each = self.of(args[0], left) if issubclass(origin, (Iterable, AsyncIterable)) else None
        return each and (lambda value, dropped: [each(item, dropped) for item in value] if _is_several(value) else value)

    def _class(self, cls, left):
        if _is_model(cls):
            return _of_model(cls)
        if cls in self.made:
            return self.made[cls]
        is_dictionary = hasattr(cls, "__total__")
        has_fields = is_dictionary or hasattr(cls, "__dataclass_fields__") or hasattr(cls, "_fields")
        if not has_fields or hasattr(cls, "__pydantic_serializer__"):
            return None
        self.made[cls] = lambda value, dropped: done(value, dropped) if done is not None else value
        done = None
        done = self.made[cls] = self._with_fields(cls, is_dictionary, left)
        return done

    def _with_fields(self, cls, is_dictionary, left):
        from .convert import annotations_of

        inside = Cutter(getattr(sys.modules.get(cls.__module__), "__dict__", self.namespace), self.made)
        hints = {name: hint for base in reversed(cls.__mro__) for name, hint in annotations_of(base).items()}
        cuts = {name: each for name, hint in hints.items() if (each := inside.of(hint, left)) is not None}
        if not cuts:
            return None
        if hasattr(cls, "_fields"):
            return _fixed([cuts.get(name) for name in cls._fields])
        read = _items if is_dictionary else _fields

        def cut(value, dropped):
            if not isinstance(value, dict if is_dictionary else cls):
                return value
            return {name: cuts[name](item, dropped) if name in cuts else item for name, item in read(value)}

        return cut


def _is_model(hint):
    if not isinstance(hint, type) or hint is getattr(sys.modules.get("pydantic"), "BaseModel", None):  # any model, whole
        return False
    return hasattr(hint, "__pydantic_serializer__") and hasattr(hint, "model_fields")


def _of_model(model):
    serializer = model.__pydantic_serializer__
    generic = (getattr(model, "__pydantic_generic_metadata__", None) or {}).get("origin") or model

    def cut(value, dropped):
        kind = type(value)
        if kind is model or not isinstance(value, generic):  # `Page(…)` may be made where `Page[User]` is declared
            return value
        own = {*kind.model_fields, *(value.model_extra or ())} - set(model.model_fields)
        dropped.update("%s.%s" % (kind.__name__, name) for name in own)
        return serializer.to_python(value, mode="json", warnings=False)

    return cut


def _fixed(cuts):
    """`tuple[int, User]`, and named tuples."""
    if not any(cuts):
        return None

    def cut(value, dropped):
        if not isinstance(value, (list, tuple)) or len(value) != len(cuts):
            return value
        return [item if each is None else each(item, dropped) for each, item in zip(cuts, value)]

    return cut


def _is_several(value):
    """A list, set or queue, or what is read once, as `map` gives it; other things that can be iterated have a form of their own."""
    return isinstance(value, (list, tuple, set, frozenset)) or type(value).__name__ == "deque" \
        or hasattr(value, "__next__") and type(value).__module__ == "builtins"


def _items(value):
    return value.items()


def _fields(value):
    return [(field.name, getattr(value, field.name)) for field in sys.modules["dataclasses"].fields(value)]
