"""Images, sounds, files and links in results, which MCP clients get as content of their own: objects with `mime_type` and
`base64`, and objects with `type: "resource_link"` and `uri`.

A tool may return such an object as it is; the classes here make them out of what tools have in hand.
"""

import os

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)


class File:
    """A file to return: bytes, or a path whose file is read now. `mime_type` is told from the name or the first bytes
    where it is not given. With `uri`, it is a copy of that resource."""

    __slots__ = ("data", "mime_type", "name", "uri")

    def __init__(self, content, mime_type=None, name=None, uri=None):
        if isinstance(content, (bytes, bytearray, memoryview)):
            self.data = bytes(content)
        else:
            path = os.fspath(content)
            with open(path, "rb") as file:
                self.data = file.read()
            name = name or os.path.basename(path)
        self.name, self.uri = name, uri
        self.mime_type = mime_type or self._tell()

    def _tell(self):
        return _from_name(self.name) or _from_beginning(self.data) or "application/octet-stream"

    def as_object(self):
        from binascii import b2a_base64

        found = {"mime_type": self.mime_type, "base64": b2a_base64(self.data, newline=False).decode()}
        if self.name:
            found["name"] = self.name
        if self.uri:
            found["uri"] = self.uri
        return found

    def __repr__(self):
        return "hostler.%s(%d bytes of %s)" % (type(self).__name__, len(self.data), self.mime_type)


class Image(File):
    """An image to return: bytes, a path, a PIL image or a matplotlib figure."""

    __slots__ = ()

    def __init__(self, content, mime_type=None, name=None, uri=None):
        for drawn, convert in ((hasattr(content, "savefig"), figure), (hasattr(content, "getbands"), picture)):
            if drawn:
                content, mime_type = convert(content)
        super().__init__(content, mime_type, name, uri)

    def _tell(self):
        # The bytes are believed before the name: models are shown the image, not the name.
        kind = _from_beginning(self.data) or _from_name(self.name) or ""
        if not kind.startswith("image/"):
            raise ValueError("these bytes begin like no image that is known here; say what they are: mime_type='image/…'")
        return kind


class Audio(File):
    """A sound to return: bytes or a path."""

    __slots__ = ()

    def _tell(self):
        kind = _from_beginning(self.data) or _from_name(self.name) or ""
        if not kind.startswith("audio/"):
            raise ValueError("these bytes begin like no sound that is known here; say what they are: mime_type='audio/…'")
        return kind


class Link:
    """A link to return: the client reads the resource itself, or shows it."""

    __slots__ = ("uri", "name", "title", "description", "mime_type", "size")

    def __init__(self, uri, name=None, title=None, description=None, mime_type=None, size=None):
        self.uri = str(uri)
        self.name = name or self.uri.rstrip("/").rpartition("/")[2] or self.uri
        self.title, self.description, self.size = title, description, size
        self.mime_type = mime_type or _from_name(self.name)

    def as_object(self):
        found = {"type": "resource_link", "uri": self.uri, "name": self.name, "title": self.title,
                 "description": self.description, "mime_type": self.mime_type, "size": self.size}
        return {key: value for key, value in found.items() if value is not None}

    def __repr__(self):
        return "hostler.Link(%r)" % self.uri


def _from_beginning(data):
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "audio/wav"
    if data[:2] in (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"):
        return "audio/mpeg"
    if data[4:12] == b"ftypM4A ":
        return "audio/mp4"
    if data.lstrip()[:4] == b"<svg" or (data.lstrip()[:5] == b"<?xml" and b"<svg" in data[:1024]):
        return "image/svg+xml"
    return next((kind for begins, kind in _BEGINNINGS if data.startswith(begins)), None)


def _from_name(name):
    if not name:
        return None
    from mimetypes import guess_type

    return guess_type(name)[0]


_KEPT = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}


def picture(image):
    """A PIL image as bytes of the format it was opened in, or PNG."""
    from io import BytesIO

    if image.format in _KEPT:
        buffer = BytesIO()
        try:
            image.save(buffer, format=image.format)
            return buffer.getvalue(), _KEPT[image.format]
        except (OSError, ValueError, KeyError):
            pass  # it was changed into something that format does not have
    buffer = BytesIO()
    try:
        image.save(buffer, format="PNG")
    except (OSError, ValueError, KeyError):
        buffer = BytesIO()
        image.convert("RGB").save(buffer, format="PNG")
    return buffer.getvalue(), "image/png"


def figure(drawn):
    """A matplotlib figure as PNG. It is closed: pyplot keeps every figure until then, and a worker lives long."""
    import sys
    from io import BytesIO

    buffer = BytesIO()
    drawn.savefig(buffer, format="png")
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(drawn)
    return buffer.getvalue(), "image/png"


def picture_object(image):
    return File(*picture(image)).as_object()


def figure_object(drawn):
    return File(*figure(drawn)).as_object()


def typed(function, data):
    """Bytes of a function that says what they are, `-> Annotated[bytes, "image/png"]`, as a file, and those of a resource;
    others as they are."""
    from .convert import annotations_of
    from .loading import MARK
    from .types import Builder

    kind, mime_type = getattr(function, MARK, None) or (None, None)
    if kind == "resource":
        return File(data, mime_type)
    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    try:
        hint = annotations_of(function).get("return")
    except Exception:
        return data
    # This hint alone: another may name what only a type checker imports.
    hint = Builder(getattr(inner, "__globals__", {})).resolve(hint)
    kind = next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, str) and _is_kind(mark)), None)
    return data if kind is None else File(data, kind)


def _is_kind(text):
    main, slash, rest = text.partition("/")
    return bool(main and slash and rest) and not any(c.isspace() for c in text)
