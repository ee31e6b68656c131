# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "attrs==25.4.0", "msgspec", "fastapi", "tzdata"]
# ///
"""Signatures of real tools: types, notes and results."""

from __future__ import annotations
import sys, enum, uuid, collections
from collections import deque
from dataclasses import dataclass, field
from datetime import *
from decimal import Decimal
from fractions import Fraction
from ipaddress import *
from pathlib import Path
from re import Pattern
from typing import *
from zoneinfo import ZoneInfo
from typing_extensions import TypedDict
import pydantic
from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints, JsonValue, constr, AliasChoices, OnErrorOmit
from pydantic.functional_validators import AfterValidator
from annotated_types import Predicate, Ge, Len
import attrs, msgspec
T = TypeVar("T")

def strip_c(x: Annotated[str, StringConstraints(strip_whitespace=True, min_length=2)]) -> str: return x
def lower_c(x: Annotated[str, StringConstraints(to_lower=True)]) -> str: return x
def constr_c(x: constr(strip_whitespace=True, to_upper=True, min_length=1)) -> str: return x

class Tags(RootModel):
    root: list[str]
def root_model(x: Tags) -> list[str]: return x.root
class Tags2(RootModel[list[int]]): pass
def root_model2(x: Tags2) -> list[int]: return x.root
def r_deque() -> deque[int]: return deque([1, 2])
def r_set() -> set[int]: return {3, 1, 2}
def r_frozen() -> frozenset[str]: return frozenset("ba")
def r_setlist() -> dict[str, set[int]]: return {"a": {2, 1}}

class TD(TypedDict):
    name: str
    count: NotRequired[int]
