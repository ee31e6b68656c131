"""
title: Weather
author: somebody
version: 0.1.0
requirements: pydantic, six
"""

import six
from pydantic import BaseModel, Field


class Tools:
    class Valves(BaseModel):
        unit: str = Field(default="C", description="C or F")

    def __init__(self):
        self.valves = self.Valves()
        self.citation = True

    def temperature(self, city: str) -> str:
        """
        Get the temperature.
        :param city: The name of the city.
        """
        return f"20 {self.valves.unit} in {city}"

    async def forecast(self, city: str, __user__: dict = {}, __event_emitter__=None) -> str:
        """Get the forecast."""
        if __event_emitter__:
            await __event_emitter__({"type": "status", "data": {"description": f"asking for {city}", "done": False}})
        return f"{city} for {__user__['role']}: {six.ensure_str('sun')}"


def parse(text):
    return text
