"""A folder at a glance: asks the other tools about each file and puts their answers together.

A file without a header is internal: it runs on hostler's own interpreter and may call other tools.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hostler

# By suffix: the tool that knows such files, and the name of its argument.
READERS = {
    ".html": ("webpage.head", "path"),
    ".xlsx": ("sheets.summary", "path"),
    ".csv": ("tables.describe", "file"),
    ".png": ("images.info", "path"),
    ".jpg": ("images.info", "path"),
    ".pdf": ("pdf.info", "path"),
    ".md": ("markdown.outline", "path"),
    ".txt": ("text.file_statistics", "path"),
}


def readers() -> dict[str, str]:
    """Which tool is asked about which kind of file, among those this hostler has."""
    have = {tool["name"] for tool in hostler.tools()}
    return {suffix: tool for suffix, (tool, _) in READERS.items() if tool in have}


def folder(path: Path, limit: int = 50) -> dict[str, Any]:
    """Describe every file of a folder by the tool that knows its kind.

    A file whose tool fails is listed with the error; the others are described all the same.

    Args:
        path: The folder.
        limit: At most this many files.
    """
    known = readers()
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    found: list[dict[str, Any]] = []
    for number, file in enumerate(files[:limit], 1):
        entry: dict[str, Any] = {"file": file.name, "bytes": file.stat().st_size}
        tool = known.get(file.suffix.lower())
        if tool is not None:
            entry["tool"] = tool
            try:
                entry["about"] = hostler.call(tool, **{READERS[file.suffix.lower()][1]: str(file)})
            except hostler.ToolError as error:
                entry["error"] = str(error)
        found.append(entry)
        hostler.progress(number, min(len(files), limit), file.name)
    return {"folder": str(path), "files": found, "left_out": max(0, len(files) - limit)}
