"""What the adapters need of the running call: its id, and the settings of its tool."""

import hostler

from ..state import state


def call_id():
    return ((state.params or {}).get("call") or {}).get("id") or ""


class Settings:
    """`[tool.NAME.config]`, by attribute or by key."""

    def __getattr__(self, name):
        try:
            return hostler.config[name]
        except KeyError:
            raise AttributeError("`%s` is not set under `[tool.NAME.config]`" % name) from None

    __getitem__ = __getattr__
