"""Results without the fields that a subclass adds to the pydantic model that a function declares, as pydantic writes them. A file that does
not use pydantic never comes here."""

import sys
from _collections_abc import Iterable, Mapping

from .types import _UNION, Builder

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
    def __init__(self, namespace, begun=frozenset()):
        self.namespace = namespace
        self.begun = begun  # classes whose fields are being read: within itself, a class is left as it is

    def of(self, hint, left):
        hint = Builder(self.namespace).resolve(hint)
        if hint is None or not left:
            return None
        inner = hint.__origin__ if hasattr(hint, "__metadata__") else getattr(hint, "__value__", None) or getattr(hint, "__supertype__", None)
        if inner is not None:
            return self.of(inner, left - 1)
        origin, args = getattr(hint, "__origin__", None), getattr(hint, "__args__", ())
        if type(hint) in _UNION or origin in _UNION:
            return self._union(args, left - 1)
        if isinstance(hint, type) and origin is None:
            return self._class(hint, left - 1)
        return self._container(origin, args, left - 1) if isinstance(origin, type) and args else None

    def _union(self, args, left):
        resolved = [Builder(self.namespace).resolve(arg) for arg in args]
        models = {arg: _of_model(arg) for arg in resolved if _is_model(arg)}
        others = [cut for arg in resolved if arg not in models and (cut := self.of(arg, left)) is not None]
        if not models and not others:
            return None

        def cut(value, dropped):
            nearest = next((base for base in type(value).__mro__ if base in models), None)
            if nearest is not None:
                return models[nearest](value, dropped)
            for other in others:
                value = other(value, dropped)
            return value

        return cut

    def _container(self, origin, args, left):
        if origin is tuple and args[-1] is not Ellipsis:
            return _fixed([self.of(arg, left) for arg in args])
        if issubclass(origin, Mapping):
            each = self.of(args[1], left) if len(args) == 2 else None
            return each and (lambda value, dropped: {key: each(item, dropped) for key, item in value.items()}
                             if isinstance(value, Mapping) else value)
        each = self.of(args[0], left) if issubclass(origin, Iterable) else None
        return each and (lambda value, dropped: value if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable)
                         else [each(item, dropped) for item in value])

    def _class(self, cls, left):
        if _is_model(cls):
            return _of_model(cls)
        is_dictionary = hasattr(cls, "__total__")
        if cls in self.begun or not is_dictionary and not hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "_fields") \
                or hasattr(cls, "__pydantic_serializer__"):
            return None
        from .convert import annotations_of

        namespace = getattr(sys.modules.get(cls.__module__), "__dict__", self.namespace)
        inside = Cutter(namespace, self.begun | {cls})
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
    return isinstance(hint, type) and hasattr(hint, "__pydantic_serializer__") and hasattr(hint, "model_fields")


def _of_model(model):
    serializer = model.__pydantic_serializer__

    def cut(value, dropped):
        kind = type(value)
        if kind is model or not isinstance(value, model):
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


def _items(value):
    return value.items()


def _fields(value):
    return [(field.name, getattr(value, field.name)) for field in sys.modules["dataclasses"].fields(value)]
