# /// script
# requires-python = ">=3.13"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""What Python 3.13 can write."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Self, TypedDict

from pydantic import BaseModel, Field

type Ids = list[int]
type Nested = list[Nested]
type Json = dict[str, Json] | list[Json] | str | int | float | bool | None


def alias_type(x: Ids) -> Ids:
    return x


def recursive_list(x: Nested) -> Nested:
    return x


def recursive_alias(x: Json) -> Json:
    return x


def type_variable[T](x: T) -> T:
    return x


def list_of_variables[T](x: list[T]) -> list[T]:
    return x


type Pair[T] = tuple[T, T]
type Named[T = date] = dict[str, T]
type Score = Annotated[int, Field(ge=0, le=10)]
type Both[A, B = A] = tuple[A, Named[B]]


class Page[T = str](BaseModel):
    items: list[T]
    next: Self | None = None


class Titled[T = date](BaseModel):
    title: T


class Users(Page[int]):
    total: int = 0


@dataclass
class Node[K, V = int]:
    key: K
    value: V
    left: "Node[K, V] | None" = None


class Row[T](TypedDict):
    cell: T


def alias_with_argument(x: Pair[int]) -> Pair[int]:
    return x


def alias_with_default(x: Named) -> Named:
    return x


def alias_of_alias(x: Named[Score]) -> Named[Score]:
    return x


def alias_with_default_of_another(x: Both[int]) -> Both[int]:
    return x


def model_with_default(x: Titled) -> Titled:
    return x


def model_of_itself(x: Page[int]) -> Page[int]:
    return x


def model_that_inherits(x: Users) -> Users:
    return x


def dataclass_with_default(x: Node[str]) -> Node[str]:
    return x


def dataclass_without_default(x: Node[str, float]) -> Node[str, float]:
    return x


def row_of_scores(x: Row[Score]) -> Row[Score]:
    return x
