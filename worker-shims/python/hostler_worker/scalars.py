"""Converters for single values that JSON writes as a string or number."""

import sys

from .convert import Mismatch


def converter(cls):
    """The converter of a class, or None when it is not one of these."""
    if cls is float:
        return _float
    if cls is bytes or cls is bytearray:
        return _bytes(cls)
    enum = sys.modules.get("enum")
    if enum is not None and issubclass(cls, enum.Enum):
        return _enum(cls)
    for module, name, parse, expected in _KNOWN:
        loaded = sys.modules.get(module)
        base = getattr(loaded, name, None)
        if base is not None and (cls is base or name == "PurePath" and issubclass(cls, base)):
            return _parsed(cls, parse, expected)
    return None


def _float(value, path):
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise Mismatch(path, "a number that fits a float", value) from None
    if type(value) is float:
        return value
    raise Mismatch(path, "a number", value)


def from_text(kind):
    """For the keys of dict[int, X]: an object's keys are text."""
    words = {int: "a whole number", float: "a number", bool: "true or false"}

    def convert(value, path):
        try:
            return {"true": True, "false": False}[value] if kind is bool else kind(value)
        except (ValueError, KeyError):
            raise Mismatch(path, words[kind], value) from None

    return convert


def key_of_enum(kind):
    """For the keys of dict[Level, X]; None for other types. The key of a member whose value is not a string is that value as a string."""
    enum = sys.modules.get("enum")
    if enum is None or not isinstance(kind, type) or not issubclass(kind, enum.Enum):
        return None
    plain = _enum(kind)

    def convert(value, path):
        meant = next((member for member in kind if not isinstance(member.value, str) and str(member.value) == value), None)
        return plain(value, path) if meant is None else meant

    return convert


def _parsed(cls, parse, expected):
    def convert(value, path):
        try:
            return parse(cls, value)
        except (ValueError, TypeError, ArithmeticError, AttributeError):
            raise Mismatch(path, expected, value) from None

    return convert


def _text(value):
    if not isinstance(value, str):
        raise TypeError
    return value


def _iso(cls, value):
    text = _text(value)
    if text[-1:] in "zZ" and text:
        text = text[:-1] + "+00:00"
    if sys.version_info < (3, 11):  # it reads no fraction but of 3 or 6 digits, and no offset without a colon
        import re

        text = re.sub(r"(:\d\d)[.,](\d+)", lambda found: "%s.%s" % (found[1], found[2][:6].ljust(6, "0")), text)
        text = re.sub(r"(:\d\d(?:\.\d+)?[+-]\d\d)(\d\d)$", r"\1:\2", text)
    return cls.fromisoformat(text)


def _duration(cls, value):
    if type(value) in (int, float):
        return cls(seconds=value)
    import re

    number = r"(?:(\d+(?:\.\d+)?)%s)?"
    pattern = "([-+])?P" + number % "W" + number % "D" + "(?:T" + number % "H" + number % "M" + number % "S" + ")?"
    found = re.fullmatch(pattern, _text(value))
    if found is None or value[-1] in "PT":
        raise ValueError
    sign, *parts = found.groups()
    names = ("weeks", "days", "hours", "minutes", "seconds")
    total = cls(**{name: float(part) for name, part in zip(names, parts) if part})
    return -total if sign == "-" else total


def _decimal(cls, value):
    made = cls(str(_number(value)))
    if not made.is_finite():
        raise ValueError
    return made


def _number(value):
    if type(value) not in (str, int, float):
        raise TypeError
    return value


def _zone(cls, value):
    try:
        return cls(_text(value))
    except (KeyError, OSError):  # no such zone, or the name of a folder of zones
        raise ValueError from None


def _pattern(cls, value):
    import re

    try:
        return re.compile(_text(value))
    except re.error:
        raise ValueError from None


def pattern_of_bytes(value, path):
    import re

    try:
        return re.compile(_text(value).encode())
    except (re.error, TypeError, UnicodeError):
        raise Mismatch(path, "a regular expression", value) from None


def _date(cls, value):
    """Also the midnight of a day, as pydantic."""
    text = _text(value)
    if text[10:11] in ("T", "t", " ", "_") and text[11:]:
        from datetime import datetime, time

        if _iso(datetime, text).time() != time():
            raise ValueError
        text = text[:10]
    return cls.fromisoformat(text)


_KNOWN = (
    ("ipaddress", "IPv4Address", lambda cls, value: cls(_text(value)), "an address such as 192.0.2.1"),
    ("ipaddress", "IPv6Address", lambda cls, value: cls(_text(value)), "an address such as 2001:db8::1"),
    ("ipaddress", "IPv4Network", lambda cls, value: cls(_text(value)), "a network such as 192.0.2.0/24"),
    ("ipaddress", "IPv6Network", lambda cls, value: cls(_text(value)), "a network such as 2001:db8::/32"),
    ("ipaddress", "IPv4Interface", lambda cls, value: cls(_text(value)), "an address with its network, such as 192.0.2.1/24"),
    ("ipaddress", "IPv6Interface", lambda cls, value: cls(_text(value)), "an address with its network, such as 2001:db8::1/64"),
    ("zoneinfo", "ZoneInfo", _zone, "a time zone such as Europe/Paris"),
    ("fractions", "Fraction", lambda cls, value: cls(_number(value)), "a fraction such as 1/3, or a number"),
    ("builtins", "complex", lambda cls, value: cls(_number(value)), "a complex number such as 1+2j, or a number"),
    ("re", "Pattern", _pattern, "a regular expression"),
    ("pathlib", "PurePath", lambda cls, value: cls(_text(value)), "a path as a string"),
    ("datetime", "datetime", _iso, "a date and time such as 2026-01-31T12:00:00Z"),
    ("datetime", "date", _date, "a date such as 2026-01-31"),
    ("datetime", "time", _iso, "a time such as 12:30:00"),
    ("datetime", "timedelta", _duration, "a duration such as PT90S, or a number of seconds"),
    ("uuid", "UUID", lambda cls, value: cls(_text(value)), "a UUID"),
    ("decimal", "Decimal", _decimal, "a decimal number, best as a string"),
)


def _bytes(cls):
    def convert(value, path):
        from base64 import b64decode

        try:
            return cls(b64decode(_text(value), validate=True))
        except (ValueError, TypeError):
            raise Mismatch(path, "bytes as base64", value) from None

    return convert


def _enum(cls):
    def convert(value, path):
        plain = tuple(value) if type(value) is list else value
        try:
            return cls(plain)
        except (ValueError, TypeError, KeyError):
            pass
        if isinstance(value, str) and value in cls.__members__:
            return cls[value]
        choices = ", ".join(repr(member.value) for member in cls)
        raise Mismatch(path, "one of " + choices, value)

    return convert
