# /// script
# requires-python = ">=3.10"
# dependencies = ["markdown>=3.6"]
#
# [tool.hostler]
# effects = "pure"
# ///
"""Markdown to HTML. This file has the name of the package it uses, and still gets the package."""

from __future__ import annotations

from pathlib import Path

import markdown

EXTENSIONS = ["tables", "fenced_code", "toc", "sane_lists"]


def html(text: str, extensions: list[str] = EXTENSIONS) -> str:
    """Turn Markdown into HTML.

    Args:
        text: The Markdown.
        extensions: Extensions of Python-Markdown by their short names.
    """
    return markdown.markdown(text, extensions=extensions)


def render(path: Path, title: str | None = None) -> str:
    """A Markdown file as a whole HTML page.

    Args:
        path: The Markdown file.
        title: The page's title; its first heading when left out.
    """
    source = path.read_text(encoding="utf-8")
    body = html(source)
    if title is None:
        found = outline(path)
        title = found[0]["name"] if found else path.stem
    return f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title></head>\n<body>\n{body}\n</body></html>\n'


def outline(path: Path) -> list[dict]:
    """The headings of a Markdown file, nested, each with the anchor it has in the HTML.

    Args:
        path: The Markdown file.
    """
    reader = markdown.Markdown(extensions=EXTENSIONS)
    reader.convert(path.read_text(encoding="utf-8"))

    def plain(entries):
        return [{"name": entry["name"], "anchor": entry["id"], "children": plain(entry["children"])} for entry in entries]

    return plain(reader.toc_tokens)
