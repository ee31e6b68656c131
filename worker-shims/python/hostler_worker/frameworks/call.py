"""What the adapters need of the running call: its id, and the settings of its tool."""

import os

import hostler

from ..state import state


def settings_of_tool():
    """Where an operator sets what a framework's own program would give."""
    stem = os.path.splitext(os.path.basename(state.tool_file or "NAME"))[0]
    return "[tool.%s.config]" % stem.replace("-", "_")


def source():
    """The text of the tool file; empty where it is gone."""
    try:
        with open(state.source or state.tool_file, "rb") as file:
            return file.read()
    except OSError:
        return b""


def call_id():
    return ((state.params or {}).get("call") or {}).get("id") or ""


class Settings:
    """`[tool.NAME.config]`, by attribute or by key."""

    def __getattr__(self, name):
        try:
            return hostler.config[name]
        except KeyError:
            raise AttributeError("`%s` is not set under `%s`" % (name, settings_of_tool())) from None

    __getitem__ = __getattr__
