from pydantic import Field

to = Field(description="The address.", min_length=3)
