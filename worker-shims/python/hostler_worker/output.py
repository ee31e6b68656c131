"""sys.stdout and sys.stderr as `output` notifications, in exact order with the replies."""

import codecs
import io
import os
import sys
from _thread import get_ident
from fcntl import ioctl
from time import sleep

from .interrupt import leave, reset_in_child
from .state import state
from .wire import id_text, quote, wire

_FIONREAD = 0x4004667F if sys.platform == "darwin" else 0x541B  # `termios` has it, and costs an import
_NOTHING = bytes(4)
_PIECE = 65536  # characters of a frame: no print, however long, makes a frame the host refuses


def _guarded(method):
    """Hold cancellations off until the whole stack of buffers has returned. Raised in the middle,
    the buffer would believe its bytes unwritten and write them again."""

    def run(self, *args):
        if get_ident() != state.main:
            return method(self, *args)
        state.guard += 1
        try:
            return method(self, *args)
        finally:
            leave()

    return run


class Raw(io.RawIOBase):
    def __init__(self, name):
        self.name = "<%s>" % name
        self._stream = name
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def call_id(self):
        return state.call_id

    def writable(self):
        return True

    def fileno(self):
        return 2  # so that subprocess accepts the stream

    @_guarded
    def write(self, data):
        data = bytes(data)
        if wire.forked:
            return os.write(2, data)
        self._send(self._decoder.decode(data))
        return len(data)

    def close(self):
        pass  # see _Buffer

    def finish(self):
        """A character cut by the end of the call will not be completed."""
        self._send(self._decoder.decode(b"", True))

    def _send(self, text):
        head = '{"jsonrpc":"2.0","method":"output","params":{"id":%s,"stream":"%s","text":' % (
            id_text(self.call_id), self._stream)
        for start in range(0, len(text), _PIECE):
            frame = head + quote(text[start:start + _PIECE]) + "}}\n"
            try:
                wire.send(frame.encode("utf-8", "replace"))
            except OSError:
                return  # nobody is there to read it; the loop notices by itself


class _Buffer(io.BufferedWriter):
    def write(self, data):
        streams.dirty = True
        return self._write(data)

    _write = _guarded(io.BufferedWriter.write)
    flush = _guarded(io.BufferedWriter.flush)

    # What a tool wraps around a buffer closes it when it is collected, and the buffer closes what is
    # below. The next call prints here too, so nothing of ours is ever closed or taken apart.
    def close(self):
        self.flush()

    def detach(self):
        self.flush()
        return self.raw


class _Text(io.TextIOWrapper):
    def write(self, text):
        streams.dirty = True
        return self._write(text)

    _write = _guarded(io.TextIOWrapper.write)
    flush = _guarded(io.TextIOWrapper.flush)

    def close(self):
        self.flush()

    def detach(self):
        self.flush()
        return self.buffer


class _Streams:
    dirty = False  # something may be buffered; saves the flush of every quiet call

    def install(self):
        self.raws = Raw("stdout"), Raw("stderr")
        self.stdout, self.stderr = map(self.make, self.raws)
        sys.stdout = sys.__stdout__ = self.stdout
        sys.stderr = sys.__stderr__ = self.stderr
        os.register_at_fork(before=self.flush, after_in_child=_after_fork)

    @staticmethod
    def make(raw):
        return _Text(_Buffer(raw), "utf-8", "backslashreplace", line_buffering=True)

    def flush(self):
        self.dirty = False
        # First what a tool put in the place of ours: it may write to them.
        for stream in (sys.stdout, sys.stderr, self.stdout, self.stderr):
            try:
                stream.flush()
            except BaseException:
                if state.terminating:
                    raise  # else it is the tool's, and broken

    def may_hold_something(self):
        """Whether anything may be buffered. Of a stream that is not ours nobody knows."""
        return self.dirty or sys.stdout is not self.stdout or sys.stderr is not self.stderr

    def end_call(self):
        """Everything the call printed goes out before its answer."""
        self.flush()
        for raw in self.raws:
            raw.finish()


def _after_fork():
    wire.after_fork()
    reset_in_child()
    # New objects: another thread may have held the old ones' locks at the fork.
    for name in ("stdout", "stderr"):
        stream = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, "__%s__" % name, stream)


_LOOK = 0.0005
_patient = True


def wait_until_read():
    """Wait until the host has read what went to fd 2 past these streams, from C or from children.
    It comes by another pipe than the answer; read before the answer is sent, it belongs to this call
    for certain. A busy host may need a moment; a child that writes on and on holds up one answer for
    a quarter of a second, and the next ones for 20 ms, for as long as the pipe is never empty."""
    global _patient
    try:
        if ioctl(2, _FIONREAD, _NOTHING) == _NOTHING:
            _patient = True
            return
    except OSError:
        return  # the tool closed fd 2, or put something else there
    for pause in until_read():
        sleep(pause)


def until_read():
    """The pauses to make until then."""
    global _patient
    try:
        for _ in range(500 if _patient else 40):
            if ioctl(2, _FIONREAD, _NOTHING) == _NOTHING:
                _patient = True
                return
            yield _LOOK
        _patient = ioctl(2, _FIONREAD, _NOTHING) == _NOTHING
    except OSError:
        pass


streams = _Streams()
