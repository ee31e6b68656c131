"""What types are in JSON, told by the live types: for names in a file's hints that cannot be followed by reading it.

The rules are those by which hostler reads files (docs/schemas.md). What is not certain is {}, never a guess.
"""

import sys
import typing
from _collections_abc import Iterable, Mapping, Set

from .types import _UNION, QUALIFIERS, Builder

# Where a value stands: an argument or a result, and either as pydantic takes and writes it within a model.
GIVEN, VALIDATED, RETURNED, DUMPED = SIDES = ("given", "validated", "returned", "dumped")
IN_MODEL = {GIVEN: VALIDATED, VALIDATED: VALIDATED, RETURNED: DUMPED, DUMPED: DUMPED}
_DEEPEST = 40
_MOST = 2000  # types in one description: more is no description

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
          dict: "object", list: "array", tuple: "array"}
_TEXTS = (
    ("datetime", "datetime", "date-time"), ("datetime", "date", "date"), ("datetime", "time", "time"),
    ("ipaddress", "IPv4Address", "ipv4"), ("ipaddress", "IPv6Address", "ipv6"),
    ("ipaddress", "IPv4Network", "ipv4network"), ("ipaddress", "IPv6Network", "ipv6network"),
    ("re", "Pattern", "regex"), ("pathlib", "PurePath", "path"),
)
# Notes of pydantic's that take what the type takes and write what it writes. After any other everything may be otherwise.
_HARMLESS = ("AfterValidator", "AllowInfNan", "FailFast", "PathType", "Strict", "UuidVersion")


def describe(wanted, namespace):
    """{side: [name]} to {side: {"names": {name: schema}, "defs": {…}}}, without the names nothing is known of."""
    found = {}
    for side in SIDES:
        writer = Writer(side, namespace)
        names = {}
        for name in wanted.get(side) or ():
            inner, writer.namespace = _within(name, namespace)
            schema = _of_command(inner, writer.namespace) if inner.endswith("()") else writer.whole(_named(inner, writer.namespace))
            if schema:
                names[name] = schema
        if names:
            found[side] = {"names": names, "defs": writer.definitions}
    return found


def _within(name, namespace):
    """The name as its file has it, and what names mean there: `beside:PLACE:NAME` is of a neighbour."""
    if not name.startswith("beside:"):
        return name, namespace
    from .frameworks.beside import scope_of

    _, place, inner = name.split(":", 2)
    return inner, scope_of(sys.modules[namespace["__name__"]], place)


def _of_command(name, namespace):
    """The arguments of a click command, whose decorators may have added some that its file does not show."""
    try:
        from .frameworks.command_arguments import arguments_of

        return arguments_of(namespace[name[:-2]], sys.modules[namespace["__name__"]])
    except Exception:
        return {}  # no command any more


def _named(dotted, namespace):
    if "[" in dotted:  # a generic class with arguments, as the file's own hint has it
        try:
            return eval(dotted, namespace)
        except Exception:
            return None
    first, *rest = dotted.split(".")
    try:
        value = namespace[first]
        for name in rest:
            value = getattr(value, name)
    except Exception:
        return None  # a name for type checkers only
    return value


