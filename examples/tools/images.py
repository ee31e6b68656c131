# /// script
# requires-python = ">=3.9"
# dependencies = ["pillow>=10"]
#
# [tool.hostler]
# effects = "idempotent"
# ///
"""Look at pictures and make small ones of them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import hostler
from PIL import Image, ImageOps


class Format(Enum):
    PNG = "png"
    JPEG = "jpeg"
    WEBP = "webp"


@dataclass
class Info:
    width: int
    height: int
    format: str | None
    mode: str
    bytes: int
    colours: list[str]


def info(path: Path) -> Info:
    """Size, format and main colours of a picture.

    Args:
        path: The picture.
    """
    with Image.open(path) as image:
        small = image.convert("RGB").resize((64, 64)).quantize(5)
        palette = small.getpalette()
        counts = sorted(small.getcolors(), reverse=True)
        colours = ["#%02x%02x%02x" % tuple(palette[index * 3:index * 3 + 3]) for _, index in counts]
        return Info(image.width, image.height, image.format, image.mode, path.stat().st_size, colours)


def _thumbnail(path: Path, size: int, format: Format) -> tuple[Image.Image, dict]:
    if not 1 <= size <= 4096:
        raise ValueError(f"size is {size}; it must be between 1 and 4096 pixels")
    with Image.open(path) as image:
        image = ImageOps.exif_transpose(image)  # as it was held, not as it was stored
        image.thumbnail((size, size))
        mode = "RGB" if format is Format.JPEG else "RGBA"
        return image.convert(mode), {"format": format.value.upper()}


def thumbnail(path: Path, size: int = 128, format: Format = Format.PNG) -> hostler.Image:
    """A small picture no wider or higher than `size`, for the model to see.

    Args:
        path: The picture.
        size: The longer side in pixels.
        format: What to write.
    """
    image, options = _thumbnail(path, size, format)
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return hostler.Image(buffer.getvalue())


def save_thumbnail(path: Path, to: Path, size: int = 128, format: Format = Format.PNG) -> Path:
    """Write a small picture to a file, and return that file's path.

    Args:
        path: The picture.
        to: The file to write; one that exists is replaced.
        size: The longer side in pixels.
        format: What to write.
    """
    image, options = _thumbnail(path, size, format)
    image.save(to, **options)
    return to
