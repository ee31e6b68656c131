"""A tool's value as JSON text: one pass in C, and a slow walk only when that fails."""

import sys

from .interrupt import Cancelled
from .state import state
from .wire import quote

try:
    from _json import make_encoder
except ImportError:
    make_encoder = None

_DEEPEST = 300  # only the slow walk counts
_SHOWN = 12  # path segments in a message


class NotJson(Exception):
    """The message names the place in the value and what to return instead."""


class ToolFailed(Exception):
    """What a tool returned says that it failed, and why."""


readers = None  # by package, what reads the results of a framework's classes


def encode(value):
    try:
        chunks = _encode(value, 0)
    except BaseException as error:
        _markers.clear()
        _let_pass(error)
        return _explain(value, error)
    text = chunks[0] if len(chunks) == 1 else "".join(chunks)
    if '":' in text and _numeric_key(text):
        # {1: "a", "1": "b"} would be an object with one name twice, which readers cut down in
        # silence. Only keys that read like a number or constant can do it, so only they are walked.
        _check_keys(value)
    return text


def _let_pass(error):
    """Raise again what ends the worker, or the tool's call while it runs. Once that has returned, an exit in what it
    returned is a fault of the result like any other."""
    if type(error) is ToolFailed:
        raise error
    if not issubclass(type(error), Exception) and (state.terminating or not state.guard or type(error) is Cancelled):
        raise error


