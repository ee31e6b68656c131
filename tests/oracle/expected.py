"""`differences.json`: every difference that is known, with the reason it has. The reasons are explained in docs/schemas.md."""

import json
import re

from corpus import HERE, ROOT, SEED

EXPECTED = json.loads((HERE / "differences.json").read_text(encoding="utf-8"))
DOCUMENT = ROOT / "docs" / "schemas.md"


def explained():
    """The reasons that the page explains, each in a row that begins with its name."""
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))


def compare(test, part, found):
    """Fails for a difference that is not listed, and for a listed one that is gone. `found` maps places to an example."""
    listed = EXPECTED[part]
    unlisted = {place: example for place, example in found.items() if place not in listed}
    # Another seed may miss a rare one by chance.
    gone = sorted(set(listed) - set(found)) if SEED == 1 else []
    lines = [f"  not listed: {place}, for example {str(example)[:200]}" for place, example in sorted(unlisted.items())]
    lines += [f"  listed, and no longer so: {place}" for place in gone]
    if lines:
        test.fail(f"{part} in tests/oracle/differences.json against what was found:\n" + "\n".join(lines))
