"""Whether a value is what an annotation says, told from the annotation alone."""

import collections
import collections.abc
import dataclasses
import enum
import types
import typing

import typing_extensions

CONTAINERS = {
    collections.abc.Sequence: list, collections.abc.Iterable: list, collections.abc.Collection: list,
    collections.abc.Mapping: dict, collections.abc.Set: (set, frozenset),
}


def conforms(value, hint, depth=0):
    if depth > 40 or hint in (typing.Any, object) or isinstance(hint, (typing.TypeVar, str)):
        return True
    if hint is None:
        return value is None
    if hasattr(hint, "__supertype__"):
        return conforms(value, hint.__supertype__, depth + 1)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__value__"):
        return conforms(value, hint.__value__, depth + 1)
    if hasattr(hint, "__forward_arg__"):
        return True
    if hasattr(hint, "__metadata__"):
        return conforms(value, hint.__origin__, depth + 1)
    if origin in (typing.Union, types.UnionType):
        return any(conforms(value, one, depth + 1) for one in args)
    if origin is typing.Literal:
        return any(type(value) is type(one) and value == one for one in args)
    if origin is not None and str(origin).rpartition(".")[2] in ("Required", "NotRequired", "ReadOnly", "ClassVar", "Final"):
        return conforms(value, args[0], depth + 1)
    if isinstance(origin, type):
        return _generic(value, origin, args, depth)
    if isinstance(hint, type):
        return _instance(value, hint, depth)
    return True


def _generic(value, origin, args, depth):
    if getattr(origin, "__parameters__", ()) and origin.__module__ not in ("typing", "collections.abc"):
        return _instance(value, origin, depth, dict(zip(origin.__parameters__, args)))
    if not isinstance(value, CONTAINERS.get(origin, origin)):
        return origin is collections.abc.Callable or False
    if origin is tuple:
        return _tuple(value, args, depth)
    if issubclass(origin, collections.Counter):
        return all(conforms(key, args[0], depth + 1) and type(count) is int for key, count in value.items())
    if issubclass(origin, collections.abc.Mapping):
        return all(conforms(key, args[0], depth + 1) and conforms(item, args[1], depth + 1) for key, item in value.items())
    if issubclass(origin, collections.abc.Iterable) and args and not dataclasses.is_dataclass(origin):
        return all(conforms(item, args[0], depth + 1) for item in value)
    return True


def _tuple(value, args, depth):
    if len(args) == 2 and args[1] is Ellipsis:
        return all(conforms(item, args[0], depth + 1) for item in value)
    rest = getattr(args[-1], "__args__", (None,))[0] if args and "*" in repr(args[-1]) + "*" * _is_unpack(args[-1]) else None
    if rest is not None:
        inner = typing.get_args(rest)[0] if typing.get_origin(rest) is tuple else rest
        fixed = args[:-1]
        return len(value) >= len(fixed) and _tuple(value[: len(fixed)], fixed, depth) and all(
            conforms(item, inner, depth + 1) for item in value[len(fixed):])
    return len(value) == len(args) and all(conforms(item, one, depth + 1) for item, one in zip(value, args))


def _is_unpack(hint):
    return typing.get_origin(hint) in (typing_extensions.Unpack, typing.Unpack)


def _with(hint, arguments):
    """A hint with arguments for type parameters."""
    if isinstance(hint, typing.TypeVar):
        return arguments.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(arguments.get(one, one) for one in parameters)] if parameters and not isinstance(hint, type) else hint


def _instance(value, cls, depth, arguments={}):
    if typing_extensions.is_typeddict(cls):
        hints = typing_extensions.get_type_hints(cls, include_extras=True)
        return type(value) is dict and all(
            conforms(value[name], _with(hint, arguments), depth + 1) for name, hint in hints.items() if name in value)
    if cls in (int, float, bool, str, type(None)):
        return type(value) is cls
    if getattr(cls, "_is_protocol", False):
        return True
    if not isinstance(value, cls):
        return False
    if dataclasses.is_dataclass(cls) or hasattr(cls, "_fields"):
        hints = typing_extensions.get_type_hints(cls, include_extras=True)
        names = cls._fields if hasattr(cls, "_fields") else [field.name for field in dataclasses.fields(cls)]
        return all(conforms(getattr(value, name), _with(hints[name], arguments), depth + 1) for name in names)
    if hasattr(cls, "model_fields") and not isinstance(value, enum.Enum):
        return all(conforms(getattr(value, name), field.annotation, depth + 1) for name, field in cls.model_fields.items())
    return True
