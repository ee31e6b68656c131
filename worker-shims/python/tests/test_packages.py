"""Types that pydantic, attrs and msgspec read, in files that import them. Each is skipped where it is not installed."""

import subprocess
import textwrap
import unittest

from harness import PYTHON, ShimTest
from test_loading import NEWER


def needs(package):
    found = subprocess.run([PYTHON, "-c", "import " + package], stderr=subprocess.DEVNULL).returncode == 0
    return unittest.skipUnless(found, package + " is not installed")


BEGIN = """
from dataclasses import dataclass
from typing import Annotated, Any, AsyncIterator, Dict, Generic, List, Optional, TypeVar
from typing_extensions import NotRequired, TypedDict
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, SerializeAsAny, StringConstraints
"""


@needs("pydantic")
class Pydantic(ShimTest):
    def given(self, source):
        return self.worker(BEGIN + textwrap.dedent(source))

    def test_a_dataclass_with_fields_of_pydantic(self):
        worker = self.given("""
            @dataclass
            class Search:
                text: str
                limit: int = Field(default=10, ge=1)
                tags: List[str] = Field(default_factory=list)
                zone: int = Field(default=3, alias="zed")
                note: str = Field(None, max_length=3)
            @dataclass
            class Sealed:
                key: bytes
                count: int = Field(2)
                needed: int = Field(...)
            def f(x: Search): return [x.text, x.limit, x.tags, x.zone, x.note]
            def g(x: List[Search]): return f(x[0])
            def h(x: Sealed): return [x.key.decode(), x.count, x.needed]
        """)
        for function, wrapped in (("f", lambda value: value), ("g", lambda value: [value])):
            call = lambda **value: worker.call(function, {"x": wrapped(value)})
            self.assertEqual(call(text="a")["result"], ["a", 10, [], 3, None])
            self.assertEqual(call(text="a", limit=2, tags=["b"], zed=4, note="c")["result"], ["a", 2, ["b"], 4, "c"])
            self.assertEqual(call(text="a", zone=4, note=None)["result"], ["a", 10, [], 4, None], "by its own name, too")
            self.fault(call(text="a", limit=0), -32602, ".limit: expected a valid value", "greater than or equal to 1")
            self.fault(call(text="a", limits=2), -32602, ".limits: expected one of the fields text, limit")
        self.assertEqual(worker.call("h", {"x": {"key": "aGk=", "needed": 1}})["result"], ["hi", 2, 1])
        self.fault(worker.call("h", {"x": {"key": "aGk="}}), -32602, "x.needed: expected a value: it is required")

    def test_a_field_of_a_dataclass_has_several_aliases(self):
        worker = self.given("""
            from pydantic import AliasChoices, AliasPath
            @dataclass
            class Order:
                id: int = Field(0, validation_alias=AliasChoices("order", AliasPath("orders", 0)))
            def f(x: Order): return x.id
        """)
        for value in ({"order": 1}, {"orders": [1]}, {"id": 1}):
            self.assertEqual(worker.call("f", {"x": value})["result"], 1, value)
        self.fault(worker.call("f", {"x": {"ids": 1}}), -32602, "x.ids: expected one of the fields id, order, orders")

    def test_pydantic_may_name_the_fields_of_a_dataclass(self):
        worker = self.given("""
            from pydantic import AliasPath, ConfigDict
            from typing_extensions import Annotated
            @dataclass
            class Noted:
                zone: Annotated[int, Field(alias="zed")] = 3
                count: int = Field(1)
            @dataclass
            class Camel:
                __pydantic_config__ = ConfigDict(alias_generator=lambda name: name.upper())
                zone: int = Field(3)
            @dataclass
            class First:
                id: int = Field(0, validation_alias=AliasPath("ids", 0))
                note: str = Field(None, alias="nt")
            @dataclass
            class Child(Noted):
                more: int = 0
            @dataclass
            class Plain:
                zone: Annotated[int, Field(alias="zed")]
            @dataclass
            class Derived(Plain):
                more: int
            def noted(x: Noted): return x.zone
            def child(x: Child): return x.zone
            def derived(x: Derived): return [x.zone, x.more]
            def camel(x: Camel): return x.zone
            def first(x: First): return [x.id, x.note]
        """)
        self.assertEqual(worker.call("noted", {"x": {"zed": 4}})["result"], 4)
        self.assertEqual(worker.call("child", {"x": {"zed": 4}})["result"], 4)
        self.assertEqual(worker.call("derived", {"x": {"zed": 4, "more": 1}})["result"], [4, 1], "the base has the alias")
        self.assertEqual(worker.call("camel", {"x": {"ZONE": 4}})["result"], 4)
        self.assertEqual(worker.call("first", {"x": {"ids": [7], "nt": None}})["result"], [7, None])
        self.fault(worker.call("first", {"x": {"id": 7}}), -32602, "x.id: expected one of the fields note, ids, nt")

    def test_results_are_cut_as_pydantic_does(self):
        worker = self.given("""
            T = TypeVar("T")
            class Base(BaseModel):
                id: int
            class Sub(Base):
                secret: str = "s"
            class Page(BaseModel, Generic[T]):
                items: List[T]
            class Further(Page[Sub]):
                more: int = 1
            class Team(TypedDict):
                head: NotRequired[Base]
                members: "NotRequired[List[Base]]"
            sub = Sub(id=1)
            def page() -> Page[Base]: return Page(items=[sub])
            def other() -> Page[Base]: return Page[Sub](items=[sub])
            def further() -> List[Page[Base]]: return [Further(items=[sub])]
            def maybe(none: bool = False) -> Optional[Page[Base]]: return None if none else Page(items=[sub])
            def free() -> Page: return Page(items=[sub])
            def any_item() -> Page[Any]: return Page[Base](items=[sub])
            def team() -> Team: return {"head": sub, "members": [sub]}
            def kept() -> SerializeAsAny[Base]: return sub
            def all_kept() -> List[SerializeAsAny[Base]]: return [sub]
            def any_model() -> List[BaseModel]: return [sub]
            async def later() -> AsyncIterator[Base]: yield sub
            async def pages() -> AsyncIterator[Page[Base]]: yield Page(items=[sub])
        """)
        cut, whole = {"items": [{"id": 1}]}, {"items": [{"id": 1, "secret": "s"}]}
        for name, expected in (("page", cut), ("other", cut), ("further", [cut]), ("maybe", cut), ("free", whole), ("any_item", whole),
                               ("kept", whole["items"][0]), ("all_kept", whole["items"]), ("any_model", whole["items"]),
                               ("team", {"head": {"id": 1}, "members": [{"id": 1}]}), ("later", [{"id": 1}]), ("pages", [cut])):
            with self.subTest(name):
                self.assertEqual(worker.call(name)["result"], expected)
        self.assertIsNone(worker.call("maybe", {"none": True})["result"])
        dropped = [note["params"]["fields"] for note in worker.notes if note["method"] == "dropped"]
        self.assertEqual(dropped, [["Further.more"], ["Sub.secret"], ["Sub.secret"]])

    def test_parts_that_only_pydantic_knows(self):
        worker = self.given("""
            from pydantic_core import Url
            T = TypeVar("T")
            @dataclass
            class Box(Generic[T]):
                item: T
                more: int = None
            class Entry(TypedDict, Generic[T]):
                item: T
            class Sealed(TypedDict, Generic[T]):
                item: T
                key: bytes
            class Tight(TypedDict):
                __pydantic_config__ = ConfigDict(extra="forbid", str_strip_whitespace=True)
                a: str
            class Held(TypedDict):
                a: str
            def url(x: Url): return [type(x).__name__, x.host, x]
            def box(x: Box[int]): return repr(x)
            def ghost(x: Box["Ghost"]): return repr(x)
            def box_of(x: Box[Held]): return repr(x)
            def entry(x: List[Entry[Annotated[int, Field(ge=1)]]]): return x
            def sealed(x: Sealed[int]): return [x["item"], x["key"].decode()]
            def tight(x: Tight): return x
            def counts(x: Dict[PositiveInt, str]): return sorted(map(repr, x))
            def limits(x: Dict[Annotated[int, Field(strict=True, ge=1)], str]): return sorted(map(repr, x))
            def upper(x: Dict[Annotated[str, StringConstraints(to_upper=True)], int]): return x
        """)
        for name, value, expected in (
            ("url", "http://a.example/b", ["Url", "a.example", "http://a.example/b"]), ("box", {"item": 1, "more": None}, "Box(item=1, more=None)"),
            ("ghost", {"item": 1}, "Box(item=1, more=None)"), ("box_of", {"item": {"a": "x"}}, "Box(item={'a': 'x'}, more=None)"),
            ("entry", [{"item": 1}], [{"item": 1}]),
            ("sealed", {"item": 1, "key": "aGk="}, [1, "hi"]), ("tight", {"a": " b "}, {"a": "b"}), ("counts", {"1": "a", "20": "b"}, ["1", "20"]),
            ("limits", {"1": "a"}, ["1"]), ("upper", {"ab": 1}, {"AB": 1}),
        ):
            with self.subTest(name):
                self.assertEqual(worker.call(name, {"x": value}).get("result"), expected)
        for name, value, *words in (
            ("url", "none", "x: expected a valid value"), ("box", {"item": "a"}, "x.item: expected a valid value"),
            ("box", {"item": 1, "itme": 1}, "x.itme: expected one of the fields item, more"), ("box_of", {"item": {"b": 1}}, "x.item.b: expected one"),
            ("entry", [{"item": 0}], "x[0].item: expected a valid value"), ("entry", [{"item": 1, "b": 1}], "x[0].b: expected one of the keys item"),
            ("tight", {"a": "b", "c": 1}, "x.c: expected a valid value"), ("counts", {"0": "a"}, "x key 0: expected a valid value"),
            ("counts", {"a": "a"}, "x key a: expected"), ("limits", {"0": "a"}, "x key 0: expected"),
        ):
            with self.subTest(name, value=value):
                self.fault(worker.call(name, {"x": value}), -32602, *words)

    @unittest.skipUnless(NEWER, "the `type` statement is of Python 3.12")
    def test_an_alias_with_parameters(self):
        worker = self.given("""
            type Pair[A] = tuple[A, A]
            type Named[A] = dict[str, Held | A]
            class Held(TypedDict):
                a: bytes
            def pair(x: Pair[int]): return x
            def named(x: Named[int]): return repr(x)
        """)
        self.assertEqual(worker.call("pair", {"x": [1, 2]})["result"], [1, 2])
        self.fault(worker.call("pair", {"x": [1, "a"]}), -32602, "x[1]: expected a valid value")
        self.assertEqual(worker.call("named", {"x": {"k": {"a": "aGk="}}})["result"], "{'k': {'a': b'hi'}}")


