"""Arguments arrive as the annotated types."""

import sys
import textwrap
import unittest

from harness import ShimTest
from test_loading import NEWER

TYPES = """
    %s
    import collections, datetime, enum, ipaddress, re, typing
    from dataclasses import dataclass, field
    from datetime import timedelta
    from decimal import Decimal
    from pathlib import Path
    from typing import Any, Dict, List, Literal, NamedTuple, NewType, Optional, Tuple, Union
    from uuid import UUID
    if typing.TYPE_CHECKING:
        from nowhere import Ghost
    class Color(enum.Enum):
        RED = "r"
        PAIR = (1, 2)
    @dataclass
    class Point:
        x: float
        when: Optional[datetime.date] = None
        kids: List["Point"] = field(default_factory=list)
        def __post_init__(self):
            if self.x < 0: raise ValueError("x is negative")
    class Opts(typing.TypedDict, total=False):
        where: Path
        raw: bytes
    class Pair(NamedTuple):
        a: Path
        b: int = 3
    Id = NewType("Id", UUID)
    Json = Union[Dict[str, "Json"], List["Json"], str, int, None]
    Deep = List["Deep"]
    class Model:
        def __init__(self, value): self.value = value
        @classmethod
        def model_validate(cls, value):
            if value == "bad": raise ValueError("bad model")
            return cls(value)
"""

CASES = [  # annotation, JSON value, repr of what arrives
    ("float", 3, "3.0"), ("float", 2.5, "2.5"), ("int", 3, "3"), ("str", "x", "'x'"), ("int", "x", "'x'"),
    ("Color", "r", "<Color.RED: 'r'>"), ("Color", "RED", "<Color.RED: 'r'>"), ("Color", [1, 2], "<Color.PAIR: (1, 2)>"),
    ("Path", "a/b", "PosixPath('a/b')"), ("Optional[Path]", None, "None"), ("Optional[Path]", "a", "PosixPath('a')"),
    ("datetime.datetime", "2026-01-31T12:00:00Z", "datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)"),
    ("datetime.date", "2026-01-31", "datetime.date(2026, 1, 31)"), ("datetime.date", "2026-01-31T00:00:00Z", "datetime.date(2026, 1, 31)"),
    ("datetime.time", "12:30", "datetime.time(12, 30)"),
    ("timedelta", 90, "datetime.timedelta(seconds=90)"), ("timedelta", "P1DT1H1.5S", "datetime.timedelta(days=1, seconds=3601, microseconds=500000)"),
    ("timedelta", "-PT1M", "datetime.timedelta(days=-1, seconds=86340)"),
    ("UUID", "00000000-0000-0000-0000-000000000001", "UUID('00000000-0000-0000-0000-000000000001')"),
    ("Id", "00000000-0000-0000-0000-000000000001", "UUID('00000000-0000-0000-0000-000000000001')"),
    ("Decimal", "1.10", "Decimal('1.10')"), ("Decimal", 0.1, "Decimal('0.1')"), ("bytes", "aGk=", "b'hi'"),
    ("List[Path]", ["a"], "[PosixPath('a')]"), ("typing.Sequence[float]", [1], "[1.0]"), ("Dict[str, float]", {"a": 1}, "{'a': 1.0}"),
    ("Dict[int, Any]", {"1": "x"}, "{1: 'x'}"), ("typing.Mapping[Color, int]", {"r": 1}, "{<Color.RED: 'r'>: 1}"),
    ("Tuple[Path, int]", ["a", 1], "(PosixPath('a'), 1)"), ("Tuple[float, ...]", [1, 2], "(1.0, 2.0)"), ("tuple", [1], "(1,)"),
    ("typing.Set[int]", [1, 1], "{1}"), ("typing.FrozenSet[int]", [1], "frozenset({1})"), ("set", [1], "{1}"),
    ("Literal['a', 1]", "a", "'a'"), ("Literal[Color.RED]", "r", "<Color.RED: 'r'>"),
    ("Union[int, Path]", 1, "1"), ("Union[int, Path]", "a", "PosixPath('a')"), ("Union[float, None]", 1, "1.0"),
    ("Union[datetime.date, str]", "x", "'x'"), ("Union[List[Point], Point]", {"x": 1}, "Point(x=1.0, when=None, kids=[])"),
    ("Point", {"x": 1, "when": "2026-01-31", "kids": [{"x": 2}]},
     "Point(x=1.0, when=datetime.date(2026, 1, 31), kids=[Point(x=2.0, when=None, kids=[])])"),
    ("Opts", {"where": "a", "raw": "aGk="}, "{'where': PosixPath('a'), 'raw': b'hi'}"),
    ("Pair", {"a": "x"}, "Pair(a=PosixPath('x'), b=3)"), ("Pair", ["x", 4], "Pair(a=PosixPath('x'), b=4)"),
    ("Any", {"a": 1}, "{'a': 1}"), ("'Ghost'", "x", "'x'"), ("'List[Path]'", ["a"], "[PosixPath('a')]"),
    ("collections.deque", [1], "deque([1])"), ("typing.Deque[Path]", ["a"], "deque([PosixPath('a')])"),
    ("typing.Counter[str]", {"a": 1}, "Counter({'a': 1})"),
    ("typing.DefaultDict[str, List[int]]", {"a": [1]}, "defaultdict(<class 'list'>, {'a': [1]})"),
    ("Json", {"a": [{"b": None}]}, "{'a': [{'b': None}]}"), ("Deep", [[], [[]]], "[[], [[]]]"),
    ("ipaddress.IPv4Address", "192.0.2.1", "IPv4Address('192.0.2.1')"), ("re.Pattern", "a+", "re.compile('a+')"),
    ("typing.Callable", "x", "'x'"), ("List['Point']", [{"x": 1}], "[Point(x=1.0, when=None, kids=[])]"),
]

