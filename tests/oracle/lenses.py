"""Reasons that are exact: our schema, rewritten as such a reason says, must admit what the oracle's admits and no more.

Without this a listed difference could hide another one in the same parameter.
"""

import copy


def _walk(schema, change):
    if isinstance(schema, dict):
        schema = change({key: _walk(value, change) for key, value in schema.items()})
    elif isinstance(schema, list):
        schema = [_walk(value, change) for value in schema]
    return schema


def _open(schema):
    if schema.get("type") == "object" and schema.get("additionalProperties") is False:
        schema.pop("additionalProperties")
    return schema


def _text(schema):
    if schema.get("contentEncoding") == "base64":
        schema["contentEncoding"] = "none"
    return schema


def _no_seconds(schema):
    branches = schema.get("anyOf", [])
    if any(branch.get("format") == "duration" for branch in branches):
        schema["anyOf"] = [branch for branch in branches if branch.get("type") != "number"]
    return schema


def _array_only(schema):
    branches = schema.get("anyOf", [])
    if any("prefixItems" in branch for branch in branches):
        schema["anyOf"] = [branch for branch in branches if "prefixItems" in branch]
    return schema


def _no_null(schema):
    if schema.get("default", ...) is None and "anyOf" in schema:
        schema["anyOf"] = [branch for branch in schema["anyOf"] if branch.get("type") != "null"]
    return schema


LENSES = {
    "base64": _text,
    "closed-dataclass": _open,
    "named-tuple": _array_only,
    "none-default": _no_null,
    "seconds": _no_seconds,
}


def through(reasons, document):
    """A schema as it would be without those reasons; None when one of them has no lens. The function's own parameters stay."""
    if not all(reason in LENSES for reason in reasons):
        return None
    document = copy.deepcopy(document)
    for part in ("properties", "$defs"):
        for reason in reasons:
            document[part] = {name: _walk(inner, LENSES[reason]) for name, inner in document.get(part, {}).items()}
    return document
