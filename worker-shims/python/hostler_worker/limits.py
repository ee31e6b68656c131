"""Limits on values, as pydantic and annotated_types note them, as words of JSON Schema."""

_NUMBERS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf"}
_SIZES = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties")}
_DECIMAL = [{"type": "string"}, {"type": "number"}]


def constrain(schema, note):
    """The schema with the limits of a note that have a meaning for its type."""
    for inner in getattr(note, "metadata", None) or ():  # pydantic's Field
        schema = constrain(schema, inner)
    if type(note).__module__.partition(".")[0] not in ("annotated_types", "pydantic"):
        return schema
    branches = schema.get("anyOf")
    if branches is None:
        return _written(schema, note)
    others = [branch for branch in branches if branch != {"type": "null"}]
    if len(others) > 1 and others != _DECIMAL:
        return schema  # of several types it is not certain which one a limit is for
    return {**schema, "anyOf": [branch if branch == {"type": "null"} else _written(branch, note) for branch in branches]}


def _written(schema, note):
    if "contentEncoding" in schema:  # the characters of base64 are not the bytes that are counted
        return schema
    kind = schema.get("type")
    added = {}
    if kind in ("integer", "number"):
        for name, word in _NUMBERS.items():
            value = getattr(note, name, None)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0:
                added[word] = value
    if kind in _SIZES:
        for name, word in zip(("min_length", "max_length"), _SIZES[kind]):
            value = getattr(note, name, None)
            if isinstance(value, int) and value >= 0 and not (name == "min_length" and value == 0):
                added[word] = value
    pattern = getattr(note, "pattern", None)
    if kind == "string" and isinstance(pattern, str):
        added["pattern"] = pattern
    return {**schema, **added} if added else schema
