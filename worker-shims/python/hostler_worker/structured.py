"""Converters for classes that JSON writes as an object: dataclass, TypedDict, NamedTuple. pydantic's are in `models`."""

import sys

from .convert import Mismatch, annotations_of, is_description, or_none


def converter(cls, builder, args=()):
    if hasattr(cls, "model_validate") or hasattr(cls, "__pydantic_validator__"):
        from . import models

        return models.converter(cls)
    if cls.__module__.partition(".")[0] in ("pydantic", "pydantic_core"):
        from . import models

        return models.adapted(cls)
    if hasattr(cls, "__get_pydantic_core_schema__") and "pydantic" in sys.modules:
        from . import models

        return models.adapted(cls)
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass(cls, builder, args)
    if hasattr(cls, "__attrs_attrs__"):
        return _attrs(cls, builder)
    if hasattr(cls, "__struct_fields__") and "msgspec" in sys.modules:
        return _struct(cls[args] if args else cls)
    if issubclass(cls, dict) and hasattr(cls, "__total__"):
        return _typed_dict(cls, builder, args)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _named_tuple(cls, builder)
    return None


def hints_of(cls, builder):
    """Converters by field, of the class and its bases. The annotations of each are resolved in its own module."""
    found, bounds = {}, _bounds(cls, builder.bound)
    if hasattr(cls, "__total__"):  # a typed dictionary has the annotations of those that it is made from
        builder = builder.within(builder.namespace, {key: value for bound in reversed(bounds.values()) for key, value in bound.items()})
    for base in reversed(cls.__mro__):
        annotations = annotations_of(base) if base.__dict__ is not object.__dict__ else {}
        own = builder if base is cls else builder.within(namespace_of(base, builder.namespace), bounds.get(base))
        for name, hint in annotations.items():
            found[name] = own.build(hint)
    return found


def namespace_of(cls, usual):
    return getattr(sys.modules.get(cls.__module__), "__dict__", usual)


def bound_by(cls, args):
    """What the parameters of a generic class or alias stand for: an argument, or else their default."""
    parameters = getattr(cls, "__parameters__", ()) or getattr(cls, "__type_params__", ())
    bound = dict(zip(parameters, args))
    for parameter in parameters[len(args):]:
        if getattr(parameter, "has_default", bool)():
            bound[parameter] = _with(parameter.__default__, bound)
    return bound


def _bounds(cls, bound, found=None):
    """For each base, what its type parameters stand for: `class Dates(Box[date])`."""
    found = {} if found is None else found
    found.setdefault(cls, bound)
    for base in getattr(cls, "__orig_bases__", ()):
        origin, args = getattr(base, "__origin__", base), getattr(base, "__args__", ())
        if isinstance(origin, type) and origin not in found:
            given = tuple(_with(arg, bound) for arg in args)
            _bounds(origin, bound_by(origin, given), found)
    return found


def _with(hint, bound):
    """A hint with what type parameters stand for: `list[T]`."""
    if type(hint).__name__ == "TypeVar":
        return bound.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if not parameters or not hasattr(hint, "__args__"):
        return hint
    try:
        return hint[tuple(bound.get(one, one) for one in parameters)]
    except TypeError:
        return hint  # of a form that cannot be given arguments


def _of_pydantic(cls, builder, args, is_described):
    """Of a class of the standard library that says more to pydantic; None where pydantic does not know the type of a field."""
    if "pydantic" not in sys.modules:
        return None
    from . import models

    args = () if None in args else args  # a name for type checkers only
    if is_described or hasattr(cls, "__pydantic_config__"):
        return models.without_bytes(cls[args] if args else cls, builder.namespace)
    hints = [builder.resolve(hint) for base in cls.__mro__ if base is not object for hint in annotations_of(base).values()]
    return models.made_of_its_own(cls[args], builder.namespace, *hints) if args else None


def _dataclass(cls, builder, args):
    import dataclasses

    hints = hints_of(cls, builder)
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    missing = dataclasses.MISSING
    initial = [name for name, field in cls.__dataclass_fields__.items() if field._field_type is dataclasses._FIELD_INITVAR]
    described = {name: field.default for name, field in fields.items() if is_description(field.default)}
    optional = [name for name, field in fields.items() if described.get(name, field).default is None]  # `x: int = None` means it
    is_renamed = _is_renamed(cls, builder)
    convert = _of_pydantic(cls, builder, args, bool(described) or is_renamed)
    if convert is not None:
        from . import models

        if is_renamed:
            return _closed(cls, None, convert)
        keys = models.aliases_of(described)
        unnamed = [name for name, (texts, heads) in keys.items() if heads and not texts]
        known = [*(name for name in fields if name not in unnamed), *initial, *(key for one in keys.values() for part in one for key in part)]
        return _closed(cls, known, models.renaming(convert, keys, optional))
    required = [name for name, field in fields.items() if field.default is missing and field.default_factory is missing]
    required += [name for name, note in described.items() if note.is_required()]
    hints.update((name, or_none(hints[name])) for name in optional if hints.get(name) is not None)
    return _from_fields(cls, hints, [*fields, *initial], required, described)


