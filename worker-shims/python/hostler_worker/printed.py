"""What a program prints on standard output, as the result of a call."""

import sys
from io import BytesIO, TextIOWrapper
from threading import Lock

from .encode import ToolFailed

_TAIL = 2000  # characters of standard error in a message
_printing = Lock()  # standard output and the arguments are the process's


class Printed:
    """While it is entered, standard output is collected, one program at a time."""

    def __enter__(self):
        _printing.acquire()
        self._out, self._errors = _Bytes(), _Errors(sys.stderr)
        self._before = sys.stdout, sys.stderr
        sys.stdout = TextIOWrapper(self._out, "utf-8", newline="\n", write_through=True)
        sys.stderr = self._errors
        return self

    def __exit__(self, kind, error, traceback):
        sys.stdout, sys.stderr = self._before
        if kind is not None:
            sys.stdout.write(self._out.getvalue().decode("utf-8", "replace"))  # then it is no result, but output like any other
        _printing.release()

    def text(self):
        text = self._out.getvalue().decode("utf-8", "replace")
        return text[:-1] if text.endswith("\n") else text

    def failed(self, why):
        """The failure of a program, with what it said last."""
        said = self._errors.tail.strip() or self.text()[-_TAIL:]
        return ToolFailed(why + (": " + said if said else ""))

    def ended(self, status):
        """What it means that a program ended with this status: `sys.exit(status)`."""
        if status is None or status == 0:
            return
        if isinstance(status, int):
            raise self.failed("it ended with exit status %d" % status) from None
        raise ToolFailed(str(status)) from None


class _Bytes(BytesIO):
    def fileno(self):
        return 2  # so that subprocess accepts the stream

    def close(self):
        pass  # a program may close what it was given


class _Errors:
    """Standard error as it was, whose end is remembered."""

    def __init__(self, stream):
        self._stream = stream
        self.tail = ""

    def write(self, text):
        self.tail = (self.tail + text)[-_TAIL:]
        return self._stream.write(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)
