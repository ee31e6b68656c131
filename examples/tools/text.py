# /// script
# requires-python = ">=3.9"
# dependencies = []
#
# [tool.hostler]
# effects = "pure"
# ///
"""Count, slug, wrap and compare text. Needs nothing but Python."""

from __future__ import annotations

import difflib
import re
import textwrap
import unicodedata
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, Optional

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class Case(Enum):
    """How the words of an identifier are joined."""

    SNAKE = "snake"
    KEBAB = "kebab"
    CAMEL = "camel"
    PASCAL = "pascal"
    TITLE = "title"


@dataclass
class Statistics:
    characters: int
    words: int
    lines: int
    sentences: int
    reading_minutes: float
    common: dict[str, int]


def statistics(text: str, common: int = 5) -> Statistics:
    """Count characters, words, lines and sentences.

    Args:
        text: The text.
        common: How many of the most frequent words to name; words under four letters are left out.
    """
    words = _WORD.findall(text)
    frequent = Counter(word.casefold() for word in words if len(word) > 3)
    return Statistics(
        characters=len(text),
        words=len(words),
        lines=len(text.splitlines()),
        sentences=len(re.findall(r"[.!?…]+(?=\s|$)", text)),
        reading_minutes=round(len(words) / 230, 1),
        common=dict(frequent.most_common(common)),
    )


def file_statistics(path: Path, common: int = 5) -> Statistics:
    """The same counts for a text file.

    Args:
        path: A file in UTF-8.
        common: How many of the most frequent words to name.
    """
    return statistics(path.read_text(encoding="utf-8", errors="replace"), common)


def slug(text: str, separator: str = "-", max_length: Optional[int] = None) -> str:
    """Make text fit for an address or a file name: `Über uns!` becomes `uber-uns`.

    Args:
        text: The text.
        separator: What stands between words.
        max_length: Cut at a word's end so that it is no longer than this.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    if max_length is not None:
        while len(words) > 1 and len(separator.join(words)) > max_length:
            words.pop()
    return separator.join(words)[:max_length]


def rename(identifier: str, case: Case) -> str:
    """Write an identifier in another case: `parseHTMLPage` as snake is `parse_html_page`.

    Args:
        identifier: The name, in any case.
        case: The wanted case.
    """
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", identifier)]
    if case is Case.SNAKE:
        return "_".join(words)
    if case is Case.KEBAB:
        return "-".join(words)
    capital = [word.capitalize() for word in words]
    if case is Case.TITLE:
        return " ".join(capital)
    return "".join(words[:1] + capital[1:] if case is Case.CAMEL else capital)


def wrap(text: str, width: int = 80, align: Literal["left", "right", "center"] = "left") -> str:
    """Break text into lines; paragraphs, divided by empty lines, stay apart.

    Args:
        text: The text.
        width: At most this many characters in a line.
        align: Where the lines stand.
    """
    place = {"left": str, "right": lambda line: line.rjust(width), "center": lambda line: line.center(width).rstrip()}[align]
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join("\n".join(place(line) for line in textwrap.wrap(one, width)) for one in paragraphs)


def compare(old: str, new: str, context: int = 3) -> dict:
    """How two texts differ.

    Args:
        old: The text before.
        new: The text after.
        context: How many equal lines to show around a change.

    Returns:
        `same`, `similarity` from 0 to 1, and the `diff` in unified form.
    """
    before, after = old.splitlines(), new.splitlines()
    return {
        "same": old == new,
        "similarity": round(difflib.SequenceMatcher(None, old, new).ratio(), 3),
        "diff": "\n".join(difflib.unified_diff(before, after, "old", "new", lineterm="", n=context)),
    }
