# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""Names for types: aliases, new types, forward references, type parameters, protocols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NewType, Optional, Protocol, TypeAlias, TypeVar, Union

from typing_extensions import TypeAliasType

if TYPE_CHECKING:
    from typing import Never as Unseen

UserId = NewType("UserId", int)
UserIds = NewType("UserIds", list[UserId])
Vector = list[float]
Matrix: TypeAlias = "list[Vector]"
Maybe = Optional[Vector]
Ids = TypeAliasType("Ids", list[int])
Json = TypeAliasType("Json", "Union[dict[str, Json], list[Json], str, int, float, bool, None]")
Nested = TypeAliasType("Nested", "list[Nested]")
T = TypeVar("T")
Number = TypeVar("Number", int, float)
LIMIT = 10
NAME = "x"


class Shape(Protocol):
    def area(self) -> float: ...


def forward(x: Later) -> Later:
    return x


def forward_in_quotes(x: "list[Later]") -> "list[Later]":
    return x


@dataclass
class Later:
    n: int


def new_type(x: UserId) -> UserId:
    return x


def new_type_of_list(x: UserIds) -> UserIds:
    return x


def alias(x: Vector) -> Vector:
    return x


def alias_in_quotes(x: Matrix) -> Matrix:
    return x


def alias_optional(x: Maybe = None) -> Maybe:
    return x


def alias_type(x: Ids) -> Ids:
    return x


def recursive_alias(x: Json) -> Json:
    return x


def recursive_list(x: Nested) -> Nested:
    return x


def type_variable(x: T) -> T:
    return x


def list_of_variables(x: list[T]) -> list[T]:
    return x


def protocol(x: Shape):
    return repr(x)


def callable_argument(x: Callable[[int], int]):
    return repr(x)


def constant_default(x: int = LIMIT, y: str = NAME) -> str:
    return f"{x} {y}"


def computed_default(x: int = LIMIT * 2, y: list[str] = [NAME.upper()]) -> list[str]:
    return y


def annotated_alias(x: Annotated[Vector, "Three numbers."]) -> Vector:
    return x
