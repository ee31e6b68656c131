from typing import Annotated

from mcp.server.fastmcp import FastMCP

from post import FIELDS, Parcel
from post.sizes import *

mcp = FastMCP("parcels")


@mcp.tool()
def send(
    parcel: Parcel, to: str = FIELDS.to, speed: Speed = Speed.SLOW, count: Annotated[int, COUNT] = MOST // 10
) -> Parcel:
    """Send a parcel."""
    return parcel.model_copy(update={"label": f"{to} {speed.value} {count}"})


@mcp.tool()
def weigh(parcel: Parcel, unit: str = UNIT, rounds: int = COUNT) -> float:
    return parcel.weight * rounds
