"""The trace context of the running call, in the environment of the programs that its tool starts.

`os.environ` has it during the call. The environment of the process, which C hands on, gets it when Python is about to start a
program: the C library keeps every value that a variable ever had, so a variable set for each call would leak a hundred bytes a
call. Programs that are started behind Python's back find none.
"""

import os
import sys

from .state import state

PARENT, STATE = b"TRACEPARENT", b"TRACESTATE"
STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system"))

_inherited = os.environb.get(PARENT), os.environb.get(STATE)
_exported = _inherited  # the values in the environment of the process
_view = getattr(os.environ, "_data", None)  # bytes to bytes
_is_late = type(_view) is dict
if _is_late:
    sys.addaudithook(lambda event, _arguments: export() if event in STARTS else None)
else:  # not CPython's mapping: both are set for each call
    _view = os.environb


def hand_on(call):
    """Programs that the tool starts during this call learn by their environment which span they belong to."""
    state.trace = span = call.get("trace")
    if isinstance(span, str):
        _view[PARENT] = span.encode()
        tracestate = call.get("tracestate")
        _put(STATE, tracestate.encode() if isinstance(tracestate, str) else None)
    else:
        _put(PARENT, _inherited[0])
        _put(STATE, _inherited[1])
    if _is_late and _exported is not _inherited:  # else what starts behind Python's back would have the span of another call
        _set(_inherited)


def export():
    """The environment of the process gets what the tool sees."""
    _set((_view.get(PARENT), _view.get(STATE)))


def _put(name, value):
    if value is not None:
        _view[name] = value
    elif name in _view:
        del _view[name]


def _set(values):
    global _exported
    for name, value, before in zip((PARENT, STATE), values, _exported):
        if value is None and before is not None:
            os.unsetenv(name)
        elif value != before:
            os.putenv(name, value)
    _exported = values
