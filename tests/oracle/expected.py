"""`differences.json`: every difference that is known, with the reason it has. The reasons are explained in docs/schemas.md."""

import json
import re
import sys

from corpus import HERE, NEWER, ROOT, SEED

EXPECTED = json.loads((HERE / "differences.json").read_text(encoding="utf-8"))
# pydantic 2.14 takes `*tuple[int, ...]` for one item there.
UNTIL = {"containers.open_ended_star": (3, 15)}
DOCUMENT = ROOT / "docs" / "schemas.md"


def explained():
    """The reasons that the page explains, each in a row that begins with its name."""
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))


def is_read(place):
    """Whether this Python can read the file of the corpus with this function."""
    return sys.version_info >= (3, 13) or not place.startswith(NEWER + ".")


def is_compared(place):
    return is_read(place) and sys.version_info < UNTIL.get(place.partition(" ")[0], (4,))


def compare(test, part, found):
    """Fails for a difference that is not listed, and for a listed one that is gone. `found` maps places to an example."""
    listed = set(filter(is_compared, EXPECTED[part]))
    unlisted = {place: example for place, example in found.items() if place not in listed and is_compared(place)}
    # Another seed may miss a rare one by chance.
    gone = sorted(listed - set(found)) if SEED == 1 else []
    lines = [f"  not listed: {place}, for example {str(example)[:200]}" for place, example in sorted(unlisted.items())]
    lines += [f"  listed, and no longer so: {place}" for place in gone]
    if lines:
        test.fail(f"{part} in tests/oracle/differences.json against what was found:\n" + "\n".join(lines))
