"""The schemas of live classes: enumerations, dataclasses, typed dictionaries, named tuples, pydantic's models."""

import sys

from .convert import alias_of, annotations_of, is_description
from .describe import GIVEN, IN_MODEL, RETURNED, nullable, one_of
from .structured import admits_further


def schema(writer, cls):
    """A reference to a definition of the class, or {} for one whose form is not known."""
    kind = _kind(cls)
    if kind is None:
        return _of_pydantic(writer, cls) if cls.__module__.partition(".")[0] == "pydantic" else {}
    if kind is _enumeration:
        side = GIVEN
    elif hasattr(cls, "__pydantic_validator__") and not (writer.side == RETURNED and hasattr(cls, "__dataclass_fields__")):
        side = IN_MODEL[writer.side]
    else:  # a pydantic dataclass that is returned is written field by field, like any other
        side = writer.side
    key = writer.keys.get((cls, side))
    if key is None:
        key = writer.keys[cls, side] = _free_name(writer, cls, side)
        writer.definitions[key] = None  # stands in for the class inside itself
        outside = writer.side, writer.namespace, writer.depth
        writer.side, writer.namespace = side, getattr(sys.modules.get(cls.__module__), "__dict__", writer.namespace)
        writer.depth = 0
        try:
            written = kind(writer, cls)
        finally:
            writer.side, writer.namespace, writer.depth = outside
        text = _docstring(cls)
        writer.definitions[key] = {**written, **({"description": text} if text and written else {})}
    return {} if writer.definitions[key] == {} else {"$ref": "#/$defs/" + key}


def _free_name(writer, cls, side):
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in cls.__name__)
    if side == IN_MODEL[side] and not hasattr(cls, "__pydantic_validator__"):
        name += "-in-model"
    free, number = name, 1
    while free in writer.definitions:
        number += 1
        free = "%s-%d" % (name, number)
    return free


def _kind(cls):
    enum = sys.modules.get("enum")
    if enum is not None and issubclass(cls, enum.Enum):
        return _enumeration
    if hasattr(cls, "__pydantic_validator__") and (hasattr(cls, "model_fields") or hasattr(cls, "__pydantic_fields__")):
        return _model
    if hasattr(cls, "__dataclass_fields__") and not issubclass(cls, (dict, list, tuple, str, int, float)):
        return _dataclass
    if issubclass(cls, dict) and hasattr(cls, "__total__"):
        return _typed_dict
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _named_tuple
    return None


def _docstring(cls):
    """The first paragraph, on one line. Without one a dataclass is given its signature, an enumeration a stock phrase."""
    text = cls.__dict__.get("__doc__")
    if not isinstance(text, str) or text.startswith(cls.__name__ + "(") or text == "An enumeration.":
        return None
    return " ".join(text.strip().partition("\n\n")[0].split()) or None


def _enumeration(writer, cls):
    enum = sys.modules["enum"]
    takes_others = cls._missing_.__func__ is not enum.Enum._missing_.__func__ or (
        type(cls).__call__ is not type(enum.Enum).__call__)
    if issubclass(cls, str) and any(str.__str__(member) != member.value for member in cls):
        return {} if writer.is_input else {"type": "string"}  # taken by value, written by text
    if issubclass(cls, enum.Flag) or takes_others:
        # The members of a flag combine into values that no list holds.
        return {"type": "string"} if issubclass(cls, str) else {"type": "integer"} if issubclass(cls, int) or issubclass(cls, enum.Flag) else {}
    return one_of([member.value for member in cls])


def _property(writer, hint, default, notes=()):
    """`default` is a tuple of one, or empty."""
    written = writer.noted(writer.hint(hint), notes)
    if writer.is_input and default:
        value = _plain(default[0])
        if default[0] is None:
            written = nullable(written)
        if value:
            written = {**written, "default": value[0]}
    return written


def _plain(value):
    """A default as JSON in a tuple, or nothing."""
    # No text: what a live default holds may be a secret, and lists are shown to everybody.
    if value is None or isinstance(value, (bool, int, float)) or hasattr(type(value), "__members__"):
        found = one_of([getattr(value, "value", value)]).get("enum")
        return tuple(found) if found else ()
    return ([],) if value == [] else ({},) if value == {} else ()


