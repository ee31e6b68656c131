# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""What is noted beside a type."""

from typing import Annotated, Optional

import annotated_types
from annotated_types import Ge, Gt, Interval, Le, Len, Lt, MaxLen, MinLen, MultipleOf
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, conint, conlist, constr

LEAST = 2
Short = Annotated[str, Field(max_length=3)]


def _counted(value):
    if not isinstance(value, (int, str)):
        raise ValueError("a number or a text that is counted")
    return value if isinstance(value, int) else len(value)


def described(x: Annotated[int, "How many."]) -> Annotated[int, "How many."]:
    return x


def bounds(x: Annotated[int, Field(ge=1, le=10)]) -> Annotated[int, Field(ge=1, le=10)]:
    return x


def exclusive(x: Annotated[float, Field(gt=0, lt=1, description="A share.")]) -> float:
    return x


def steps(x: Annotated[int, Field(multiple_of=5)]) -> int:
    return x


def lengths(x: Annotated[str, Field(min_length=2, max_length=4)]) -> str:
    return x


def pattern(x: Annotated[str, Field(pattern="^[a-z]+-[0-9]+$")]) -> str:
    return x


def items(x: Annotated[list[int], Field(min_length=1, max_length=3)]) -> list[int]:
    return x


def keys(x: Annotated[dict[str, int], Field(min_length=1, max_length=2)]) -> dict[str, int]:
    return x


def optional_bound(x: Annotated[Optional[int], Field(ge=3)] = None) -> Optional[int]:
    return x


def inner_bound(x: list[Annotated[int, Field(ge=0)]]) -> list[int]:
    return x


def types_bounds(x: Annotated[int, Ge(1), Le(9)], y: Annotated[float, Gt(0), Lt(2)] = 1.0) -> float:
    return x + y


def types_interval(x: Annotated[int, Interval(ge=0, lt=8)]) -> int:
    return x


def types_multiple(x: Annotated[int, MultipleOf(3)]) -> int:
    return x


def types_lengths(x: Annotated[list[str], MinLen(1), MaxLen(2)], y: Annotated[str, Len(1, 3)] = "a") -> list[str]:
    return [*x, y]


def types_by_module(x: Annotated[int, annotated_types.Gt(4)]) -> int:
    return x


def constraints(x: Annotated[str, StringConstraints(min_length=1, pattern="^[a-z]*$")]) -> str:
    return x


def con_types(x: conint(ge=1, le=3), y: constr(min_length=1) = "y", z: conlist(int, max_length=2) = ()) -> int:
    return x


def constant_bound(x: Annotated[int, Field(ge=LEAST)] = LEAST) -> int:
    return x


def through_alias(x: Short, y: list[Short] = []) -> Short:
    return x


def twice(x: Annotated[Annotated[int, Ge(1)], Le(4)]) -> int:
    return x


def field_as_default(y: str = Field(max_length=2), x: int = Field(5, ge=1, le=9, description="From one to nine.")) -> str:
    return f"{x} {y}"


def validated_after(x: Annotated[int, AfterValidator(abs)]) -> int:
    return x


def validated_before(x: Annotated[int, BeforeValidator(_counted)]) -> int:
    return x


def decimal_bound(x: Annotated[float, Field(ge=0.5, le=2.5)]) -> float:
    return x
