from typing import TYPE_CHECKING, Optional

from mcp.types import Icon
from pydantic import BaseModel

if TYPE_CHECKING:
    from .sizes import Speed


class Parcel(BaseModel):
    weight: float
    label: str = ""
    icon: Optional[Icon] = None
