# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""Kinds of parameters, decorators, overloads."""

import functools
from typing import Any, Iterator, overload

from typing_extensions import NotRequired, TypedDict, Unpack


class Options(TypedDict):
    depth: int
    mode: NotRequired[str]


def _counted(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


def positional_only(a: int, b: str = "b", /, c: float = 1.0) -> str:
    return f"{a} {b} {c}"


def keyword_only(*, a: int, b: bool = False) -> int:
    return a


def further(a: int, **more: int) -> dict[str, int]:
    return {"a": a, **more}


def further_anything(**more: Any) -> dict:
    return more


def unpacked(x: int, **options: Unpack[Options]) -> dict[str, Any]:
    return {"x": x, **options}


def no_arguments() -> str:
    return "x"


@functools.lru_cache
def cached(x: int) -> int:
    return x


@_counted
def wrapped(x: int, y: list[str] = []) -> int:
    return x


@overload
def overloaded(x: int) -> int: ...
@overload
def overloaded(x: str) -> str: ...
def overloaded(x: int | str) -> int | str:
    return x


async def later(x: int) -> list[int]:
    return [x]


def yields(x: int) -> Iterator[int]:
    yield x


def many_defaults(a: int = 1, b: str = "b", c: list[int] = [1, 2], d: dict[str, int] = {"k": 1}, e: tuple[int, ...] = (1,), f: float = -0.5) -> int:
    return a


class Methods:
    def not_a_tool(self):
        """Only functions are tools."""
