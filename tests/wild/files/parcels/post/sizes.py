from enum import Enum

from pydantic import Field

MOST = 100
UNIT = "kg"
COUNT = Field(2, ge=1, le=MOST, description="How many.")


class Speed(str, Enum):
    SLOW = "slow"
    FAST = "fast"
