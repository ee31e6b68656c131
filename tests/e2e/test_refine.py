"""Types that only the running file knows: their schemas join the list once a worker has told them, and stay."""

import json
import unittest

import shared_mode
from harness import PATIENCE, environment, scratch, write_tool
from wire import Wire, call, request

CHANGED = "notifications/tools/list_changed"
SHAPES = '''
import enum
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Spot:
    """A place."""
    x: int
    color: Color = Color.RED
    secret: str = "hunter2"
    next: "Spot | None" = None

class Options(TypedDict, total=False):
    deep: bool
'''


def live(text):
    """A file that defines this when it runs: reading it says nothing of it."""
    return f"exec({text!r})\n"


TOOL = '''
import http
from shapes import Color, Options, Spot
from shapes import Spot as Place

class Nearer(Spot):
    pass

def move(spot: Spot, to: list[Color], status: http.HTTPStatus = http.HTTPStatus.OK) -> Spot:
    """Move.

    Args:
        spot: What to move.
    """
    assert isinstance(spot, Spot) and isinstance(to[0], Color)
    return Spot(spot.x + 1, to[-1])

def plain(number: int) -> int:
    return number
'''


def shown(tools, name):
    tool = next(tool for tool in tools if tool["name"] == name)
    return tool["inputSchema"], tool.get("outputSchema")


