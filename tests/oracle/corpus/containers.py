# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""Containers, nested and of fixed shape."""

import collections
import typing as t
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum
from typing import Dict, FrozenSet, List, Literal, Tuple

from typing_extensions import Unpack


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def bare_list(x: list) -> list:
    return x


def list_of_int(x: list[int]) -> list[int]:
    return x


def typing_list(x: List[str]) -> List[str]:
    return x


def nested(x: list[dict[str, list[int | None]]]) -> list[dict[str, list[int | None]]]:
    return x


def bare_dict(x: dict) -> dict:
    return x


def dict_of_float(x: Dict[str, float]) -> Dict[str, float]:
    return x


def dict_of_lists(x: dict[str, list[str]]) -> dict[str, list[str]]:
    return x


def int_keys(x: dict[int, str]) -> dict[int, str]:
    return x


def enum_keys(x: dict[Colour, int]) -> dict[Colour, int]:
    return x


def literal_keys(x: dict[Literal["a", "b"], int]) -> dict[Literal["a", "b"], int]:
    return x


def mapping(x: Mapping[str, int]) -> Mapping[str, int]:
    return x


def default_dict(x: defaultdict[str, int]) -> defaultdict[str, int]:
    return x


def ordered_dict(x: OrderedDict[str, int]) -> OrderedDict[str, int]:
    return x


def counter(x: Counter[str]) -> Counter[str]:
    return x


def pair(x: tuple[int, str]) -> tuple[int, str]:
    return x


def typing_tuple(x: Tuple[float, float, bool]) -> Tuple[float, float, bool]:
    return x


def any_length(x: tuple[int, ...]) -> tuple[int, ...]:
    return x


def empty_tuple(x: tuple[()]) -> tuple[()]:
    return x


def bare_tuple(x: tuple) -> tuple:
    return x


def open_ended(x: tuple[int, Unpack[tuple[str, ...]]]) -> tuple[int, Unpack[tuple[str, ...]]]:
    return x


def open_ended_star(x: tuple[int, *tuple[str, ...]]) -> tuple[int, *tuple[str, ...]]:
    return x


def a_set(x: set[int]):
    return sorted(x)


def frozen_set(x: FrozenSet[str]):
    return sorted(x)


def abstract_set(x: Set[int]):
    return sorted(x)


def sequence(x: Sequence[int]) -> Sequence[int]:
    return x


def sequence_of_texts(x: Sequence[str]) -> Sequence[str]:
    return x


def iterable(x: Iterable[int]):
    return list(x)


def a_deque(x: deque[int]):
    return list(x)


def typing_deque(x: t.Deque[str]):
    return list(x)


def rows(x: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return x


def list_of_sets(x: list[set[int]]):
    return [sorted(one) for one in x]


def generated(x: int) -> t.Iterator[int]:
    yield x


def list_or_int(x: list[int] | int) -> list[int] | int:
    return x
