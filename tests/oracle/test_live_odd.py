"""Live types that go their own way: whatever they take or write besides their annotations stays open."""

import collections
import enum
import typing
import unittest

import pydantic
import worker  # noqa: F401  puts the shim on the path
from pydantic import BaseModel, BeforeValidator, Field, Json, OnErrorOmit, RootModel, SkipValidation, field_validator, model_validator

from formats import validator
from hostler_worker.convert import Mismatch
from hostler_worker.describe import GIVEN, RETURNED, Writer
from hostler_worker.encode import encode
from hostler_worker.types import Builder


class Km:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(lambda v: int(str(v).split()[0]), handler(source))


@pydantic.dataclasses.dataclass
class Distance:
    n: int

    @field_validator("n", mode="before")
    @classmethod
    def read(cls, value):
        return int(str(value).split()[0])


@pydantic.dataclasses.dataclass
class FromText:
    n: int

    @model_validator(mode="before")
    @classmethod
    def read(cls, value):
        return {"n": int(value)} if isinstance(value, str) else value


class Inner(BaseModel):
    inner: Distance


class WithJson(BaseModel):
    data: Json[list[int]]


class OwnInit(BaseModel):
    a: int
    b: int

    def __init__(self, text=None, **more):
        super().__init__(**(dict(zip("ab", text.split("x"))) if text else more))


class Lenient(BaseModel):
    xs: list[OnErrorOmit[int]]
    s: SkipValidation[int] = 3


class Numbers(RootModel[list[int]]):
    @field_validator("root", mode="before")
    @classmethod
    def read(cls, value):
        return value.split(",") if isinstance(value, str) else value


class Noted(RootModel[typing.Annotated[list[int], BeforeValidator(lambda v: v.split(","))]]):
    pass


class Road(BaseModel):
    length: typing.Annotated[int, Km()]


class Bare(BaseModel):
    t: typing.Tuple = ()


class Point(collections.namedtuple("Point", "x y")):
    def __new__(cls, x, y=0, **more):
        return super().__new__(cls, x, y)


class Loose(enum.EnumMeta):
    def __call__(cls, value, *more):
        return super().__call__(value.lower(), *more)


class Case(enum.Enum, metaclass=Loose):
    A = "a"


class Weird(str, enum.Enum):
    def __new__(cls, code, text):
        made = str.__new__(cls, text)
        made._value_ = code
        return made

    A = (1, "alpha")


class Short(BaseModel):
    a: int
    b: int = Field(default=0, exclude_if=lambda value: value == 0)


TAKEN = [
    (Distance, {"n": "5 km"}), (Inner, {"inner": {"n": "4 km"}}), (FromText, "7"), (WithJson, {"data": "[1,2]"}), (Json[list[int]], "[1,2]"),
    (Lenient, {"xs": [1, "x"], "s": "no"}), (Numbers, "1,2"), (Noted, "1,2"), (Road, {"length": "5 km"}), (Bare, {"t": [1, 2]}),
    (Point, {"x": 1}), (Point, [1]), (Case, "A"), (typing.Tuple, [1, 2]),
]
WRITTEN = [(Short, Short(a=1)), (Weird, Weird.A), (WithJson, WithJson(data="[1]")), (Distance, Distance(n=3)), (Inner, Inner(inner={"n": 3}))]


class Odd(unittest.TestCase):
    def admits(self, side, hint, value):
        writer = Writer(side, globals())
        schema = writer.whole(hint)
        return validator({**schema, "$defs": writer.definitions}).is_valid(value)

    def test_what_the_worker_takes_is_admitted(self):
        for hint, value in TAKEN:
            with self.subTest(hint=str(hint), value=value):
                convert = Builder(globals()).build(hint)
                try:
                    convert and convert(value, "x")
                except Mismatch as error:
                    self.fail(f"the worker does not take it: {error}")
                self.assertTrue(self.admits(GIVEN, hint, value))

    def test_what_the_worker_writes_is_promised(self):
        import json

        for hint, value in WRITTEN:
            with self.subTest(hint=str(hint)):
                self.assertTrue(self.admits(RETURNED, hint, json.loads(encode(value))), encode(value))

    def test_a_constructor_of_its_own_leaves_a_model_open(self):
        self.assertEqual(Writer(GIVEN, globals()).whole(OwnInit), {})


if __name__ == "__main__":
    unittest.main()
