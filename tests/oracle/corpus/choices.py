# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""Literals and enumerations."""

from enum import Enum, Flag, IntEnum, StrEnum, auto
from typing import Literal, Optional


class Colour(Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"
    CRIMSON = "red"


class Level(IntEnum):
    LOW = 1
    MIDDLE = auto()
    HIGH = 10


class Word(StrEnum):
    YES = auto()
    NO = auto()


class Old(str, Enum):
    A = "a"
    B = "b"


class Mixed(Enum):
    ONE = 1
    TEXT = "text"
    NOTHING = None
    HALF = 0.5


class Pairs(Enum):
    NEAR = (0, 1)
    FAR = (5, 9)


class Bits(Flag):
    READ = 1
    WRITE = 2


class Computed(Enum):
    A = len("abc")
    B = 7


class Lenient(Enum):
    A = "a"

    @classmethod
    def _missing_(cls, value):
        return cls.A


class Base(str, Enum):
    pass


class Derived(Base):
    X = "x"
    Y = "y"


Size = Literal["s", "m"]


def literal(x: Literal["a", "b"]) -> Literal["a", "b"]:
    return x


def literal_numbers(x: Literal[1, -2, 3]) -> Literal[1, -2, 3]:
    return x


def literal_mixed(x: Literal["a", 1, True, None]) -> Literal["a", 1, True, None]:
    return x


def literal_one(x: Literal["only"] = "only") -> Literal["only"]:
    return x


def literal_nested(x: Literal[Literal["a"], Literal["b", "c"]]) -> str:
    return x


def literal_alias(x: Size, y: Literal[Size, "l"] = "l") -> Size:
    return x


def literal_of_enum(x: Literal[Colour.RED]) -> Literal[Colour.RED]:
    return x


def plain_enum(x: Colour) -> Colour:
    return x


def enum_default(x: Colour = Colour.BLUE, y: Level = Level.LOW) -> list[Colour | Level]:
    return [x, y]


def int_enum(x: Level) -> Level:
    return x


def str_enum(x: Word) -> Word:
    return x


def str_mixin(x: Old) -> Old:
    return x


def mixed_enum(x: Mixed) -> Mixed:
    return x


def tuple_enum(x: Pairs) -> Pairs:
    return x


def flag(x: Bits) -> Bits:
    return x


def computed_enum(x: Computed) -> Computed:
    return x


def lenient_enum(x: Lenient) -> Lenient:
    return x


def inherited_enum(x: Derived) -> Derived:
    return x


def list_of_enum(x: list[Colour], y: Optional[Level] = None) -> list[Colour]:
    return x

