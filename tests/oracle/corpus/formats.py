# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic==2.14.3", "typing_extensions"]
# ///
"""Values that JSON writes as text of some form."""

import datetime as dt
import ipaddress
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Annotated
from uuid import UUID

from pydantic import AnyUrl, EmailStr, Field, HttpUrl, NonNegativeInt, PositiveFloat, PositiveInt, SecretStr, StrictInt, UUID4


def moment(x: datetime) -> datetime:
    return x


def day(x: date) -> date:
    return x


def clock(x: time) -> time:
    return x


def span(x: timedelta) -> timedelta:
    return x


def module_moment(x: dt.datetime | None = None) -> dt.datetime | None:
    return x


def identifier(x: UUID) -> UUID:
    return x


def decimal(x: Decimal) -> Decimal:
    return x


def decimal_bound(x: Annotated[Decimal, Field(ge=1)]) -> Decimal:
    return x


def path(x: Path) -> Path:
    return x


def pure_path(x: PurePosixPath) -> PurePosixPath:
    return x


def paths(x: list[Path], y: dict[str, Path] = {}) -> list[Path]:
    return x


def blob(x: bytes) -> bytes:
    return x


def url(x: AnyUrl) -> AnyUrl:
    return x


def http_url(x: HttpUrl) -> HttpUrl:
    return x


def address(x: ipaddress.IPv4Address) -> ipaddress.IPv4Address:
    return x


def address_6(x: ipaddress.IPv6Address) -> ipaddress.IPv6Address:
    return x


def expression(x: re.Pattern) -> str:
    return x.pattern


def positive(x: PositiveInt, y: NonNegativeInt = 0, z: PositiveFloat = 1.5) -> float:
    return x + y + z


def strict(x: StrictInt) -> int:
    return x


def uuid4(x: UUID4) -> UUID4:
    return x


def secret(x: SecretStr) -> str:
    return x.get_secret_value()


def days_by_name(x: dict[str, date]) -> dict[str, date]:
    return x


def moment_or_text(x: datetime | int) -> datetime | int:
    return x
