# /// script
# requires-python = ">=3.9"
# dependencies = ["beautifulsoup4>=4.12", "lxml>=5"]
#
# [tool.hostler]
# effects = "pure"
# ///
"""Read saved web pages: their text, links and head, without the furniture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

from bs4 import BeautifulSoup

FURNITURE = ("script", "style", "noscript", "template", "nav", "header", "footer", "aside", "form", "svg")


@dataclass
class Link:
    text: str
    url: str


@dataclass
class Head:
    title: str | None
    description: str | None
    language: str | None
    headings: list[str]


def _page(path: Path) -> BeautifulSoup:
    # Bytes, so that the page's own encoding declaration is heeded.
    return BeautifulSoup(path.read_bytes(), "lxml")


def _words(tag) -> str:
    return " ".join(tag.get_text().split())


def text(path: Path, max_chars: int = 20000) -> str:
    """The readable text of an HTML page, one paragraph a line.

    Menus, forms, scripts and the like are left out. Headings keep their level as leading `#`.

    Args:
        path: The HTML file.
        max_chars: Cut the text after this many characters.
    """
    page = _page(path)
    for tag in page(FURNITURE):
        tag.decompose()
    body = page.find("main") or page.find("article") or page.body or page
    lines = []
    for tag in body.find_all(["h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "pre", "blockquote", "tr"]):
        if tag.name == "tr":
            words = " | ".join(_words(cell) for cell in tag.find_all(["td", "th"]))
        else:
            words = _words(tag)
        if not words or tag.find_parent(["p", "li", "pre", "blockquote", "tr"]):
            continue
        if tag.name[0] == "h" and tag.name[1:].isdigit():
            words = "#" * int(tag.name[1]) + " " + words
        lines.append("- " + words if tag.name == "li" else words)
    whole = "\n".join(lines)
    return whole if len(whole) <= max_chars else whole[:max_chars].rstrip() + " …"


def links(path: Path, base: str = "") -> list[Link]:
    """All links of an HTML page, in order, each address once.

    Args:
        path: The HTML file.
        base: The page's own address, to make relative links absolute.
    """
    found: dict[str, Link] = {}
    for tag in _page(path).find_all("a", href=True):
        url = urljoin(base, tag["href"])
        if not url.startswith("#"):
            found.setdefault(url, Link(_words(tag), url))
    return list(found.values())


def head(path: Path) -> Head:
    """Title, description, language and headings of an HTML page: enough to decide whether to read it.

    Args:
        path: The HTML file.
    """
    page = _page(path)
    description = page.find("meta", attrs={"name": "description"})
    return Head(
        title=page.title.get_text(strip=True) if page.title else None,
        description=description.get("content") if description else None,
        language=page.html.get("lang") if page.html else None,
        headings=[_words(tag) for tag in page.find_all(["h1", "h2", "h3"])],
    )