class Refined(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.env = environment(XDG_CACHE_HOME=scratch(self))
        tools = self.folder / "tools"
        write_tool(tools, "yard", TOOL, "")
        (tools / "shapes.py").write_text(live(SHAPES))
        self.tools = tools

    def listed(self, wire, number):
        wire.send(request(number, "tools/list"))
        return wire.answer(number)["result"]["tools"]

    def leave(self, wire):
        """Ends hostler as clients do: one that is killed keeps nothing for the next start."""
        wire.end_input()
        self.assertEqual(wire.process.wait(PATIENCE), 0)

    def test_models_with_arguments_for_their_parameters(self):
        text = ("from http import HTTPStatus\nfrom typing import Generic, TypeVar\nfrom pydantic import BaseModel\nT = TypeVar('T')\n"
                "class Page(BaseModel, Generic[T]):\n    items: list[T]\n    next: 'Page[T] | None' = None\n"
                "def count(page: Page[HTTPStatus], numbers: Page[int]) -> int:\n    return len(page.items)\n")
        write_tool(self.tools, "pages", text, '# /// script\n# dependencies = ["pydantic>=2"]\n# ///\n')
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            before, _ = shown(self.listed(wire, 1), "pages_count")

            def items(listed, name):
                page = listed["$defs"][listed["properties"][name]["$ref"].rpartition("/")[2]]
                return page["properties"]["items"]

            self.assertEqual(items(before, "numbers"), {"type": "array", "items": {"type": "integer"}})
            self.assertEqual(items(before, "page"), {"type": "array"})
            self.assertEqual(wire.value(2, "pages_count", page={"items": [404, 200]}, numbers={"items": []}), 2)
            wire.until(CHANGED)
            after, _ = shown(self.listed(wire, 3), "pages_count")
            self.assertEqual(items(after, "page"), {"type": "array", "items": {"$ref": "#/$defs/HTTPStatus"}})
            self.assertIn(404, after["$defs"]["HTTPStatus"]["enum"])

    def test_the_list_changes_once_and_the_next_start_remembers_it(self):
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            before, output = shown(self.listed(wire, 1), "yard_move")
            self.assertEqual((before["properties"]["spot"], output), ({"description": "What to move."}, None))
            arguments = {"spot": {"x": 1}, "to": ["blue"]}
            self.assertEqual(wire.value(2, "yard_move", **arguments)["x"], 2)
            wire.until(CHANGED)
            after, output = shown(self.listed(wire, 3), "yard_move")
            self.assertEqual(after["properties"]["spot"], {"$ref": "#/$defs/Spot", "description": "What to move."})
            self.assertEqual(after["properties"]["to"], {"type": "array", "items": {"$ref": "#/$defs/Color"}})
            self.assertIn(404, after["$defs"]["HTTPStatus"]["enum"])
            spot = after["$defs"]["Spot"]
            self.assertEqual((spot["required"], spot["description"], spot["additionalProperties"]), (["x"], "A place.", False))
            self.assertEqual(spot["properties"]["color"], {"$ref": "#/$defs/Color", "default": "red"})
            self.assertEqual(output["properties"]["x"], {"type": "integer"})
            # Only the host can have refused this: the worker is not asked.
            wire.send(call(4, "yard_move", spot={"x": 1, "colour": "red"}, to=["blue"]))
            refused = wire.answer(4)["result"]
            self.assertIn("did you mean `color`", refused["content"][0]["text"])
            self.assertIsNone(refused["_meta"]["hostler/outcome"]["metadata"].get("worker"))
            wire.value(5, "yard_plain", number=1)
            self.assertEqual(sum(note["method"] == CHANGED for note in wire.notes), 0, "once")
            self.leave(wire)
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            self.assertEqual(shown(self.listed(wire, 1), "yard_move"), (after, output))
            wire.value(2, "yard_move", **arguments)
            wire.value(3, "yard_plain", number=1)
            self.assertEqual(shown(self.listed(wire, 4), "yard_move"), (after, output))
            self.assertEqual(sum(note["method"] == CHANGED for note in wire.notes), 0, "nothing is new")

    def test_the_next_start_refuses_what_the_file_itself_refuses(self):
        (self.tools / "yard.py").write_text(TOOL + "\ndef bad() -> int:\n    return 'x'\n")
        spot, to = {"x": 1}, ["blue"]
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            wire.value(1, "yard_move", spot=spot, to=to)
            wire.until(CHANGED)
            self.leave(wire)
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            self.assertIn("Spot", shown(self.listed(wire, 1), "yard_move")[0]["$defs"], "it is remembered")
            for number, (name, arguments, code) in enumerate([
                    ("yard_plain", {"number": "1"}, "INVALID_PARAMS"), ("yard_plain", {"numbr": 1}, "INVALID_PARAMS"),
                    ("yard_move", {"spot": spot, "to": "blue"}, "INVALID_PARAMS"), ("yard_bad", {}, "INVALID_OUTPUT")], start=2):
                wire.send(call(number, name, **arguments))
                outcome = wire.answer(number)["result"]["_meta"]["hostler/outcome"]
                self.assertEqual(outcome["error"]["code"], code, (name, arguments))
            self.assertEqual(wire.value(9, "yard_plain", number=2.0), 2)

    def test_what_a_neighbour_defines_is_listed_before_the_first_call(self):
        (self.tools / "shapes.py").write_text(SHAPES)
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            before = shown(self.listed(wire, 1), "yard_move")
            self.assertEqual(before[0]["$defs"]["Spot"]["required"], ["x"])
            self.assertEqual(wire.value(2, "yard_move", spot={"x": 1}, to=["blue"])["x"], 2)
            wire.until(CHANGED)  # by the status, which is of another module
            after = shown(self.listed(wire, 3), "yard_move")
            self.assertEqual(after[0]["$defs"].pop("HTTPStatus")["enum"][0], 100)
            after[0]["properties"]["status"] = before[0]["properties"]["status"]
            self.assertEqual(after, before, "reading and running agree")

    def test_a_default_of_a_live_type_is_no_text_that_might_be_a_secret(self):
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            wire.value(1, "yard_move", spot={"x": 1}, to=["blue"])
            wire.until(CHANGED)
            self.assertNotIn("hunter2", json.dumps(self.listed(wire, 2)))

    def test_a_changed_neighbour_is_described_anew(self):
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            wire.value(1, "yard_move", spot={"x": 1}, to=["blue"])
            wire.until(CHANGED)
            (self.tools / "shapes.py").write_text(live(SHAPES.replace('BLUE = "blue"', 'BLUE = "blue"\n    GREEN = "green"')))
            wire.value(2, "yard_move", spot={"x": 1}, to=["green"])
            while "green" not in json.dumps(self.listed(wire, 3)):
                wire.until(CHANGED)

    def test_what_an_earlier_run_told_refuses_nothing_that_types_take_now(self):
        names = self.folder / "names"
        (self.tools / "shapes.py").write_text(f"import enum\nE = enum.Enum('E', {{k: k for k in open({str(names)!r}).read().split()}})\n")
        write_tool(self.tools, "yard", "from shapes import E\ndef f(v: E) -> str:\n    return v.value\n", "")
        for number, name in enumerate(("a", "b")):
            names.write_text(name)
            with Wire(self.tools, env=self.env) as wire:
                wire.open()
                self.assertEqual(wire.value(1, "yard_f", v=name), name)
                wire.until(CHANGED)
                self.assertEqual(shown(self.listed(wire, 2), "yard_f")[0]["$defs"]["E"]["enum"], [name])
                self.leave(wire)
            shared_mode.end()

    def test_a_description_that_hangs_costs_one_call_a_second(self):
        (self.tools / "shapes.py").write_text(
            "import time\nclass M(type):\n    def __getattr__(cls, name):\n        if name.startswith(('model_', '__supertype')):\n"
            "            time.sleep(300)\n        raise AttributeError(name)\nclass Z(metaclass=M): pass\n")
        write_tool(self.tools, "yard", "from shapes import Z\ndef f(v: Z) -> str: return ''\ndef g() -> int: return 1\n", "")
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            workers = {wire.worker(number, "yard_g") for number in (1, 2, 3)}
            self.assertEqual(len(workers), 1)

    def test_types_that_tell_nothing_leave_the_list_as_it_was(self):
        (self.tools / "shapes.py").write_text(
            "class Meta(type):\n    def __getattr__(cls, name):\n        raise SystemError('no')\n"
            "class Spot(metaclass=Meta):\n    x = 1\n    def __init__(self, *a): pass\nclass Color: pass\nOptions = 5\n")
        write_tool(self.tools, "yard", TOOL.replace("assert isinstance", "spot = Spot()\n    assert True or isinstance")
                   .replace("return Spot(spot.x + 1, to[-1])", "return {'x': 1}"), "")
        with Wire(self.tools, env=self.env) as wire:
            wire.open()
            before = shown(self.listed(wire, 1), "yard_plain")
            self.assertEqual(wire.value(2, "yard_plain", number=1), 1)
            self.assertEqual(wire.value(3, "yard_move", spot=1, to=[1]), {"x": 1})
            self.assertEqual(shown(self.listed(wire, 4), "yard_plain"), before)


if __name__ == "__main__":
    unittest.main()