def default(value):
    """What JSON has no word for, as something it has."""
    kind = type(value)
    if readers is not None:
        read = readers.get(kind.__module__.partition(".")[0])
        plain = value if read is None else read(value)
        if plain is not value:
            return plain
    for module, names, convert in _KNOWN:
        loaded = sys.modules.get(module)  # not imported: then nothing can be of its types
        if loaded is not None:
            for name in names:
                if isinstance(value, getattr(loaded, name)):
                    return convert(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        from binascii import b2a_base64

        return b2a_base64(value, newline=False).decode()
    if hasattr(kind, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if kind.__name__ == "deque" and kind.__module__ == "collections":
        return list(value)
    if hasattr(kind, "__attrs_attrs__"):
        return {field.name: getattr(value, field.name) for field in kind.__attrs_attrs__}
    if hasattr(kind, "__struct_fields__") and "msgspec" in sys.modules:
        return sys.modules["msgspec"].to_builtins(value)
    if hasattr(kind, "__pydantic_serializer__"):  # pydantic's dataclasses
        return kind.__pydantic_serializer__.to_python(value, mode="json", warnings=False)
    if hasattr(kind, "__dataclass_fields__"):
        return {field.name: getattr(value, field.name) for field in sys.modules["dataclasses"].fields(value)}
    if hasattr(kind, "__get_pydantic_core_schema__") and "pydantic_core" in sys.modules:  # addresses, secrets
        return _own_form(value)
    if isinstance(value, complex):
        return _own_form(value) if "pydantic_core" in sys.modules else str(value).strip("()")
    if hasattr(kind, "item") and getattr(value, "shape", None) == ():
        return value.item()
    written = readers is not None and "mcp" in sys.modules and _annotated(value)
    if written:
        return written
    raise NotJson("%s is not JSON; %s" % (kind.__name__, _advice(value)))


def _annotated(value):
    """What a class of the author's declares by annotations, as the SDK of MCP writes it."""
    from .convert import annotations_of

    if "-packages" in (getattr(sys.modules.get(type(value).__module__), "__file__", None) or ""):
        return None
    own = [base for base in type(value).__mro__ if base.__module__ not in ("builtins", "typing", "abc")]
    names = dict.fromkeys(name for base in reversed(own) for name, hint in annotations_of(base).items()
                          if not name.startswith("_") and "ClassVar" not in str(hint))
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _own_form(value):
    try:
        return sys.modules["pydantic_core"].to_jsonable_python(value)
    except ValueError:  # its schema says how it is written
        return sys.modules["pydantic"].TypeAdapter(type(value)).dump_python(value, mode="json")


def _advice(value):
    kind = type(value)
    # Tables and series go through as a list too, of the wrong things.
    for method, wanted, words in _TABLES:
        if hasattr(kind, method) and hasattr(kind, wanted):
            return words
    if hasattr(type(value), "__iter__"):
        return "return a list"
    return "return a dict, list, string, number, bool or None"


_TABLES = (
    ("iterrows", "to_dict", 'return its rows: .to_dict("records")'),
    ("iter_rows", "to_dicts", "return its rows: .to_dicts()"),
    ("tolist", "__len__", "return its .tolist()"),
    ("readline", "read", "return its content (.read())"),
)


def _duration(value):
    """ISO 8601 in seconds, exact: 90 s and a half is PT90.5S."""
    whole, micro = divmod(abs(value.days * 86400000000 + value.seconds * 1000000 + value.microseconds), 1000000)
    text = "PT%d%sS" % (whole, (".%06d" % micro).rstrip("0") if micro else "")
    return "-" + text if value.days < 0 else text


_KNOWN = (
    ("enum", ("Enum",), lambda value: value.value),
    ("datetime", ("date", "time"), lambda value: value.isoformat()),
    ("datetime", ("timedelta",), _duration),
    ("decimal", ("Decimal",), str),
    ("uuid", ("UUID",), str),
    ("re", ("Pattern",), lambda value: value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1")),
    ("pathlib", ("PurePath",), str),
    ("hostler_worker.files", ("File", "Link"), lambda value: value.as_object()),
    ("PIL.Image", ("Image",), lambda value: _files().picture_object(value)),
    ("matplotlib.figure", ("Figure",), lambda value: _files().figure_object(value)),
    ("ipaddress", ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"), str),
    ("zoneinfo", ("ZoneInfo",), str),
    ("fractions", ("Fraction",), str),
    ("pydantic_core", ("Url", "MultiHostUrl"), str),
)


def _files():
    from . import files

    return files


_markers = {}


def _make():
    if make_encoder is not None:
        return make_encoder(_markers, default, quote, None, ":", ",", False, False, False)
    from json import JSONEncoder

    plain = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)
    return lambda value, _: [plain.encode(value)]


_encode = _make()
_pattern = None


_is_shared = False


def share():
    """Several threads encode at once, perhaps the same object: each keeps marks of its own."""
    global _encode, _is_shared
    if make_encoder is not None and not _is_shared:
        _is_shared = True
        _encode = lambda value, level: make_encoder({}, default, quote, None, ":", ",", False, False, False)(value, level)


def _numeric_key(text):
    global _pattern
    if _pattern is None:
        import re

        _pattern = re.compile(r'"(?:-?[0-9][-+.0-9e]*|true|false|null)":').search
    return _pattern(text)


def _explain(value, error):
    """Find the place that C could not encode; keys C does not know may turn out well."""
    plain = walk(value)
    try:
        return "".join(_encode(plain, 0))
    except BaseException as again:
        _markers.clear()
        _let_pass(again)
        raise NotJson("result: " + _described(error)) from None


def _check_keys(value):
    try:
        walk(value)
    except NotJson as error:
        if "nested deeper" not in str(error):
            raise


def half_character(value):
    """Where in a value the text is that UTF-8 refuses."""
    try:
        walk(value)
    except NotJson as error:
        return str(error)
    return "result: half a character, which no text may hold"


def walk(value):
    """A copy made of JSON's own types; NotJson with the path where that is not possible."""
    path = ["result"]
    try:
        return _walk(value, path, set())
    except NotJson as error:
        problem = error
    except RecursionError:
        problem = _too_deep()
    except BaseException as error:  # a model's own serializer
        _let_pass(error)
        problem = _described(error)
    shown = path if len(path) <= _SHOWN else path[:_SHOWN] + ["…"]
    raise NotJson("%s: %s" % ("".join(shown), problem)) from None


def _too_deep():
    return "nested deeper than about 120 levels, the limit for JSON readers; flatten it"


def _described(error):
    from .faults import describe

    return describe(error)


def _walk(value, path, above):
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _int(value)
    if isinstance(value, float):
        return _float(value)
    if id(value) in above:
        raise NotJson("circular reference; return the id or name of what it refers back to")
    if len(path) > _DEEPEST:
        raise NotJson(_too_deep())
    above.add(id(value))
    if isinstance(value, dict):
        plain = _object(value, path, above)
    elif isinstance(value, (list, tuple)):
        plain = []
        for index, item in enumerate(value):
            path.append("[%d]" % index)
            plain.append(_walk(item, path, above))
            path.pop()
    elif hasattr(type(value), "__next__") and type(value).__module__ == "builtins":
        # Generators, and what `map`, `zip` and `iter` give, can be read once: here, and not where encoding is tried first.
        plain = _walk(list(value), path, above)
    else:
        plain = _walk(default(value), path, above)
    above.discard(id(value))
    return plain


def _text(value):
    text = str.__str__(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotJson(
            "%s is half a character, which no text may hold; return value.encode('utf-8', 'replace').decode(), or "
            "os.fsencode(value) for a file's name" % ascii(text[error.start])) from None
    return text


def _int(value):
    try:
        int.__repr__(value)
    except ValueError:  # longer than the interpreter is willing to print
        raise NotJson("an integer too long for JSON; return it as a string in hexadecimal") from None
    return value


def _float(value):
    if value - value != 0:
        raise NotJson("%s is not JSON; return None instead, and say so in the annotation (`float | None`)" % float.__repr__(value))
    return value


def _object(value, path, above):
    plain = {}
    for key, item in value.items():
        text = _key(key)
        path.append("." + text if text.isidentifier() else "[%s]" % quote(text))
        if text in plain:
            raise NotJson("two keys become the same text %s; rename one of them" % quote(text))
        plain[text] = _walk(item, path, above)
        path.pop()
    return plain


def _key(key):
    if isinstance(key, str):
        return _text(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int):
        return int.__repr__(_int(key))
    if isinstance(key, float):
        return float.__repr__(_float(key))
    try:
        return _key(_scalar_key(key))
    except NotJson:
        raise NotJson("a key of type %s is not JSON; make it a string" % type(key).__name__) from None


def _scalar_key(key):
    plain = default(key)
    if isinstance(plain, (str, int, float)) or plain is None:
        return plain
    raise NotJson("not a scalar")
