# /// script
# requires-python = ">=3.9"
# dependencies = ["pypdf>=5"]
#
# [tool.hostler]
# effects = "pure"
# ///
"""Read PDF files: their text, their pages, what they say about themselves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Optional

import hostler
from pypdf import PdfReader


@dataclass
class Hit:
    page: int
    line: str


@dataclass
class Info:
    pages: int
    title: Optional[str]
    author: Optional[str]
    created: Optional[datetime]
    encrypted: bool


def text(path: Path, first: int = 1, last: Optional[int] = None) -> str:
    """The text of a PDF file, pages divided by a form feed.

    Args:
        path: The PDF file.
        first: First page, counted from 1.
        last: Last page; to the end when left out.
    """
    pages = PdfReader(path).pages
    chosen = pages[max(first, 1) - 1:last]
    parts = []
    for number, page in enumerate(chosen, 1):
        parts.append(page.extract_text())
        hostler.progress(number, len(chosen))
    return "\f".join(parts)


def find(path: Path, words: str) -> list[Hit]:
    """The lines of a PDF file that contain some words, with their page. Case does not matter.

    Args:
        path: The PDF file.
        words: What to look for.
    """
    wanted = words.casefold()
    return [
        Hit(number, line.strip())
        for number, page in enumerate(PdfReader(path).pages, 1)
        for line in page.extract_text().splitlines()
        if wanted in line.casefold()
    ]


def info(path: Path) -> Info:
    """Number of pages, title, author and date of a PDF file.

    Args:
        path: The PDF file.
    """
    reader = PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        return Info(0, None, None, None, True)
    about = reader.metadata
    return Info(
        len(reader.pages), about and about.title, about and about.author, about and about.creation_date, reader.is_encrypted,
    )
