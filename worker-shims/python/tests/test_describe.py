"""What a worker tells of types that hostler could not read."""

import json
import unittest

from harness import ShimTest

TOOL = '''
import enum
from dataclasses import dataclass, field, InitVar
from typing import NamedTuple, TypedDict

class Color(enum.Enum):
    RED = "red"

class Bits(enum.Flag):
    A = 1

@dataclass
class Spot:
    """A place.

    Somewhere."""
    x: int
    color: Color = Color.RED
    key: str = "hunter2"
    inner: "Spot | None" = None
    made: list = field(default_factory=list)
    hidden: int = field(default=1, init=False)

class Broken(type):
    def __getattribute__(cls, name):
        raise SystemExit(3)

class Bad(metaclass=Broken):
    pass

def f(x: int) -> int:
    return x
'''


class Describe(ShimTest):
    def told(self, worker, **wanted):
        self.assertEqual(worker.hello(describe=wanted)["result"]["functions"], ["f"])
        self.assertEqual(worker.call("f", {"x": 1})["result"], 1)
        while not any(note["method"] == "described" for note in worker.notes):
            worker.notes.append(json.loads(worker.line()))
        return next(note["params"] for note in worker.notes if note["method"] == "described")

    def test_classes_are_told_by_side(self):
        told = self.told(self.start(self.file(TOOL)), given=["Spot", "Gone", "Bits"], returned=["Spot"])
        given, returned = told["given"], told["returned"]
        self.assertEqual(sorted(given["names"]), ["Bits", "Spot"])
        spot = given["defs"]["Spot"]
        self.assertEqual(spot["description"], "A place.")
        self.assertEqual((spot["required"], sorted(spot["properties"])), (["x"], ["color", "inner", "key", "made", "x"]))
        self.assertEqual(spot["properties"]["key"], {"type": "string"})
        self.assertEqual(spot["properties"]["color"], {"$ref": "#/$defs/Color", "default": "red"})
        self.assertEqual(given["defs"]["Bits"], {"type": "integer"})
        self.assertIn("hidden", returned["defs"]["Spot"]["required"])

    def test_a_type_that_ends_the_process_ends_nothing(self):
        worker = self.start(self.file(TOOL))
        worker.hello(describe={"given": ["Bad"]})
        for number in (1, 2):
            self.assertEqual(worker.call("f", {"x": number})["result"], number)

    def test_several_types_that_hang_are_given_up_together(self):
        hang = "import time\nclass M(type):\n    def __getattr__(cls, name):\n        time.sleep(300)\n"
        worker = self.start(self.file(hang + "class A(metaclass=M): pass\nclass B(metaclass=M): pass\ndef f(x: int): return x\n"))
        worker.hello(describe={"given": ["A", "B"]})
        for number in (1, 2):
            self.assertEqual(worker.call("f", {"x": number})["result"], number)

    def test_nothing_is_told_before_a_call_or_unasked(self):
        worker = self.start(self.file(TOOL))
        worker.hello()
        worker.call("f", {"x": 1})
        worker.call("f", {"x": 2})
        self.assertFalse([note for note in worker.notes if note["method"] == "described"])


if __name__ == "__main__":
    unittest.main()
