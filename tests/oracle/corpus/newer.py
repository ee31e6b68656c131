# /// script
# requires-python = ">=3.12"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""What Python 3.12 can write. Each function has its twin, written the older way, in names.py or plain.py."""

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
