# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""The types that JSON has words for."""

from typing import Any, Optional, Union

MINUTE = 60
SIZE = (640, 480)

def text(x: str) -> str:
    return x


def whole(x: int) -> int:
    return x


def number(x: float) -> float:
    return x


def truth(x: bool) -> bool:
    return x


def nothing(x: None) -> None:
    return x


def anything(x: Any):
    return x


def unsaid(x, y=1):
    return [x, y]


def an_object(x: object):
    return x


def optional(x: Optional[int]) -> Optional[int]:
    return x


def optional_604(x: str | None = None) -> str | None:
    return x


def union(x: Union[int, str, None]) -> Union[int, str, None]:
    return x


def union_604(x: int | float | bool) -> int | float | bool:
    return x


def none_without_saying(x: int = None):
    return x


def computed_defaults(wait: int = 5 * MINUTE, limit: int = 1 << 20, share: float = 1 / 4, mark: str = "a" + "-"):
    return [wait, limit, share, mark]


def constant_tuple(size: tuple[int, int] = SIZE):
    return size


def empty_defaults(items: list = list(), options: dict = dict(), names: frozenset[str] = frozenset(), ids: set[int] = {1}):
    return sorted(names)
