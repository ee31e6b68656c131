# /// script
# requires-python = ">=3.9"
# dependencies = ["duckdb>=1.1"]
#
# [tool.hostler]
# effects = "pure"
# timeout = "60s"
# ///
"""SQL over CSV, JSON and Parquet files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypedDict

import duckdb

READERS = {".csv": "read_csv", ".tsv": "read_csv", ".json": "read_json", ".jsonl": "read_json", ".parquet": "read_parquet"}


class Answer(TypedDict):
    columns: list[str]
    rows: list[list[Any]]
    more: bool


def _connect(paths: list[Path]) -> duckdb.DuckDBPyConnection:
    """A database in memory with one table for each file, and no way to any other file."""
    connection = duckdb.connect()
    for path in paths:
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise ValueError(f"{path}: cannot read {path.suffix or 'a file without a suffix'}; known are {', '.join(READERS)}")
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        name = re.sub(r"\W", "_", path.stem)
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM {reader}(?)', [str(path)])
    connection.execute("SET enable_external_access = false")
    return connection


def query(sql: str, files: list[Path], limit: int = 100) -> Answer:
    """Run one SQL query over data files.

    Each file is a table named after it: `orders.csv` is `orders`. The query cannot reach other files or
    the network, and cannot change these. The dialect is DuckDB's, close to PostgreSQL's.

    Args:
        sql: The query, such as `SELECT city, sum(amount) FROM orders GROUP BY city`.
        files: CSV, TSV, JSON or Parquet files.
        limit: At most this many rows; `more` says whether there were more.
    """
    cursor = _connect(files).execute(sql)
    found = cursor.fetchmany(limit + 1)
    return {
        "columns": [column[0] for column in cursor.description or ()],
        "rows": [list(row) for row in found[:limit]],
        "more": len(found) > limit,
    }


def describe(file: Path) -> dict[str, Any]:
    """Columns with types, number of rows, and the first rows of a data file.

    Args:
        file: A CSV, TSV, JSON or Parquet file.
    """
    connection = _connect([file])
    name = '"%s"' % re.sub(r"\W", "_", file.stem)
    columns = connection.execute(f"DESCRIBE {name}").fetchall()
    head = connection.execute(f"SELECT * FROM {name} LIMIT 3").fetchall()
    return {
        "rows": connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0],
        "columns": {column[0]: column[1] for column in columns},
        "head": [dict(zip((column[0] for column in columns), row)) for row in head],
    }
