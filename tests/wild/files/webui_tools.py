"""
title: Weather
author: somebody
version: 0.1.0
requirements: six
"""

import six
from fastapi.responses import HTMLResponse
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

    async def report(self, city: str, __event_emitter__=None):
        """Says its result."""
        await __event_emitter__({"type": "message", "data": {"content": f"{city}: "}})
        await __event_emitter__({"type": "message", "data": {"content": "sun"}})

    async def refuse(self, __event_emitter__=None) -> None:
        """Says why it fails."""
        await __event_emitter__({"type": "status", "data": {"status": "error", "description": "no such city", "done": True}})

    def page(self, city: str):
        """Makes a page."""
        return HTMLResponse(content=f"<b>{city}</b>"), "shown"


def parse(text):
    return text