class Writer:
    """Writes the schemas of one side; classes go to `definitions`, each once."""

    def __init__(self, side, namespace):
        self.side = side
        self.namespace = namespace  # where names in quotes mean something
        self.definitions = {}
        self.keys = {}  # (class, side) to its name among the definitions
        self.depth = self.count = 0

    @property
    def is_input(self):
        return self.side in (GIVEN, VALIDATED)

    def whole(self, hint):
        """The schema of a hint, or {} with nothing left of it among the definitions."""
        before = dict(self.definitions), dict(self.keys)
        self.count = 0
        try:
            schema = self.hint(hint)
        except Exception:  # the author's own types ran: what they do not tell is not known
            schema = {}
        if not schema:
            self.definitions, self.keys = before
        return schema

    def hint(self, hint):
        self.depth += 1
        self.count += 1
        try:
            if self.depth > _DEEPEST or self.count > _MOST:
                raise ValueError("too much for a schema")
            return self._hint(Builder(self.namespace).resolve(hint))
        finally:
            self.depth -= 1

    def _hint(self, hint):
        if hint is None or hint is typing.Any or hint is object:
            return {}
        if hint is typing.Tuple:  # alone it looks like the empty one
            return {"type": "array"}
        origin = typing.get_origin(hint)
        if origin is not None:
            return self._generic(hint, origin, typing.get_args(hint))
        if hasattr(hint, "__supertype__"):  # NewType
            return self.hint(hint.__supertype__)
        if hasattr(hint, "__value__"):  # type X = ...
            return self.hint(hint.__value__)
        return self._bare(hint) if isinstance(hint, type) else {}

    def _bare(self, cls):
        if cls in _PLAIN:
            return {"type": _PLAIN[cls]}
        for kinds, schema in (((bytes, bytearray), self._bytes), ((set, frozenset), self._set)):
            if cls in kinds:
                return schema()
        text = self._text(cls)
        if text is not None:
            return text
        from . import described_classes

        return described_classes.schema(self, cls)

    def _bytes(self):
        if self.side == VALIDATED:
            return {"type": "string", "format": "binary"}
        return {"type": "string"} if self.side == DUMPED else {"type": "string", "contentEncoding": "base64"}

    def _set(self):
        return {"type": "array", "uniqueItems": True} if self.side != RETURNED else {}

    def _text(self, cls):
        """Types that are written as text of some form."""
        def one(module, name):
            return getattr(sys.modules.get(module), name, ()) is cls

        if one("uuid", "UUID"):
            return {"type": "string", "format": "uuid"}
        if one("decimal", "Decimal"):
            return {"anyOf": [{"type": "string"}, {"type": "number"}]} if self.is_input else {"type": "string"}
        if one("datetime", "timedelta"):
            text = {"type": "string", "format": "duration"}
            return {"anyOf": [text, {"type": "number"}]} if self.is_input else {"type": "string"}
        path = getattr(sys.modules.get("pathlib"), "PurePath", ())
        for module, name, form in _TEXTS:
            if one(module, name) or name == "PurePath" and path and issubclass(cls, path):
                return {"type": "string", "format": form} if self.is_input else {"type": "string"}
        return None

    def _generic(self, hint, origin, args):
        if hasattr(hint, "__metadata__"):
            return self._annotated(hint)
        if getattr(origin, "_name", "") in QUALIFIERS:
            return self.hint(args[0])
        if origin in _UNION:
            return any_of([self.hint(arg) for arg in args])
        if origin is typing.Literal:
            return one_of([getattr(arg, "value", arg) for arg in args])
        if not isinstance(origin, type):
            return {}  # of an alias with parameters only its body is known
        if origin is tuple:
            return self._tuple(args)
        if issubclass(origin, Set):
            return self._with(self._set(), "items", args)
        if issubclass(origin, Mapping) and not hasattr(origin, "__total__"):
            return self._mapping(origin, args)
        if origin is list or issubclass(origin, Iterable) and origin.__module__ in ("collections", "collections.abc"):
            if origin is not list and self.side == RETURNED:
                return {}  # a text is a sequence too
            return self._with({"type": "array"}, "items", args)
        return {}  # what a parameter stands for is left open

    def _with(self, outer, key, args):
        inner = self.hint(args[0]) if args else {}
        return {**outer, key: inner} if outer and inner else outer

    def _tuple(self, args):
        if len(args) == 2 and args[1] is Ellipsis:
            return self._with({"type": "array"}, "items", args)
        if any(getattr(arg, "__unpacked__", False) or getattr(typing.get_origin(arg), "_name", "") == "Unpack" for arg in args):
            return {"type": "array"}
        items = [] if args == ((),) else [self.hint(arg) for arg in args]
        return {"type": "array", **({"prefixItems": items} if items else {}), "minItems": len(items), "maxItems": len(items)}

    def _mapping(self, origin, args):
        if origin.__name__ == "Counter":
            return {"type": "object", "additionalProperties": {"type": "integer"}}
        schema = self._with({"type": "object"}, "additionalProperties", args[1:])
        key = self.hint(args[0]) if args else {}
        if key.get("type") == "string" and len(key) > 1:
            schema["propertyNames"] = key
        return schema

    def _annotated(self, hint):
        if any(overrules(note) for note in hint.__metadata__):
            return {}
        return self.noted(self.hint(hint.__origin__), hint.__metadata__)

    def noted(self, schema, notes):
        """A schema with what `Annotated` or a field says besides: a description, and limits for arguments."""
        from .limits import constrain

        for note in notes:
            text = note if isinstance(note, str) else getattr(note, "description", None) or getattr(note, "documentation", None)
            if isinstance(text, str):
                schema = {**schema, "description": text}
            if self.is_input:
                schema = constrain(schema, note)
        return schema


def overrules(note):
    """Whether a note decides by itself what is taken and written."""
    return hasattr(note, "__get_pydantic_core_schema__") and type(note).__name__ not in _HARMLESS


def any_of(branches):
    """One unknown among them makes the whole unknown."""
    distinct = []
    for branch in branches:
        if not set(branch) - {"description", "default"}:
            return {}
        for part in branch["anyOf"] if set(branch) == {"anyOf"} else [branch]:
            if part not in distinct:
                distinct.append(part)
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def nullable(schema):
    if not set(schema) - {"description", "default"} or {"type": "null"} in schema.get("anyOf", ()) or None in schema.get("enum", ()):
        return schema
    rest = {key: value for key, value in schema.items() if key != "description"}
    text = {"description": schema["description"]} if "description" in schema else {}
    return {**any_of([rest, {"type": "null"}]), **text}


_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def one_of(values):
    """One of a few values; {} when one of them is nothing that JSON has."""
    found = {}
    for value in values:
        value = _as_json(value)
        if value is _NOTHING:
            return {}
        found.setdefault((type(value), str(value)), value)
    distinct = [*found.values()]
    kinds = {_KINDS.get(type(value)) for value in distinct}
    kind = {"type": kinds.pop()} if len(kinds) == 1 and None not in kinds else {}
    return {**kind, "enum": distinct} if distinct else {}


_NOTHING = object()


def _as_json(value):
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            plain = kind(getattr(value, "value", value))
            return plain if plain == plain and plain not in (float("inf"), float("-inf")) else _NOTHING
    if isinstance(value, (list, tuple)):
        parts = [_as_json(part) for part in value]
        return _NOTHING if any(part is _NOTHING for part in parts) else parts
    return _NOTHING
