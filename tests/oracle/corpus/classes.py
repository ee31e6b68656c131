# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""Dataclasses, typed dictionaries and named tuples."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from enum import Enum
from typing import ClassVar, NamedTuple, Optional

from typing_extensions import NotRequired, Required, TypedDict


class Kind(Enum):
    LEAF = "leaf"
    KNOT = "knot"


@dataclass
class Point:
    """A place."""

    x: float
    y: float = 0.0


@dataclass
class Base:
    id: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    name: str
    retries: int = 3
    tags: list[str] = field(default_factory=list)
    table: dict[str, int] = field(default_factory=lambda: {"a": 1})
    limit: Optional[int] = None
    version: ClassVar[int] = 1


@dataclass
class Node(Base):
    label: str
    _: KW_ONLY
    kind: Kind = Kind.LEAF
    when: date | None = None
    children: list[Node] = field(default_factory=list)
    at: Point = dataclasses.field(default_factory=lambda: Point(0.0))


@dataclass
class Hidden:
    a: int
    b: int = field(init=False, default=5)

    def __post_init__(self):
        self.b = self.a + 1


class Options(TypedDict):
    a: int
    b: NotRequired[str]


class Loose(TypedDict, total=False):
    a: int
    b: Required[str]


class More(Options):
    c: list[Point]


class Tree(TypedDict):
    name: str
    children: NotRequired[list[Tree]]


class Spot(NamedTuple):
    x: int
    y: int = 0


class Plain:
    def __init__(self, x: int):
        self.x = x


def a_dataclass(point: Point) -> Point:
    return point


def with_defaults(settings: Settings) -> Settings:
    return settings


def recursive(node: Node) -> Node:
    return node


def optional_dataclass(point: Optional[Point] = None) -> Optional[Point]:
    return point


def list_of_dataclasses(points: list[Point]) -> list[Point]:
    return points


def dict_of_dataclasses(points: dict[str, Point]) -> dict[str, Point]:
    return points


def not_initial(hidden: Hidden) -> Hidden:
    return hidden


def typed_dict(options: Options) -> Options:
    return options


def loose_dict(options: Loose) -> Loose:
    return options


def inherited_dict(more: More) -> More:
    return more


def recursive_dict(tree: Tree) -> Tree:
    return tree


def named_tuple(spot: Spot) -> Spot:
    return spot


def named_tuples(spots: list[Spot]) -> list[Spot]:
    return spots


def either(value: Point | Options) -> Point | Options:
    return value


def plain_class(plain: Plain):
    return repr(plain)
