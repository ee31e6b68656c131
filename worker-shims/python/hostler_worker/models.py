"""Values that pydantic makes. A file that does not use pydantic never comes here."""

import sys

from .convert import Mismatch
from .encode import encode


def converter(cls):
    """Of a model, a pydantic dataclass, or anything else that has a `model_validate`."""
    own = getattr(getattr(cls, "model_validate", None), "__func__", None)
    base = getattr(getattr(sys.modules.get("pydantic"), "BaseModel", None), "model_validate", None)
    if hasattr(cls, "__pydantic_validator__") and (own is None or own is getattr(base, "__func__", None)):
        return _converter(getattr(cls, "__name__", "value"), lambda text: cls.__pydantic_validator__.validate_json(text), is_json=True)
    return _converter(cls.__name__, cls.model_validate)


def adapted(hint):
    """Of a type of pydantic's own, or one with a note that it reads; None when it does not know it either."""
    return _adapted(hint, {})


def _adapted(hint, namespace, fits=lambda schema: True, is_json=True):
    """`fits` is given pydantic's own schema of the type."""
    try:
        # Names in quotes mean something in the file that has them.
        place = dict(namespace, _hostler_adapter=sys.modules["pydantic"].TypeAdapter, _hostler_hint=hint)
        adapter = eval("_hostler_adapter(_hostler_hint)", place)
        validator = adapter.validator  # a name that it cannot resolve shows here
        validate = validator.validate_json if is_json else validator.validate_strings
    except Exception:
        return None
    return _converter(str(getattr(hint, "__name__", hint)), validate, is_json) if fits(adapter.core_schema) else None


def key(hint, namespace):
    """Of a type with notes that keys of an object have: JSON has strings there, also for `int`."""
    return None if _mentions_other(hint, 16) else _adapted(hint, namespace, is_json=False)


def without_bytes(hint, namespace):
    """Of a type that is not pydantic's, but says what only pydantic reads. None with bytes in it, which hostler writes as base64."""
    return _adapted(hint, namespace, lambda schema: not _has_bytes(schema))


def _has_bytes(schema):
    parts, seen = [schema], {}
    for part in parts:
        if id(part) in seen:
            continue
        seen[id(part)] = part
        if isinstance(part, dict):
            if part.get("type") == "bytes":
                return True
            parts.extend(part.values())
        elif isinstance(part, (list, tuple)):
            parts.extend(part)
    return False


def renaming(convert, keys, optional):
    """Takes fields by their own names, too, and null for those in `optional`, which are null by default."""
    aliases = {name: texts[0] for name, (texts, _) in keys.items() if texts}
    optional = {key for name in optional for key in (name, *keys.get(name, ((), ()))[0])}

    def complete(value, path):
        return convert({aliases.get(name, name): item for name, item in value.items() if item is not None or name not in optional}, path)

    return complete


def aliases_of(described):
    """By field, the keys that pydantic looks for in its place, and those that it looks into: of `AliasChoices("id", AliasPath("ids", 0))`, `id`
    and `ids`."""
    found = {}
    for name, note in described.items():
        alias = getattr(note, "validation_alias", None) or getattr(note, "alias", None)
        choices = getattr(alias, "choices", None) or ([] if alias is None else [alias])
        texts = [choice for choice in choices if isinstance(choice, str)]
        found[name] = texts, [choice.path[0] for choice in choices if not isinstance(choice, str)]
    return found


def names_fields_otherwise(cls, hints):
    """Whether pydantic has other names for the fields of a dataclass than their own and those of its defaults, or takes any name."""
    config = getattr(cls, "__pydantic_config__", {})
    notes = [note for hint in hints for note in getattr(hint, "__metadata__", ())]
    is_alias = lambda note: (getattr(note, "validation_alias", None) or getattr(note, "alias", None)) is not None
    return "alias_generator" in config or config.get("extra") == "allow" or any(map(is_alias, notes))


def made_of_its_own(hint, namespace, *inside):
    """Of a union, by which member fits best, or of an alias or a class with parameters and what is `inside`. None where a part is not one
    of pydantic's own types, or is bytes, which hostler writes as base64."""
    return None if any(_mentions_other(part, 16) for part in (*getattr(hint, "__args__", ()), *inside)) else without_bytes(hint, namespace)


def _mentions_other(hint, left):
    if isinstance(hint, str) or type(hint).__name__ == "ForwardRef":
        return False
    is_other = isinstance(hint, type) and not hasattr(hint, "__pydantic_validator__") and (
        hint in (bytes, bytearray) or any(hasattr(hint, sign) for sign in _SIGNS))
    return is_other or left <= 0 or any(_mentions_other(arg, left - 1) for arg in getattr(hint, "__args__", None) or ())


# Of dataclasses, typed dictionaries, named tuples, enumerations, and classes of attrs and msgspec.
_SIGNS = ("__dataclass_fields__", "__total__", "_fields", "__members__", "__attrs_attrs__", "__struct_fields__")


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
