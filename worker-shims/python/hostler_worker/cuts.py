"""Texts that are cut to a length, never within a secret: the host takes secrets out of what it is told, and finds whole
ones only. The forms are those it looks for."""

from binascii import b2a_base64

from .state import state
from .wire import quote

_SHORTEST = 4  # bytes; the host leaves shorter ones alone
_SHORTEST_BASE64 = 8
_SHORTEST_LINE = 16
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def head(text, length):
    """The beginning of a text: so much of it, or less where a secret would be cut."""
    return text[:_move(text, length, lambda start, _end: start)]


def tail(text, length):
    """The end of a text, likewise."""
    return text[_move(text, len(text) - length, lambda _start, end: end):]


def _move(text, cut, to):
    forms = _forms()
    moved = True
    while moved:  # out of one secret it may come into another
        moved = False
        for form in forms:
            start = text.find(form, max(0, cut - len(form) + 1), cut + len(form) - 1)
            if start >= 0:
                cut, moved = to(start, start + len(form)), True
    return cut


def _forms():
    """Every form of the running call's secrets: as they are, each longer line, as JSON and Python write them, as part of
    a URL, and in base64 wherever in the encoded bytes they begin."""
    found = set()
    for value in ((state.params or {}).get("secrets") or {}).values():
        data = value.encode("utf-8", "replace") if isinstance(value, str) else b""
        if len(data) < _SHORTEST:
            continue
        quoted = quote(value)[1:-1]
        found.update((value, quoted, quoted.replace('\\"', '"').replace("'", "\\'"), repr(value)[1:-1]))
        found.update(line for line in map(str.strip, value.splitlines()) if len(line.encode("utf-8", "replace")) >= _SHORTEST_LINE)
        for pattern in ("%%%02X", "%%%02x"):
            part = "".join(chr(byte) if byte in _PLAIN else pattern % byte for byte in data)
            found.update((part, part.replace("%20", "+")))
        for offset in range(3):
            padded = bytes(offset) + data
            # The first and the last character also hold bits of what stands before and after.
            part = b2a_base64(padded, newline=False).decode()[(offset * 8 + 5) // 6:len(padded) * 8 // 6]
            if len(part) >= _SHORTEST_BASE64:
                found.update((part, part.replace("+", "-").replace("/", "_")))
    return found