def _is_renamed(cls, builder):
    """Whether pydantic has other names for its fields, apart from their defaults: `Annotated[int, Field(alias="id")]`"""
    if "pydantic" not in sys.modules:
        return False
    from .models import names_fields_otherwise

    return names_fields_otherwise(cls, [builder.resolve(hint) for base in cls.__mro__ for hint in annotations_of(base).values()])


def _from_fields(cls, converters, fields, required, described=()):
    def convert(value, path):
        for name in required:
            if name not in value:
                raise Mismatch("%s.%s" % (path, name), "a value: it is required", shown=False)
        made = _each(value, converters, path)
        for name in described:
            if name not in made:
                made[name] = described[name].get_default(call_default_factory=True)
        return _construct(cls, made, path, value)

    return _closed(cls, fields, convert)


def _closed(cls, fields, convert):
    """Takes objects without further keys, of any where `fields` is None, and instances as they are."""
    def convert_closed(value, path):
        if isinstance(value, cls):
            return value
        for name in _need_object(value, path):
            if fields is not None and name not in fields:
                raise Mismatch("%s.%s" % (path, name), "one of the fields " + ", ".join(fields), shown=False)
        return convert(value, path)

    return convert_closed


def _typed_dict(cls, builder, args):
    hints = hints_of(cls, builder)
    is_open = admits_further(cls)
    by_pydantic = _of_pydantic(cls, builder, args, False)

    def convert(value, path):
        for name in () if is_open else _need_object(value, path):
            if name not in hints:
                raise Mismatch("%s.%s" % (path, name), _one_of(name, hints), shown=False)
        return _each(_need_object(value, path), hints, path) if by_pydantic is None else by_pydantic(value, path)

    return convert


def admits_further(cls):
    """Whether a typed dictionary may have other keys: it says so, or is configured for pydantic."""
    further = getattr(cls, "__extra_items__", None)  # typing_extensions has a marker there for no further keys
    return further is not None and "NoExtraItems" not in repr(further) or hasattr(cls, "__pydantic_config__")


def _one_of(name, known):
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return "one of the keys %s%s" % (", ".join(known), "; did you mean %s?" % near[0] if near else "")


def _attrs(cls, builder):
    hints = hints_of(cls, builder)
    fields = {getattr(field, "alias", None) or field.name.lstrip("_"): field for field in cls.__attrs_attrs__ if field.init}
    converters = {name: hints.get(field.name) for name, field in fields.items()}
    # `attr.ib(type=int)` is no annotation, so the schema does not state it.
    checked = builder.within(builder.namespace, builder.bound, checks=True)
    converters.update((name, checked.build(field.type)) for name, field in fields.items()
                      if field.name not in hints and field.type is not None and field.converter is None)
    converters.update((name, or_none(converters[name])) for name, field in fields.items() if field.default is None and converters[name])
    required = [name for name, field in fields.items() if repr(field.default) == "NOTHING"]

    return _from_fields(cls, converters, list(fields), required)


def told_apart(structs):
    """Of a union of tagged structs; None where msgspec knows no such union."""
    import typing

    union = typing.Union[tuple(structs)]
    try:
        sys.modules["msgspec"].convert(None, type=union)
    except TypeError:
        return None
    except ValueError:  # it is one, and does not take None
        pass
    return _struct(union, " or ".join(one.__name__ for one in structs))


def _struct(cls, name=None):
    msgspec = sys.modules["msgspec"]
    name = name or getattr(cls, "__name__", str(cls))

    def convert(value, path):
        try:
            return msgspec.convert(value, type=cls)
        except msgspec.ValidationError as error:
            raise Mismatch(path, "%s (%s)" % (name, error), value) from None

    return convert


def _named_tuple(cls, builder):
    hints = hints_of(cls, builder)

    def convert(value, path):
        if type(value) is list:
            if len(value) > len(cls._fields):
                raise Mismatch(path, "at most %d items: %s" % (len(cls._fields), ", ".join(cls._fields)), value)
            value = dict(zip(cls._fields, value))
        elif type(value) is not dict:
            raise Mismatch(path, "a list or an object with " + ", ".join(cls._fields), value)
        return _construct(cls, _each(value, hints, path), path, value)

    return convert


def _need_object(value, path):
    if type(value) is not dict:
        raise Mismatch(path, "an object", value)
    return value


def _each(value, hints, path):
    return {
        name: item if hints.get(name) is None else hints[name](item, "%s.%s" % (path, name))
        for name, item in value.items()
    }


def _construct(cls, fields, path, value):
    try:
        return cls(**fields)
    except (ValueError, TypeError) as error:
        raise Mismatch(path, "%s (%s)" % (cls.__name__, error), value) from error
