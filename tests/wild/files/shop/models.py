from pydantic import BaseModel, Field


class Order(BaseModel):
    item: str = Field(description="What.")
    many: int = 1
