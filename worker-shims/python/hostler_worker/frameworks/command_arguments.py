"""The arguments of a click command as click has them: what decorators of other files and loops add is in no `def`. Written as hostler's own
reading writes them (`discovery/python/frameworks/commands.rs`)."""

from .commands import Commands

_KINDS = {"IntParamType": "integer", "IntRange": "integer", "FloatParamType": "number", "FloatRange": "number", "BoolParamType": "boolean"}
_FORMATS = {"UUIDParameterType": "uuid", "Path": "path", "File": "path"}


def arguments_of(command, module):
    """The schema of all arguments of a command, and of the groups above it."""
    properties, required = {}, []
    for one in reversed(Commands(module).chain(command)):
        outer = frozenset(properties)  # of an inner command, which has precedence
        for parameter in one.params:
            if parameter.name in outer or parameter.is_eager and not parameter.expose_value and not getattr(parameter, "prompt", None):
                continue
            known = properties.get(parameter.name)
            schema = _schema(parameter)
            if known is None:
                properties[parameter.name] = schema
                if _is_required(parameter):
                    required.append(parameter.name)
            elif "enum" in known and "enum" in schema:  # switches of one name
                known["enum"] = [*known["enum"], *schema["enum"]]
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), "additionalProperties": False}


def _is_required(parameter):
    default = parameter.default
    if parameter.required or not getattr(parameter, "prompt", None) or parameter.envvar:
        return bool(parameter.required)
    return default is False or not _is_plain(default)  # what would be asked for at a terminal


def _schema(parameter):
    schema = _one(parameter)
    if parameter.nargs != 1 and schema.get("type") != "array":
        count = {} if parameter.nargs < 0 else {"minItems": parameter.nargs, "maxItems": parameter.nargs}
        schema = {"type": "array", "items": schema, **count}
    if getattr(parameter, "multiple", False):
        schema = {"type": "array", "items": schema}
    text = getattr(parameter, "help", None)
    if isinstance(text, str):
        schema["description"] = text
    default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
    if _is_plain(default) and _fits(schema, default):
        schema["default"] = default
    return schema


def _one(parameter):
    if getattr(parameter, "is_flag", False):
        value = getattr(parameter, "flag_value", True)
        return {"type": "boolean"} if isinstance(value, bool) or not _is_plain(value) else {"enum": [value]}
    return {"type": "integer"} if getattr(parameter, "count", False) else _of_type(parameter.type)


def _of_type(kind):
    name = type(kind).__name__
    if name == "Tuple":
        items = [_of_type(one) for one in kind.types]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if name == "Choice":
        choices = [getattr(choice, "name", choice) for choice in kind.choices]
        return {"type": "string", "enum": choices} if getattr(kind, "case_sensitive", True) else {"type": "string"}
    if name not in _KINDS:
        return {"type": "string", **({"format": _FORMATS[name]} if name in _FORMATS else {})}
    schema = {"type": _KINDS[name]}
    if not getattr(kind, "clamp", False):
        for limit, key, is_open in (("min", "minimum", "min_open"), ("max", "maximum", "max_open")):
            value = getattr(kind, limit, None)
            if isinstance(value, (int, float)):
                schema["exclusiveM" + key[1:] if getattr(kind, is_open, False) else key] = value
    return schema


def _is_plain(value):
    return isinstance(value, (str, int, float, bool)) or isinstance(value, list) and all(map(_is_plain, value))


def _fits(schema, value):
    kinds = {"string": str, "array": list, "integer": int, "number": (int, float), "boolean": bool}
    kind = kinds.get(schema.get("type"))
    return kind is None or isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
