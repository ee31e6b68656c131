"""Values that pydantic makes. A file that does not use pydantic never comes here."""

import sys

from .convert import Mismatch


def converter(cls):
    """Of a model, a pydantic dataclass, or anything else that has a `model_validate`."""
    if not hasattr(cls, "model_validate"):
        return _converter(getattr(cls, "__name__", "value"), cls.__pydantic_validator__.validate_python)
    validate = cls.model_validate
    if (getattr(cls, "model_config", None) or {}).get("strict"):
        # A strict model takes a date as text from JSON only.
        def validate(value):
            from .encode import encode

            return cls.model_validate_json(encode(value))

    return _converter(cls.__name__, validate)


def adapted(hint):
    """Of a type of pydantic's own, or one with a note that it reads; None when it does not know it either."""
    try:
        adapter = sys.modules["pydantic"].TypeAdapter(hint)
        adapter.validator  # a name that it cannot resolve shows here
    except Exception:
        return None
    return _converter(str(getattr(hint, "__name__", hint)), adapter.validate_python)


def cut_of(function):
    """What removes from results the fields that a subclass adds to the declared model, as pydantic does, and adds their names to a set;
    None where no model is declared."""
    from .convert import annotations_of
    from .types import Builder

    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    try:
        hint = annotations_of(inner).get("return")
        return None if hint is None else cutting(Builder(getattr(inner, "__globals__", {})).resolve(hint))
    except Exception:
        return None  # an annotation that fails to be read


def cutting(hint):
    """The same for one annotation."""
    args = getattr(hint, "__args__", ())
    origin = getattr(hint, "__origin__", None)
    if isinstance(hint, type) and hasattr(hint, "__pydantic_serializer__") and hasattr(hint, "model_fields"):
        serializer = hint.__pydantic_serializer__

        def cut(value, dropped):
            kind = type(value)
            if kind is hint or not isinstance(value, hint):
                return value
            own = {*kind.model_fields, *(value.model_extra or ())} - set(hint.model_fields)
            dropped.update("%s.%s" % (kind.__name__, name) for name in own)
            return serializer.to_python(value, mode="json", warnings=False)

        return cut
    if origin in (list, tuple) and args:
        each = cutting(args[0])
        return each and (lambda value, dropped: [each(item, dropped) for item in value] if isinstance(value, (list, tuple)) else value)
    if origin is dict and len(args) == 2:
        each = cutting(args[1])
        return each and (lambda value, dropped: {key: each(item, dropped) for key, item in value.items()} if isinstance(value, dict) else value)
    if getattr(origin, "__name__", "UnionType") in ("Union", "UnionType") and args:
        cuts = [each for each in map(cutting, args) if each is not None]
        return cuts[0] if len(cuts) == 1 else None
    return None


def _converter(name, validate):
    def convert(value, path):
        try:
            return validate(value)
        except ValueError as error:
            details = error.errors() if hasattr(error, "errors") else []
            if not details:
                raise Mismatch(path, "%s (%s)" % (name, error), value) from None
            first = details[0]
            for part in first["loc"]:
                path += "[%d]" % part if isinstance(part, int) else ".%s" % part
            raise Mismatch(path, "a valid value: " + first["msg"], first.get("input")) from None

    return convert
