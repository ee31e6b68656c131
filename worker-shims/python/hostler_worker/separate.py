"""sys.stdout and sys.stderr where several calls run at once: each writes to streams of its own, so that no line is made of
two calls' pieces and every frame says whose it is."""

import io
import sys

from .output import Raw, streams
from .running import current
from .state import state


class _CallRaw(Raw):
    call_id = None  # else it would be that of whoever happens to flush

    def __init__(self, name, id):
        super().__init__(name)
        self.call_id = id


class _Own:
    """Finds the stream of the call whose code is running; outside of calls, the worker's."""

    def __init__(self, name, outside):
        self.name, self.outside = name, outside

    def text(self):
        call = current.get()
        if call is None:
            return self.outside
        stream = call.streams.get(self.name)
        if stream is None:
            stream = call.streams.setdefault(self.name, streams.make(_CallRaw(self.name, call.id)))
        return stream


class _Kept:
    """What a stream says of itself that goes where errors go, and that no tool can close."""

    def writable(self):
        return True

    def fileno(self):
        return 2

    def close(self):
        self.flush()


class _Buffer(_Kept, io.BufferedIOBase):
    def __init__(self, own):
        self._own = own

    @property
    def raw(self):
        return self._own.text().buffer.raw

    def write(self, data):
        return self._own.text().buffer.write(data)

    def flush(self):
        self._own.text().buffer.flush()

    def detach(self):
        self.flush()
        return self.raw


class _Text(_Kept, io.TextIOBase):
    mode = "w"
    encoding = "utf-8"
    errors = "backslashreplace"
    line_buffering = True

    def __init__(self, own):
        self._own = own
        self.name = own.outside.name
        self.buffer = _Buffer(own)

    def write(self, text):
        return self._own.text().write(text)

    def flush(self):
        self._own.text().flush()

    def reconfigure(self, **options):
        self._own.text().reconfigure(**options)

    def detach(self):
        self.flush()
        return self.buffer


def install():
    """Before the tool file is imported: loggers keep the stream they find."""
    streams.stdout, streams.stderr = (
        _Text(_Own(name, stream)) for name, stream in (("stdout", streams.stdout), ("stderr", streams.stderr)))
    sys.stdout = sys.__stdout__ = streams.stdout
    sys.stderr = sys.__stderr__ = streams.stderr


def end_call(call):
    """Everything the call printed goes out before its answer."""
    mine = call.streams.copy().values()  # a thread that the call left running may yet begin another
    replaced = [stream for stream in (sys.stdout, sys.stderr) if stream not in (streams.stdout, streams.stderr)]
    for stream in (*replaced, *mine):
        try:
            stream.flush()
        except BaseException:
            if state.terminating:
                raise  # else it is the tool's, and broken
    for stream in mine:
        stream.buffer.raw.finish()
