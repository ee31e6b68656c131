"""The schemas of pydantic's models and dataclasses: as they take values, or as they write them."""

from .describe import overrules

_FIRST = ("before", "plain", "wrap")


def model(writer, cls, property_of, object_of):
    decorators = getattr(cls, "__pydantic_decorators__", None)
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    if _goes_its_own_way(writer, cls, decorators, config):
        return {}
    fields = getattr(cls, "model_fields", None) or getattr(cls, "__pydantic_fields__", {})
    overruled = _overruled(writer, decorators)
    if getattr(cls, "__pydantic_root_model__", False):
        return _field(writer, fields["root"], overruled & {"root", "*"}, property_of)
    properties, required = {}, []
    for name, field in fields.items():
        if not writer.is_input and field.exclude:
            continue
        shown = _name(field, name) if writer.is_input else name
        if shown is None:
            return {"type": "object"}
        is_required = field.is_required()
        properties[shown] = _field(writer, field, overruled & {name, "*"}, property_of)
        may_be_left_out = not writer.is_input and getattr(field, "exclude_if", None) is not None
        if (is_required and not _also_by_name(config, shown, name) or not writer.is_input) and not may_be_left_out:
            required.append(shown)
        if writer.is_input and shown != name and _also_by_name(config, shown, name):
            properties[name] = {key: value for key, value in properties[shown].items() if key != "default"}
    return object_of(writer, properties, required, config.get("extra") == "forbid" and writer.is_input)


def _field(writer, field, is_overruled, property_of):
    if is_overruled or any(overrules(note) for note in field.metadata):
        written = {}
    else:
        default = (field.default,) if not field.is_required() and field.default_factory is None else ()
        written = property_of(writer, field.annotation, default, field.metadata)
    return {**written, "description": field.description} if field.description else written


def _name(field, name):
    """The name in JSON; None where several would do."""
    given = field.validation_alias if field.validation_alias is not None else field.alias
    return name if given is None else given if isinstance(given, str) else None


def _also_by_name(config, shown, name):
    return shown != name and bool(config.get("populate_by_name") or config.get("validate_by_name"))


def _goes_its_own_way(writer, cls, decorators, config):
    """Whether the fields say nothing about a whole value."""
    if any("__get_pydantic_core_schema__" in base.__dict__ for base in _own(cls)):
        return True
    if writer.is_input:
        # A constructor of its own takes what it likes; that of a dataclass is generated.
        names = ("model_validate",) if hasattr(cls, "__dataclass_fields__") else ("model_validate", "__init__")
        if any(name in base.__dict__ for base in _own(cls) for name in names):
            return True
        validators = getattr(decorators, "model_validators", {}).values()
        return any(one.info.mode in ("before", "wrap") for one in validators) or bool(getattr(decorators, "root_validators", None))
    writes_otherwise = ("serialize_by_alias", "json_encoders", "ser_json_temporal", "ser_json_bytes", "ser_json_inf_nan")
    return bool(getattr(decorators, "model_serializers", None)) or any(config.get(name) for name in writes_otherwise) or any(
        "model_dump" in base.__dict__ for base in _own(cls))


def _own(cls):
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] not in ("pydantic", "builtins", "typing")]


def _overruled(writer, decorators):
    """The fields whose values some function of the model makes or writes in its own way; `*` are all of them."""
    if writer.is_input:
        groups = [one.info for one in getattr(decorators, "field_validators", {}).values() if one.info.mode in _FIRST]
        groups += [one.info for one in getattr(decorators, "validators", {}).values()]
    else:
        groups = [one.info for one in getattr(decorators, "field_serializers", {}).values()]
    return {name for info in groups for name in info.fields}