def _object(writer, properties, required, closed):
    built = {"type": "object", "properties": properties}
    if required:
        built["required"] = required
    if closed:
        built["additionalProperties"] = False
    return built


def _dataclass(writer, cls):
    import dataclasses

    if writer.is_input and "__init__" in cls.__dict__ and not cls.__dataclass_params__.init:
        return {"type": "object"}  # a constructor of its own takes what it likes
    hints = _hints(cls)
    properties, required, takes_others = {}, [], False
    for name, field in cls.__dataclass_fields__.items():
        is_initial = field._field_type is dataclasses._FIELD_INITVAR
        if field._field_type is dataclasses._FIELD_CLASSVAR or not field.init and writer.is_input or is_initial and not writer.is_input:
            continue
        hint = getattr(field.type, "type", None) if is_initial else hints.get(name, field.type)
        note = next((one for one in (field.default, *getattr(hint, "__metadata__", ())) if is_description(one)), None)
        default = () if field.default is dataclasses.MISSING else (field.default,)
        is_required = not default and field.default_factory is dataclasses.MISSING
        is_default = note is not None and note is field.default  # pydantic's
        if is_default:
            is_required = note.is_required()
            default = () if is_required or note.default_factory else (note.default,)
        key = writer.is_input and note is not None and alias_of(note) or name
        has_choices = getattr(getattr(note, "validation_alias", None), "choices", None) is not None
        takes_others = takes_others or has_choices
        properties[key] = _property(writer, hint, default, (note,) if is_default else ())
        if not writer.is_input or is_required and not has_choices:
            required.append(key)
    return _object(writer, properties, required, writer.side == GIVEN and not takes_others)


def _hints(cls):
    found = {}
    for base in reversed(cls.__mro__):
        if "__annotations__" in base.__dict__ or hasattr(base, "__annotate__"):
            found.update(annotations_of(base))
    return found


def _typed_dict(writer, cls):
    keys = getattr(cls, "__required_keys__", frozenset())
    hints = annotations_of(cls)
    properties = {name: writer.hint(hint) for name, hint in hints.items()}
    may_be_absent = [name for name, hint in hints.items() if "NotRequired" in _text(hint)]
    must_be = [name for name, hint in hints.items() if "Required[" in _text(hint)]  # in quotes Python did not see it
    required = [name for name in hints if (name in keys or name in must_be) and name not in may_be_absent]
    closed = not admits_further(cls) if writer.side == GIVEN else getattr(cls, "__closed__", None) is True
    return _object(writer, properties, required, closed)


def _text(hint):
    return str(getattr(hint, "__forward_arg__", hint))


def _builds_itself(cls):
    """Whether a named tuple has a constructor besides the generated one."""
    for base in cls.__mro__:
        if "_fields" in base.__dict__:
            return False
        if "__new__" in base.__dict__ or "__init__" in base.__dict__:
            return True
    return False


def _named_tuple(writer, cls):
    if writer.is_input and _builds_itself(cls):
        return {}
    hints, defaults = annotations_of(cls), cls._field_defaults
    properties = {
        name: _property(writer, hints[name], (defaults[name],) if name in defaults else ()) if name in hints else {}
        for name in cls._fields
    }
    items = [*properties.values()]
    # What is written is written whole.
    least = len([name for name in cls._fields if name not in defaults]) if writer.is_input else len(items)
    array = {"type": "array", "prefixItems": items, "minItems": least, "maxItems": len(items)}
    if not items:
        return {"type": "array"} if not writer.is_input else {}
    if not writer.is_input:
        return array
    required = [name for name in cls._fields if name not in defaults]
    return {"anyOf": [_object(writer, properties, required, True), array]}


def _model(writer, cls):
    from .described_models import model

    return model(writer, cls, _property, _object)


def _of_pydantic(writer, cls):
    """A type that pydantic brings."""
    try:
        adapter = sys.modules["pydantic"].TypeAdapter(cls)
        written = adapter.json_schema(mode="validation" if writer.is_input else "serialization")
    except Exception:
        return {}
    if "$defs" in written or "$ref" in written:
        return {}
    kept = ("type", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if writer.is_input else ("type",)
    return {key: written[key] for key in kept if key in written}
