"""Values that pydantic makes. A file that does not use pydantic never comes here."""

import sys

from .convert import Mismatch
from .encode import encode


def converter(cls):
    """Of a model, a pydantic dataclass, or anything else that has a `model_validate`."""
    if hasattr(cls, "__pydantic_validator__"):
        return _converter(getattr(cls, "__name__", "value"), lambda text: cls.__pydantic_validator__.validate_json(text), is_json=True)
    return _converter(cls.__name__, cls.model_validate)


def adapted(hint):
    """Of a type of pydantic's own, or one with a note that it reads; None when it does not know it either."""
    try:
        adapter = sys.modules["pydantic"].TypeAdapter(hint)
        adapter.validator  # a name that it cannot resolve shows here
    except Exception:
        return None
    return _converter(str(getattr(hint, "__name__", hint)), adapter.validator.validate_json, is_json=True)


def union(hint, namespace):
    """Of a union, by which member fits best; None when pydantic does not know a member, or writes bytes in another form."""
    if _mentions_bytes(hint, 16):
        return None
    try:
        # Names in quotes mean something in the file that has them.
        place = dict(namespace, _hostler_adapter=sys.modules["pydantic"].TypeAdapter, _hostler_hint=hint)
        validator = eval("_hostler_adapter(_hostler_hint)", place).validator
    except Exception:
        return None
    return _converter(str(hint), validator.validate_json, is_json=True)


def _mentions_bytes(hint, left):
    return hint in (bytes, bytearray) or left > 0 and any(_mentions_bytes(arg, left - 1) for arg in getattr(hint, "__args__", None) or ())


def _converter(name, validate, is_json=False):
    """A strict type takes a date as text from JSON only, and a union distinguishes by what JSON has: then `validate` is given that."""
    def convert(value, path):
        try:
            return validate(encode(value)) if is_json else validate(value)
        except ValueError as error:
            details = error.errors() if hasattr(error, "errors") else []
            if not details:
                raise Mismatch(path, "%s (%s)" % (name, error), value) from None
            first = details[0]
            for part in first["loc"]:
                path += "[%d]" % part if isinstance(part, int) else ".%s" % part
            raise Mismatch(path, "a valid value: " + first["msg"], first.get("input")) from None

    return convert