class Others(ShimTest):
    def arrives(self, worker, *cases):
        """Each a function, a value, and what arrives, or words of the fault."""
        for name, value, expected in cases:
            with self.subTest(name, value=value):
                answer = worker.call(name, {"x": value})
                self.assertEqual(answer.get("result"), expected) if "result" in answer else self.fault(answer, -32602, expected)

    @needs("attr")
    def test_types_of_attrs_that_are_no_annotations(self):
        worker = self.worker("""
            import attr
            from typing import Optional
            @attr.s
            class Point:
                x = attr.ib(type=int)
                unit = attr.ib(type="Optional[str]", default="m")
                free = attr.ib(default=None)
                made = attr.ib(type=int, converter=int, default=1)
            @attr.s
            class Line(Point):
                end = attr.ib(type=Point, default=None)
            def point(x: Point): return repr(x)
            def line(x: Line): return repr(x.end)
        """)
        self.arrives(
            worker, ("point", {"x": 1}, "Point(x=1, unit='m', free=None, made=1)"), ("point", {"x": "a"}, "x.x: expected a whole number"),
            ("point", {"x": 2.0, "unit": None, "free": [], "made": "3"}, "Point(x=2, unit=None, free=[], made=3)"),
            ("point", {"x": 1, "unit": 2}, "x.unit: expected a string or null"), ("line", {"x": 1, "end": None}, "None"),
            ("line", {"x": 1, "end": {"x": "a"}}, "x.end.x: expected a whole number"))

    @needs("msgspec")
    def test_tagged_structs_of_msgspec(self):
        worker = self.worker("""
            import msgspec
            from typing import List, Optional, Union
            class Put(msgspec.Struct, tag="put"):
                x: int
            class Take(msgspec.Struct, tag="take"):
                x: int
            class Other(msgspec.Struct, tag="other", tag_field="kind"):
                x: int
            def one(x: Union[Put, Take]): return repr(x)
            def several(x: List[Union[Put, str, Take, None]]): return repr(x)
            def alone(x: Optional[Put]): return repr(x)
            def mixed(x: Union[Put, Other]): return repr(x)
        """)
        self.arrives(
            worker, ("one", {"type": "take", "x": 1}, "Take(x=1)"), ("one", {"x": 1}, "x: expected Put or Take (Object missing required field `type`)"),
            ("one", {"type": "drop", "x": 1}, "x: expected Put or Take"), ("several", [{"type": "put", "x": 1}, "a", None], "[Put(x=1), 'a', None]"),
            ("several", ["a", {"x": 1}], "x[1]: expected a string or null or Put or Take"), ("alone", {"x": 1}, "Put(x=1)"),
            ("mixed", {"x": 1}, "Put(x=1)"))


if __name__ == "__main__":
    unittest.main()
