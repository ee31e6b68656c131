//! Tool files for the measurements: one that adds, and folders of many that look like real ones.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::Fallible;

const HEADER: &str = "# /// script\n# requires-python = \">=3.9\"\n# dependencies = []\n# ///\n";

const ADD: &str =
    "\"\"\"Sums.\"\"\"\n\n\ndef add(a: int, b: int) -> int:\n    \"\"\"Add two numbers.\"\"\"\n    return a + b\n";

/// Writes a tool file whose one function adds; its MCP name is `PACK_add`.
pub fn write_adder(folder: &Path, pack: &str) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join(format!("{pack}.py")), format!("{HEADER}{ADD}"))?)
}

/// The same, with an argument that may be long.
pub fn write_long(folder: &Path, pack: &str) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    let body = "def add(a: int, b: int, text: str) -> int:\n    return a + b\n";
    Ok(fs::write(folder.join(format!("{pack}.py")), format!("{HEADER}{body}"))?)
}

/// The same, and three milliseconds of a core for each sum.
pub fn write_busy(folder: &Path, pack: &str) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    let body = "import time\n\n\ndef add(a: int, b: int) -> int:\n    until = time.process_time() + 0.003\n    \
                while time.process_time() < until:\n        pass\n    return a + b\n";
    Ok(fs::write(folder.join(format!("{pack}.py")), format!("{HEADER}{body}"))?)
}

/// The same, and a function that ends its worker.
pub fn write_mortal(folder: &Path, pack: &str) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    let die = "\n\ndef die() -> None:\n    import os\n    os._exit(3)\n";
    Ok(fs::write(folder.join(format!("{pack}.py")), format!("{HEADER}{ADD}{die}"))?)
}

/// The same under another function's name, saved as editors do: whoever reads it meanwhile gets the one before.
pub fn write_adder_as(folder: &Path, pack: &str, function: &str) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    let aside = folder.join(format!(".{pack}.fresh"));
    fs::write(&aside, format!("{HEADER}{}", ADD.replace("def add(", &format!("def {function}("))))?;
    Ok(fs::rename(aside, folder.join(format!("{pack}.py")))?)
}

/// The same as a program for `uv run`: two numbers in, their sum out. `dependency` is imported by both.
pub fn write_script(folder: &Path, pack: &str, dependency: Option<&str>) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    let header = dependency.map_or_else(|| HEADER.to_owned(), |name| HEADER.replace("[]", &format!("[\"{name}\"]")));
    let import = dependency.map(|name| format!("import {name}\n")).unwrap_or_default();
    let main = "\n\nif __name__ == \"__main__\":\n    import sys\n    print(add(int(sys.argv[1]), int(sys.argv[2])))\n";
    Ok(fs::write(folder.join(format!("{pack}.py")), format!("{header}{import}{ADD}{main}"))?)
}

/// Tool files younger than this are not kept between runs: they could change without showing it.
pub const SETTLED: Duration = Duration::from_millis(3500);

/// How many functions a written pack has.
pub const FUNCTIONS_EACH: usize = 4;

/// Writes tool files as long as real ones are, about 180 lines: typed functions with documentation, the types they
/// need, helpers between them, and a body that means something.
pub fn write_packs(folder: &Path, count: usize) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    for number in 0..count {
        fs::write(folder.join(format!("pack_{number:04}.py")), pack(number)?)?;
    }
    Ok(())
}

fn pack(number: usize) -> Fallible<String> {
    let mut text = format!("{HEADER}{PREAMBLE}");
    for (place, subject) in SUBJECTS.iter().enumerate() {
        // A number in each file, so that no two are the same.
        let limit = 10 + number + place;
        write!(text, "{}", FUNCTION.replace("SUBJECT", subject).replace("LIMIT", &limit.to_string()))?;
    }
    Ok(text)
}

const SUBJECTS: [&str; FUNCTIONS_EACH] = ["orders", "customers", "invoices", "shipments"];

const PREAMBLE: &str = r#""""Records of a small trading house: search, filter, sum."""

from __future__ import annotations

import enum
import statistics
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, Optional


class Order(enum.Enum):
    """How a list is sorted."""

    NEWEST = "newest"
    OLDEST = "oldest"
    LARGEST = "largest"


@dataclass
class Period:
    """From one day to another, both included."""

    first: date
    last: date
    label: str = ""


@dataclass
class Filter:
    """What a record must have."""

    words: list[str] = field(default_factory=list)
    minimum: float = 0.0
    period: Optional[Period] = None


def _matches(record: dict, wanted: Filter) -> bool:
    text = " ".join(str(value) for value in record.values()).lower()
    if any(word.lower() not in text for word in wanted.words):
        return False
    return float(record.get("amount", 0)) >= wanted.minimum


def _records(kind: str, unit: str) -> list[dict]:
    return [{"kind": kind, "unit": unit, "amount": amount} for amount in range(100)]
"#;

const FUNCTION: &str = r#"

def search_SUBJECT(
    query: str,
    count: int = LIMIT,
    order: Order = Order.NEWEST,
    wanted: Optional[Filter] = None,
    unit: Literal["piece", "box", "pallet"] = "piece",
) -> list[dict]:
    """Search the SUBJECT of the house.

    Every word of the query must occur. The list is sorted, and cut at the count.

    Args:
        query: What to look for, as words.
        count: How many records at most.
        order: How the list is sorted.
        wanted: What a record must have beside the words.
        unit: What amounts are counted in.
    """
    wanted = wanted or Filter(words=query.split())
    found = [record for record in _records("SUBJECT", unit) if _matches(record, wanted)]
    if order is Order.LARGEST:
        found.sort(key=lambda record: record["amount"], reverse=True)
    if not found:
        return [{"mean": statistics.fmean([0.0, LIMIT])}]
    return found[:count]
"#;
