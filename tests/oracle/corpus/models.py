# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""pydantic models of the file."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, field_serializer, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass

T = TypeVar("T")


class Unit(str, Enum):
    METRE = "m"
    FOOT = "ft"


class Item(BaseModel):
    """Something for sale."""

    name: str = Field(min_length=1, description="What it is called.")
    price: float = Field(gt=0)
    unit: Unit = Unit.METRE
    tags: list[str] = []
    note: Optional[str] = None


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: UUID
    items: list[Item] = Field(min_length=1)
    placed: datetime
    extra: dict[str, Any] = Field(default_factory=dict)


class Aliased(BaseModel):
    user_name: str = Field(alias="userName")
    age: Annotated[int, Field(ge=0, alias="userAge")] = 0
    city: str = Field("x", validation_alias="town")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)

    first_name: str
    last_name: str = ""
    plain: int = Field(1, alias="asis")


class Strict(BaseModel):
    model_config = {"strict": True, "extra": "forbid"}

    count: int
    when: datetime


class Keyword(BaseModel, extra="forbid"):
    a: int


class Open(BaseModel, extra="allow"):
    a: int


class Bound(BaseModel):
    few: Optional[int] = Field(None, ge=1, le=5)
    code: Annotated[str, Field(pattern="^[a-z]{2}$")] = "ab"
    maybe: Union[int, str] = 0
    span: timedelta = timedelta(seconds=1)
    amount: Decimal = Decimal(1)
    raw: bytes = b""


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(BaseModel):
    pet: Union[Cat, Dog] = Field(discriminator="kind")


class Lazy(BaseModel):
    kind: Literal["lazy"] = "lazy"


class Eager(BaseModel):
    kind: Literal["eager"] = "eager"


class Numbers(RootModel[list[int]]):
    pass


class Person(BaseModel):
    name: str
    friends: list["Person"] = []


class Employee(Person):
    salary: Annotated[int, Field(ge=0)]


class Page(BaseModel, Generic[T]):
    items: list[T]
    total: int


class Before(BaseModel):
    x: int

    @model_validator(mode="before")
    @classmethod
    def any_form(cls, data):
        return {"x": data} if isinstance(data, int) else data


class FieldBefore(BaseModel):
    x: int
    y: int = 0

    @field_validator("x", mode="before")
    @classmethod
    def any_form(cls, value):
        return len(value) if isinstance(value, str) else value


class FieldAfter(BaseModel):
    x: int

    @field_validator("x")
    @classmethod
    def even(cls, value):
        return value


class Shown(BaseModel):
    a: int
    secret: str = Field("s", exclude=True)
    when: datetime = datetime(2026, 1, 1)

    @computed_field
    @property
    def double(self) -> int:
        return self.a * 2

    @field_serializer("when")
    def year(self, when: datetime):
        return when.year


@dataclass
class Inner:
    n: int = 1


@dataclass
class Renamed:
    width: int = Field(alias="w", ge=0)
    height: Annotated[int, Field(alias="h")] = 2
    depth: int = Field(3, validation_alias="d")


class Place(NamedTuple):
    x: int
    y: int


class Mixed(BaseModel):
    inner: Inner
    place: Place = Place(0, 0)
    numbers: set[int] = set()
    pair: tuple[int, str] = (1, "a")


@pydantic_dataclass
class Checked:
    a: int
    b: Annotated[str, Field(max_length=2)] = "b"


def model(item: Item) -> Item:
    return item


def nested_model(order: Order) -> Order:
    return order


def optional_model(item: Item | None = None) -> Item | None:
    return item


def list_of_models(items: list[Item]) -> list[Item]:
    return items


def renamed(size: Renamed) -> int:
    return size.width


def aliases(aliased: Aliased) -> Aliased:
    return aliased


def alias_generator(camel: Camel) -> Camel:
    return camel


def strict_model(strict: Strict) -> Strict:
    return strict


def class_keyword(keyword: Keyword) -> Keyword:
    return keyword


def open_model(value: Open) -> Open:
    return value


def bounds(bound: Bound) -> Bound:
    return bound


def discriminated(pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]) -> Union[Cat, Dog]:
    return pet


def discriminated_field(owner: Owner) -> Owner:
    return owner


def discriminated_by_default(x: Annotated[Union[Lazy, Eager], Field(discriminator="kind")]) -> Union[Lazy, Eager]:
    return x


def plain_union(pet: Union[Cat, Dog]) -> Union[Cat, Dog]:
    return pet


def root_model(numbers: Numbers) -> Numbers:
    return numbers


def root_inline(numbers: RootModel[list[int]]) -> RootModel[list[int]]:
    return numbers


def recursive_model(person: Person) -> Person:
    return person


def inherited_model(employee: Employee) -> Employee:
    return employee


def generic_model(page: Page[int]) -> Page[int]:
    return page


def before(before: Before) -> Before:
    return before


def field_before(value: FieldBefore) -> FieldBefore:
    return value


def field_after(value: FieldAfter) -> FieldAfter:
    return value


def serialized(shown: Shown) -> Shown:
    return shown


def others_inside(mixed: Mixed) -> Mixed:
    return mixed


def checked_dataclass(checked: Checked) -> Checked:
    return checked