FAULTS = [
    ("Color", "blue", "x: expected one of 'r'"), ("float", "1", "x: expected a number"), ("UUID", "no", "x: expected a UUID"),
    ("bytes", "*", "base64"), ("datetime.date", "soon", "x: expected a date"), ("List[Path]", ["a", 3], "x[1]: expected a path"),
    ("List[Path]", "a", "x: expected a list"), ("Dict[int, int]", {"a": 1}, "x key a: expected a whole number"),
    ("Point", {"x": "one"}, "x.x: expected a number"), ("Point", {}, "x.x: expected a value: it is required"),
    ("Opts", {"where": "a", "rav": "aGk="}, "x.rav: expected one of the keys where, raw; did you mean raw?"),
    ("Point", {"x": 1, "kid": 2}, "x.kid: expected one of the fields x, when, kids"), ("Point", {"x": 1, "kids": [{"x": -1}]}, "x.kids[0]: expected Point (x is negative)"),
    ("Tuple[int, int]", [1], "x: expected a list of 2"), ("typing.Set[list]", [[1]], "in a set"), ("Literal['a', 'b']", "c", "one of 'a', 'b'"),
    ("Union[int, Path]", [1], "x: expected a whole number or a path"), ("Model", "bad", "x: expected Model (bad model)"),
    ("ipaddress.IPv4Address", "here", "an address"), ("re.Pattern", "(", "a regular expression"),
    ("timedelta", "P", "a duration"), ("Decimal", "one", "a decimal number"),
]