def td(x: TD) -> dict: return dict(x)
class Forbid(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
def forbid(x: Forbid) -> int: return x.a
class Ign(BaseModel):
    a: int
def ignore(x: Ign) -> int: return x.a
def jsonvalue(x: JsonValue) -> Any: return x
class Outer(BaseModel):
    class Inner(BaseModel):
        n: int
    inner: Inner
def nested(x: Outer) -> int: return x.inner.n
class Color(enum.Enum):
    RED = "r"
    CRIMSON = "r"
    BLUE = "b"
def alias_enum(x: Color) -> str: return x.name
if sys.version_info >= (3, 8):
    Num = int
else:
    Num = str
def guard(x: Num) -> str: return type(x).__name__
def dec_lim(x: Annotated[Decimal, Field(ge=1, max_digits=4, decimal_places=2)]) -> str: return str(x)
def dec(x: Decimal) -> str: return str(x)
def field_default(x: Annotated[int, Field(default=5)]) -> int: return x
def field_default2(x: Annotated[int, Field(description="d")] = 7) -> int: return x
def zone(x: ZoneInfo) -> str: return str(x)
def frac(x: Fraction) -> str: return str(x)
def cplx(x: complex) -> str: return str(x)
def ip4i(x: IPv4Interface) -> str: return str(x)
def ip6i(x: IPv6Interface) -> str: return str(x)
def url(x: pydantic.AnyUrl) -> str: return str(x)
def curl(x: "pydantic_core.Url") -> str: return str(x)
def patb(x: Pattern[bytes]) -> str: return type(x.pattern).__name__
def pats(x: Pattern[str]) -> str: return x.pattern
class Base(BaseModel):
    a: int
class Sub(Base):
    secret: str = "s"
def leak() -> Base: return Sub(a=1)
def leak_list() -> list[Base]: return [Sub(a=1)]
class NT(NamedTuple):
    a: int
    b: str = "x"
def nt(x: Optional[NT] = None) -> str: return repr(x)
class Box(BaseModel, Generic[T]):
    item: T
def box(x: Box[int]) -> str: return type(x.item).__name__
class Page(BaseModel, Generic[T]):
    items: list[T]
    total: int
def page() -> Page[int]: return Page[int](items=[1], total=1)
class Node(BaseModel):
    v: int
    kids: list[Node] = []
def node(x: Node) -> int: return x.v + sum(k.v for k in x.kids)
@dataclass
class DF:
    a: int = Field(ge=1, description="A")
    b: int = 2
def dcfield(x: DF) -> int: return x.a
def pred(x: Annotated[str, Predicate(str.islower)]) -> str: return x
def after(x: Annotated[int, AfterValidator(lambda v: v + 1)]) -> int: return x
def aliased(x: Annotated[int, Field(alias="theX")]) -> int: return x
class Up:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema
        return core_schema.no_info_after_validator_function(lambda v: v.upper(), core_schema.str_schema())
def custom(x: Up) -> str: return x
def omit(x: list[OnErrorOmit[int]]) -> list[int]: return x
def vtuple(x: tuple[str, Unpack[tuple[int, ...]], bool]) -> list: return list(x)
LIMIT = 10
def const(x: int = LIMIT) -> int: return x
@attrs.define
class At:
    a: int
    b: str = "q"
def att(x: At) -> str: return f"{x.a}{x.b}"
class Ms(msgspec.Struct):
    a: int
    b: str = "q"
def mss(x: Ms) -> str: return f"{x.a}{x.b}"
def opt_dt(x: Optional[datetime] = None) -> str: return repr(x)
def td2(x: timedelta) -> str: return str(x)
def uid(x: uuid.UUID) -> str: return str(x)
def lit(x: Literal["a", 1, None]) -> str: return repr(x)
def dictint(x: dict[int, str]) -> dict: return x
def seqd(x: Sequence[date]) -> list[str]: return [str(d) for d in x]
def byt(x: bytes) -> int: return len(x)
def nested_union(x: Union[int, list[Union[str, None]]]) -> Any: return x
def secret(x: pydantic.SecretStr) -> str: return x.get_secret_value()
def email(x: pydantic.PositiveInt) -> int: return x
from fastapi import Query, Body
def fq(x: int = Query(5, ge=1, description="qq")) -> int: return x
def fb(x: Annotated[int, Query(ge=1)] = 3) -> int: return x

class Cat(BaseModel):
    name: str
    lives: int = 9
class Dog(BaseModel):
    name: str
    breed: str = ""
def pets(x: list[Union[Cat, Dog]]) -> list[str]: return [type(pet).__name__ for pet in x]
class Figure(BaseModel):
    value: float
class Words(BaseModel):
    value: str
def kinds(x: Union[Figure, Words]) -> str: return repr(x.value)
def pos_or_date(x: Union[Annotated[int, Field(ge=1)], date]) -> str: return repr(x)
def quoted(x: "Union[Cat, Dogs]") -> str: return type(x).__name__
class Dogs(Dog):
    count: int
class Strictly(BaseModel):
    when: date = Field(strict=True)
    ids: set[int] = Field(default_factory=set, strict=True)
def strictly(x: Strictly) -> str: return f"{x.when!r} {x.ids}"
@pydantic.dataclasses.dataclass(config=pydantic.ConfigDict(strict=True))
class StrictData:
    when: date
    hidden: str = Field("h", exclude=True)
    @pydantic.computed_field
    def year(self) -> int: return self.when.year
def strict_data(x: StrictData): return x
def dates_of(x: dict[str, Union[datetime, date]]) -> list[str]: return [type(one).__name__ for one in x.values()]
def leak_seq() -> Sequence[Base]: return [Sub(a=1)]
def leak_map() -> "dict[str, list[Base]]": return {"x": [Sub(a=1)]}
def leak_pair() -> tuple[int, Base]: return 1, Sub(a=1)
def leak_either() -> Union[Cat, Base]: return Sub(a=1)
def leak_noted() -> Annotated[Base, "One."]: return Sub(a=1)
def leak_iterator() -> Iterator[Base]:
    yield Sub(a=1)
@dataclass
class Holder:
    base: Base
    n: int = 1
def leak_field() -> Holder: return Holder(Sub(a=1))
class Money:
    def __init__(self, cents): self.cents = cents
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema
        serialization = core_schema.plain_serializer_function_ser_schema(lambda money: money.cents)
        return core_schema.no_info_plain_validator_function(cls, serialization=serialization)
def money(x: Money): return [type(x).__name__, x]
def iterators(): return {"a": iter([1]), "b": map(str, [2]), "c": (n for n in [3])}
async def numbers_later() -> AsyncIterator[int]:
    async def numbers():
        yield 1
    return numbers()

class Animal(BaseModel):
    name: str
class Bark(Animal):
    bark: int = 1
def cut_either() -> Union[list[Bark], list[Animal]]: return [Bark(name="d")]
@dataclass
class Left:
    animal: Animal
    other: Optional[Right] = None
@dataclass
class Right:
    animal: Animal
    left: Union[Left, Right, None] = None
    both: list[Union[Left, Right]] = field(default_factory=list)
def cut_within() -> Left: return Left(Bark(name="a"), Right(Bark(name="b"), Left(Bark(name="c"))))
@dataclass
class Upload:
    data: bytes
    limit: int = None
def upload(x: Union[Upload, str]) -> str: return repr(x)
class Plus(BaseModel):
    a: int
    @classmethod
    def model_validate(cls, value, **more): return super().model_validate({"a": value["a"] + 100})
def plus(x: Plus) -> int: return x.a
