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
    except Exception:
        return None
    return _converter(str(getattr(hint, "__name__", hint)), adapter.validate_python)


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