class Conversion(ShimTest):
    def check(self, future, quoted):
        source = [line[4:] for line in (TYPES % future).splitlines()]
        for n, (hint, _, _) in enumerate(CASES):
            source.append("def c%d(x: %s): return repr(x)" % (n, hint))
        for n, (hint, _, _) in enumerate(FAULTS):
            source.append("def f%d(x: %s): return repr(x)" % (n, hint))
        worker = self.worker("\n".join(source))
        for n, (hint, value, expected) in enumerate(CASES):
            with self.subTest(hint, value=value):
                self.assertEqual(worker.call("c%d" % n, {"x": value}).get("result"), expected)
        for n, (hint, value, words) in enumerate(FAULTS):
            with self.subTest(hint, value=value):
                self.fault(worker.call("f%d" % n, {"x": value}), -32602, words)

    def test_annotations(self):
        self.check("", False)

    def test_annotations_as_text(self):
        self.check("from __future__ import annotations", True)

    def test_names_for_type_checkers_mean_their_types(self):
        """The schema is read from the text, so an argument is what the text says."""
        self.file("""
            from dataclasses import dataclass
            import _hostler_tool_tool as tool
            tool.loads.append(__name__)
            @dataclass
            class Order:
                number: int
        """, "orders.py")
        self.file("import sys; sys.exit('no display')", "quits.py")
        self.file("import _hostler_tool_tool as tool; tool.loads.append(__name__)", "unused.py")
        source = """
            %s
            import typing as t
            loads = []
            if t.TYPE_CHECKING:
                from decimal import Decimal, NoSuch
                from nowhere import Ghost
                from orders import Order
                import quits, unused
                import tool as again
                print("this file ran again", again.loads)
                Money = Decimal
                class Options(t.TypedDict):
                    price: Decimal
            if not t.TYPE_CHECKING:
                pass
            else:
                from datetime import date
            def number(x: %s): return repr(x)
            def several(x: %s, y: %s): return repr([x, y])
            def order(x: %s): return repr(x)
            def unknown(x: %s, y: %s, z: "quits.Thing" = 0): return repr([x, y, z])
            def other(x: "date", y: "again.Thing" = 0): return repr([x, y])
            def loaded(): return loads
        """
        hints = "Decimal", "t.List[Money]", "Options", "Order", "NoSuch", "Ghost"
        forms = [("", tuple(map(repr, hints))), ("from __future__ import annotations", hints)]
        if sys.version_info >= (3, 14):
            forms.append(("", hints))
        for first, written in forms:
            with self.subTest(first, hints=written):
                worker = self.worker(source % (first, *written))
                self.assertEqual(worker.call("loaded")["result"], [])
                for name, arguments, expected in (
                    ("number", {"x": "1.50"}, "Decimal('1.50')"),
                    ("several", {"x": ["1"], "y": {"price": "2"}}, "[[Decimal('1')], {'price': Decimal('2')}]"),
                    ("order", {"x": {"number": 7}}, "Order(number=7)"),
                    ("unknown", {"x": 1, "y": {"a": 1}, "z": 2}, "[1, {'a': 1}, 2]"),
                    ("other", {"x": "2026-01-02", "y": 3}, "[datetime.date(2026, 1, 2), 3]"),
                ):
                    self.assertEqual(worker.call(name, arguments).get("result"), expected, name)
                self.assertEqual(worker.call("loaded")["result"], ["orders"])
                self.assertEqual(worker.printed(), "")
                worker.end()

    @unittest.skipIf(sys.version_info < (3, 11), "Self is newer than this Python")
    def test_classes_that_contain_themselves(self):
        worker = self.worker("""
            from dataclasses import dataclass
            from typing import Self
            @dataclass
            class One:
                v: int
                next: Self | None = None
            @dataclass
            class More(One):
                w: str = ""
            @dataclass
            class Other:
                w: str
                next: Self | None = None
            def both(a: One, b: Other, c: More): return repr([a.next, b.next, c.next])
        """)
        given = {"a": {"v": 1, "next": {"v": 2}}, "b": {"w": "x", "next": {"w": "y"}}, "c": {"v": 1, "next": {"v": 2, "w": "z"}}}
        expected = "[One(v=2, next=None), Other(w='y', next=None), More(v=2, next=None, w='z')]"
        self.assertEqual(worker.call("both", given).get("result"), expected)

    def test_a_union_takes_the_member_that_fits(self):
        source = """
            import enum, typing
            from collections.abc import Mapping, Sequence
            from dataclasses import dataclass
            from datetime import date, datetime, timedelta
            from decimal import Decimal
            from typing import Annotated, Dict, List, NamedTuple, NewType, Optional, Set, Tuple, TypedDict, Union
            class Level(enum.IntEnum):
                LOW = 1
                HIGH = 2
            @dataclass
            class Number:
                value: int
                more: Optional[List[int]] = None
            @dataclass
            class Text:
                value: str
            @dataclass
            class Texts:
                value: List[str]
            @dataclass
            class Bound:
                limit: int = None
            class Pair(NamedTuple):
                a: int
                b: int = 0
            Id = NewType("Id", int)
            Deep = NewType("Deep", Id)
        """
        cases = [
            ("Union[Number, Text, Texts]", {"value": "x"}, "Text(value='x')"),
            ("Union[Number, Text, Texts]", {"value": ["x"]}, "Texts(value=['x'])"),
            ("Union[Number, Text]", {"value": 2.0, "more": [3.0]}, "Number(value=2, more=[3])"),
            ("List[Union[Number, Text]]", [{"value": "a"}, {"value": 1}], "[Text(value='a'), Number(value=1, more=None)]"),
            ("Union[Annotated[int, 'whole'], date]", "2026-01-02", "datetime.date(2026, 1, 2)"),
            ("Union[Id, date]", "2026-01-02", "datetime.date(2026, 1, 2)"),
            ("Union[Id, Number]", {"value": 1}, "Number(value=1, more=None)"),
            ("Union[Sequence[str], Mapping[str, int], date]", "2026-01-02", "datetime.date(2026, 1, 2)"),
            ("Union[Sequence[str], Mapping[str, int], date]", {"a": 1}, "{'a': 1}"),
            ("Union[Sequence, date]", ["a"], "['a']"),
            ("Union[datetime, date]", "2026-01-02", "datetime.date(2026, 1, 2)"),
            ("Union[datetime, date]", "2026-01-02T03:04:05", "datetime.datetime(2026, 1, 2, 3, 4, 5)"),
            ("Union[timedelta, float]", 5, "5.0"),
            ("Union[Decimal, float, None]", 1.5, "1.5"),
            ("Union[Set[int], List[int]]", [1, 1], "[1, 1]"),
            ("Union[Tuple[int, int], List[str]]", ["a", "b"], "['a', 'b']"),
            ("Union[Tuple[int, int], List[str]]", [1, 2], "(1, 2)"),
            ("Union[Pair, str]", [1.0], "Pair(a=1, b=0)"),
            ("Union[Number, 'OnlyForCheckers']", {"value": 1}, "Number(value=1, more=None)"),
            ("Union[bool, Number]", True, "True"),
            ("Union[Bound, Texts]", {"limit": None}, "Bound(limit=None)"),
            ("Union[float, str]", 2, "2.0"),
            ("Dict[Id, int]", {"7": 1}, "{7: 1}"),
            ("Dict[Deep, int]", {"7": 1}, "{7: 1}"),
            ("Dict[Annotated[int, 'x'], int]", {"7": 1}, "{7: 1}"),
            ("Dict[Optional[int], int]", {"7": 1}, "{7: 1}"),
            ("Dict[Level, int]", {"2": 1}, "{<Level.HIGH: 2>: 1}"),
        ]
        lines = ["def f%d(x: %s): return repr(x)" % (n, hint) for n, (hint, _, _) in enumerate(cases)]
        ordered = ["def both(a: Union[Number, Text, Dict[str, int]], b: Union[Dict[str, int], Number]): return repr([a, b])"]
        worker = self.worker("\n".join([textwrap.dedent(source), *lines, *ordered]))
        for n, (hint, value, expected) in enumerate(cases):
            with self.subTest(hint, value=value):
                self.assertEqual(worker.call("f%d" % n, {"x": value}).get("result"), expected)
        self.assertEqual(worker.call("both", {"a": {"value": 1}, "b": {"value": 1}})["result"], "[Number(value=1, more=None), {'value': 1}]")
        taking = {hint: "f%d" % n for n, (hint, _, _) in enumerate(cases)}
        self.fault(worker.call(taking["Union[float, str]"], {"x": 10 ** 400}), -32602, "a number that fits a float")
        self.fault(worker.call(taking["Union[Annotated[int, 'whole'], date]"], {"x": "soon"}), -32602, "x: expected ")
        self.fault(worker.call(taking["Union[Number, Text, Texts]"], {"x": {"value": [1]}}), -32602, "x: expected ")

    def test_generic_classes_hold_what_they_are_given(self):
        self.file("""
            from __future__ import annotations
            from dataclasses import dataclass
            from datetime import date as day
            from typing import TypedDict
            @dataclass
            class Dated:
                on: day
            class Named(TypedDict):
                on: day
        """, "dated.py")
        worker = self.worker("""
            from dataclasses import dataclass
            from datetime import date
            from typing import Dict, Generic, List, NamedTuple, Optional, TypedDict, TypeVar
            from dated import Dated, Named
            T = TypeVar("T")
            K = TypeVar("K")
            @dataclass
            class Box(Generic[T]):
                item: T
                others: Optional[List[T]] = None
            @dataclass
            class Shelf(Generic[K, T]):
                box: Box[T]
                label: K
            @dataclass
            class Dates(Box[date]):
                count: int = 0
            @dataclass
            class Lists(Box[List[T]], Generic[T]):
                count: int = 0
            @dataclass
            class DateLists(Lists[date]):
                pass
            @dataclass
            class More(Dated):
                text: str = ""
            class Longer(Named):
                text: str
            def box(x: Box[date]): return repr(x)
            def shelf(x: Shelf[str, Box[date]]): return repr(x)
            def dates(x: Dates): return repr(x)
            def lists(x: Lists[date]): return repr(x.item)
            def date_lists(x: DateLists): return repr(x.item)
            def more(x: More): return repr(x)
            def longer(x: Longer): return repr(x)
            def plain(x: Box): return repr(x)
            def several(x: Dict[str, Box[date]], y: Box[int]): return repr([x, y])
        """)
        for name, value, expected in (
            ("box", {"item": "2026-01-02", "others": ["2026-01-03"]}, "Box(item=datetime.date(2026, 1, 2), others=[datetime.date(2026, 1, 3)])"),
            ("shelf", {"box": {"item": {"item": "2026-01-02"}}, "label": "a"},
             "Shelf(box=Box(item=Box(item=datetime.date(2026, 1, 2), others=None), others=None), label='a')"),
            ("dates", {"item": "2026-01-02"}, "Dates(item=datetime.date(2026, 1, 2), others=None, count=0)"),
            ("lists", {"item": ["2026-01-02"]}, "[datetime.date(2026, 1, 2)]"),
            ("date_lists", {"item": ["2026-01-02"]}, "[datetime.date(2026, 1, 2)]"),
            ("more", {"on": "2026-01-02"}, "More(on=datetime.date(2026, 1, 2), text='')"),
            ("longer", {"on": "2026-01-02", "text": "a"}, "{'on': datetime.date(2026, 1, 2), 'text': 'a'}"),
            ("plain", {"item": "2026-01-02"}, "Box(item='2026-01-02', others=None)"),
        ):
            with self.subTest(name):
                self.assertEqual(worker.call(name, {"x": value}).get("result"), expected)
        self.assertEqual(worker.call("several", {"x": {"a": {"item": "2026-01-02", "others": ["2026-01-03"]}}, "y": {"item": 1, "others": [2]}})["result"],
                         "[{'a': Box(item=datetime.date(2026, 1, 2), others=[datetime.date(2026, 1, 3)])}, Box(item=1, others=[2])]")

    @unittest.skipIf(sys.version_info < (3, 11), "generic typed dictionaries are newer than this Python")
    def test_generic_typed_dictionaries(self):
        worker = self.worker("from datetime import date\nfrom typing import Generic, TypedDict, TypeVar\nT = TypeVar('T')\n"
                             "class Held(TypedDict, Generic[T]):\n    item: T\nclass Dated(Held[date]):\n    text: str\n"
                             "def f(x: Dated, y: Held[date]): return repr([x, y])\n")
        self.assertEqual(worker.call("f", {"x": {"item": "2026-01-02", "text": "a"}, "y": {"item": "2026-01-03"}})["result"],
                         "[{'item': datetime.date(2026, 1, 2), 'text': 'a'}, {'item': datetime.date(2026, 1, 3)}]")

    @unittest.skipUnless(NEWER, "type parameters are newer than this Python")
    def test_aliases_with_type_parameters(self):
        worker = self.worker("from datetime import date\ntype Pair[T] = tuple[T, T]\ntype Rows[T] = list[Pair[T]]\n"
                             "def f(x: Rows[date], y: Pair[int]): return repr([x, y])\n")
        self.assertEqual(worker.call("f", {"x": [["2026-01-02", "2026-01-03"]], "y": [1, 2]})["result"],
                         "[[(datetime.date(2026, 1, 2), datetime.date(2026, 1, 3))], (1, 2)]")

    def test_parameters_of_all_kinds(self):
        worker = self.worker("""
            from pathlib import Path
            import functools
            def positional(a: Path, b=2, /, c: float = 3, *, d: Path = None, **more: float):
                return [repr(x) for x in (a, b, c, d, more)]
            def wrap(f):
                @functools.wraps(f)
                def inner(*args, **kwargs): return f(*args, **kwargs)
                return inner
            @wrap
            def wrapped(a: Path, /): return repr(a)
            def plain(**kwargs): return kwargs
            async def later(p: Path): return repr(p)
        """)
        self.assertEqual(worker.call("positional", {"a": "x", "d": None, "e": 1})["result"],
                         ["PosixPath('x')", "2", "3", "None", "{'e': 1.0}"])
        self.assertEqual(worker.call("positional", {"b": 5, "a": "x", "c": 1})["result"][:3], ["PosixPath('x')", "5", "1.0"])
        self.fault(worker.call("positional", {"b": 5}), -32602, "a: expected a value")
        self.assertEqual(worker.call("wrapped", {"a": "x"})["result"], "PosixPath('x')")
        self.assertEqual(worker.call("plain", {"a": 1})["result"], {"a": 1})
        self.assertEqual(worker.call("later", {"p": "x"})["result"], "PosixPath('x')")

    @unittest.skipIf(sys.version_info < (3, 11), "Unpack is newer than this Python")
    def test_what_is_unpacked(self):
        worker = self.worker("""
            from pathlib import Path
            from typing import TypedDict, Unpack
            class Options(TypedDict, total=False):
                where: Path
                scale: float
            def options(x: int, **options: Unpack[Options]): return repr(options)
            def open_ended(x: tuple[int, *tuple[Path, ...]]): return repr(x)
            def middle(x: tuple[str, *tuple[int, ...], bool]): return repr(x)
        """)
        self.assertEqual(worker.call("middle", {"x": ["a", 1, 2.0, True]})["result"], "('a', 1, 2, True)")
        self.assertEqual(worker.call("middle", {"x": ["a", True]})["result"], "('a', True)")
        self.fault(worker.call("middle", {"x": ["a", "b", True]}), -32602, "x[1]: expected a whole number")
        self.fault(worker.call("middle", {"x": ["a", 1, 3]}), -32602, "x[2]: expected true or false")
        self.assertEqual(worker.call("options", {"x": 1, "where": "a", "scale": 2})["result"], "{'where': PosixPath('a'), 'scale': 2.0}")
        self.assertEqual(worker.call("open_ended", {"x": [1, "a", "b"]})["result"], "(1, PosixPath('a'), PosixPath('b'))")
        self.assertEqual(worker.call("open_ended", {"x": [1]})["result"], "(1,)")
        self.fault(worker.call("open_ended", {"x": []}), -32602, "x: expected a list of 1 or more")

    def test_defaults_that_describe(self):
        worker = self.worker("""
            class Field:
                def __init__(self, *default): self.default = default
                def is_required(self): return not self.default
                def get_default(self, call_default_factory=False): return self.default[0]
            def described(a: float = Field(), b: str = Field("b"), *, c: int = Field(3)): return [a, b, c]
        """)
        self.assertEqual(worker.call("described", {"a": 1})["result"], [1.0, "b", 3])
        self.assertEqual(worker.call("described", {"a": 1, "c": 4, "b": "x"})["result"], [1.0, "x", 4])
        self.fault(worker.call("described", {"b": "x"}), -32602, "a: expected a value: it is required")
