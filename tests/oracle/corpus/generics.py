# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""Generic classes with arguments for their type parameters."""

from dataclasses import dataclass
from typing import Annotated, Generic, Literal, NamedTuple, Optional, TypeVar, Union

from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypedDict

T = TypeVar("T")
K = TypeVar("K")


class Box(BaseModel, Generic[T]):
    item: T
    inner: "Optional[Box[T]]" = None


class Plain(BaseModel, Generic[T]):
    item: T


class Pair(BaseModel, Generic[K, T]):
    key: K
    values: dict[str, list[T]] = {}


class Swapped(Pair[T, K], Generic[K, T]):
    swapped: bool = False


class Named(BaseModel):
    name: str = Field(min_length=1)


class NamedBox(Plain[Named]):
    label: str = "x"


class Between(Plain[list[T]], Generic[T]):
    between: Optional[T] = None


class IntBetween(Between[int]):
    pass


class Items(RootModel[list[T]], Generic[T]):
    pass


class Rows(Items[list[T]], Generic[T]):
    pass


class Tidy(BaseModel, str_strip_whitespace=True):
    text: str = Field(max_length=3)


@dataclass
class Cell(Generic[T]):
    value: T
    nested: "Optional[Cell[str]]" = None


@dataclass
class NumberCell(Cell[float]):
    unit: str = "m"


class Entry(TypedDict, Generic[T]):
    value: T
    others: list[T]


class Point(NamedTuple, Generic[T]):
    x: T
    y: int = 0


Choice = Union[Box[int], Named]


def box_of_int(box: Box[int]) -> Box[int]:
    return box


def box_of_texts(box: Box[list[str]]) -> int:
    return len(box.item)


def quoted(box: "Box[Named]") -> str:
    return box.item.name


def constrained(box: Plain[Annotated[int, Field(ge=0, lt=10)]]) -> int:
    return box.item


def chosen(box: Box[Literal["a", "b"]]) -> str:
    return box.item


def maybe(box: Optional[Plain[Optional[int]]] = None) -> int:
    return 0


def boxed_box(box: Box[Box[bool]]) -> bool:
    return box.item.item


def alias(choice: Choice) -> int:
    return 0


def pair(pair: Pair[str, int]) -> Pair[str, int]:
    return pair


def swapped(pair: Swapped[int, str]) -> str:
    return pair.key


def named_box(box: NamedBox) -> NamedBox:
    return box


def int_between(box: IntBetween) -> int:
    return len(box.item)


def items(items: Items[int]) -> int:
    return len(items.root)


def rows(rows: Rows[int]) -> int:
    return len(rows.root)


def tidy(tidy: Tidy) -> str:
    return tidy.text


def cell(cell: Cell[int]) -> int:
    return cell.value


def number_cell(cell: NumberCell) -> float:
    return cell.value


def entry(entry: Entry[int]) -> int:
    return entry["value"]


def point(point: Point[float]) -> float:
    return point.x


def many(boxes: list[Box[int]], by: dict[str, Box[str]]) -> int:
    return len(boxes) + len(by)
