"""Questions to a user: from a Python type to the form that MCP clients show, and from the form's values to the type."""

import sys

from .convert import Mismatch
from .describe import GIVEN, Writer
from .state import state
from .types import Builder

_KEPT = ("type", "title", "description", "default", "enum", "enumNames", "oneOf", "anyOf", "items", "const", "format", "minLength",
         "maxLength", "minimum", "maximum", "minItems", "maxItems")
_FORMATS = ("email", "uri", "date", "date-time")
_SIMPLE = ("string", "number", "integer", "boolean")
_ONE = "value"  # the name of the only field of a plain type


def form(kind):
    """The schema of a form, and what makes the value out of its content."""
    if kind is None:
        return {"type": "object", "properties": {}}, lambda content: None
    if isinstance(kind, dict):
        return kind, dict
    namespace = getattr(sys.modules.get(state.module_name), "__dict__", {})
    writer = Writer(GIVEN, namespace)
    schema = _followed(writer.whole(kind), writer.definitions)
    is_object = schema.get("type") == "object" and "properties" in schema
    if not is_object:
        schema = {"type": "object", "properties": {_ONE: schema}, "required": [_ONE]}
    wanted = set(schema.get("required", ()))
    fields = {name: _field(name, part, writer.definitions, wanted) for name, part in schema["properties"].items()}
    shown = {"type": "object", "properties": fields}
    if wanted:
        shown["required"] = [name for name in fields if name in wanted]
    left_out = dict.fromkeys(name for name in schema.get("required", ()) if name not in wanted)
    convert = Builder(namespace).build(kind)

    def value_of(content):
        given = {**left_out, **content} if is_object else content.get(_ONE)
        try:
            return given if convert is None else convert(given, "answer")
        except Mismatch as error:
            raise _error("the answer does not fit: %s" % error) from None

    return shown, value_of


def _error(text):
    from hostler import HostlerError

    return HostlerError(text)


def _followed(schema, definitions):
    """Without the reference of a class."""
    while "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **rest}
    return schema


def _field(name, schema, definitions, wanted):
    schema = _followed(schema, definitions)
    branches = schema.get("anyOf")
    if branches:  # a field that may be left out
        rest = [branch for branch in branches if branch.get("type") != "null"]
        if len(rest) == 1 and len(rest) < len(branches):
            wanted.discard(name)
            schema = {**{key: value for key, value in schema.items() if key != "anyOf"}, **_followed(rest[0], definitions)}
    if schema.get("default", 0) is None:
        schema = {key: value for key, value in schema.items() if key != "default"}
    if not _is_plain(schema, definitions):
        raise _error("the field %r has a type that forms do not have; use separate fields of str, int, float, bool, or choices" % name)
    field = {key: value for key, value in schema.items() if key in _KEPT}
    if "items" in field:
        field["items"] = _followed(field["items"], definitions)
    if field.get("format") not in _FORMATS:
        field.pop("format", None)
    return field


def _is_plain(schema, definitions):
    kind = schema.get("type")
    if kind == "array":  # several of some choices
        items = _followed(schema.get("items") or {}, definitions)
        return items.get("type") == "string" and "enum" in items or "anyOf" in items
    return kind in _SIMPLE


def images_of(images):
    """Images for a model: each its bytes in base64, and their type."""
    from .files import Image

    found = (image if hasattr(image, "as_object") else Image(image) for image in images)
    objects = (image.as_object() for image in found)
    return [{"data": shown["base64"], "mime_type": shown["mime_type"]} for shown in objects]
