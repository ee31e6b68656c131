# /// script
# requires-python = ">=3.9"
# dependencies = ["openpyxl>=3.1"]
#
# [tool.hostler]
# effects = "pure"
# ///
"""Look into Excel workbooks: what sheets they have, what the columns hold, the rows themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from openpyxl import load_workbook


def _book(path: Path):
    # Values rather than formulas, and streaming, so that large workbooks stay small in memory.
    return load_workbook(path, read_only=True, data_only=True)


def _sheet(book, name: str | None):
    if name is None:
        return book.worksheets[0]
    if name not in book.sheetnames:
        raise ValueError(f"no sheet {name!r}; the workbook has {', '.join(book.sheetnames)}")
    return book[name]


def _table(sheet) -> tuple[list[str], list[tuple]]:
    rows = sheet.iter_rows(values_only=True)
    head = next(rows, ())
    names = [str(value) if value is not None else f"column {index}" for index, value in enumerate(head, 1)]
    return names, [row for row in rows if any(value is not None for value in row)]


def summary(path: Path) -> list[dict[str, Any]]:
    """What each sheet of a workbook holds: rows, columns, types, ranges.

    The first row of a sheet is taken for its head. Numbers get minimum, maximum, sum and mean;
    anything else the number of different values and, when there are few, the values.

    Args:
        path: The .xlsx file.
    """
    sheets = []
    for sheet in _book(path).worksheets:
        names, rows = _table(sheet)
        columns = [_column(name, [row[index] for row in rows]) for index, name in enumerate(names)]
        sheets.append({"sheet": sheet.title, "rows": len(rows), "columns": columns})
    return sheets


def _column(name: str, values: list) -> dict[str, Any]:
    given = [value for value in values if value is not None]
    column: dict[str, Any] = {"name": name, "empty": len(values) - len(given)}
    kinds = sorted({type(value).__name__ for value in given})
    column["types"] = kinds
    if kinds and set(kinds) <= {"int", "float"}:
        total = sum(given)
        column.update(min=min(given), max=max(given), sum=round(total, 6), mean=round(total / len(given), 6))
    else:
        different = list(dict.fromkeys(given))
        column["different"] = len(different)
        if len(different) <= 8:
            column["values"] = different
    return column


def rows(path: Path, sheet: str | None = None, offset: int = 0, limit: int = 50) -> list[dict[str, Any]]:
    """Rows of a sheet as objects, by the names in its first row.

    Args:
        path: The .xlsx file.
        sheet: Which sheet; the first when left out.
        offset: How many rows to skip.
        limit: At most this many rows.
    """
    names, table = _table(_sheet(_book(path), sheet))
    return [dict(zip(names, row)) for row in table[offset:offset + limit]]
