"""What a program prints on standard output, as the result of a call. Programs run one at a time: standard output, the command line and
the working directory are the process's."""

import os
import sys
from io import BytesIO, RawIOBase, TextIOWrapper

from .encode import ToolFailed
from .state import state

_TAIL = 2000  # characters of standard error in a message


class _Raw(RawIOBase):
    """Where standard output goes: to the program that runs, or else to where it went before."""

    def __init__(self, stream):
        self.stream = stream
        self.buffer = None
        self.strangers = set()  # threads of earlier calls

    def writable(self):
        return True

    def fileno(self):
        return 2  # so that subprocess accepts the stream

    def write(self, data):
        if self.buffer is None or self.strangers and sys.modules["threading"].current_thread() in self.strangers:
            self.stream.write(bytes(data).decode("utf-8", "replace"))
            return len(data)
        return self.buffer.write(data)

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

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self._stream, name)


# For the worker's whole life: modules keep the streams that they find, such as `logging`.
_raw = _out = _errors = None


def _streams():
    global _raw, _out, _errors
    if _raw is None:
        _raw, _errors = _Raw(sys.stdout), _Errors(sys.stderr)
        _out = TextIOWrapper(_raw, "utf-8", errors="replace", newline="\n", write_through=True)
    return _out, _errors


class Printed:
    """While it is entered, standard output is collected."""

    def __enter__(self):
        if state.several:
            raise ToolFailed("programs and commands run one at a time; set `concurrency = 1`")
        sys.stdout, sys.stderr = _streams()
        self._threads = _threads()
        _errors.tail = ""
        _raw.buffer = BytesIO()
        return self

    def __exit__(self, kind, error, traceback):
        printed, _raw.buffer = _raw.buffer, None
        _raw.strangers = _threads()
        sys.stdout, sys.stderr = _streams()
        self._printed = printed.getvalue()
        if kind is not None:
            _raw.write(self._printed)  # then it is no result, but output like any other

    def finish(self):
        """Waits for what the program has started, as at the end of a process."""
        futures = sys.modules.get("concurrent.futures.thread")
        endless = getattr(futures, "_threads_queues", ())  # they end with the process
        for thread in _threads() - self._threads:
            if not thread.daemon and thread not in endless:
                thread.join()

    def text(self):
        data = self._printed if _raw.buffer is None else _raw.buffer.getvalue()
        text = data.decode("utf-8", "replace")
        return text[:-1] if text.endswith("\n") else text

    def failed(self, why):
        """The failure of a program, with the last that it said."""
        said = _errors.tail.strip() or self.text()[-_TAIL:]
        return ToolFailed(why + (": " + said if said else ""))

    def ended(self, status):
        """Raises the failure of a program that ended with this status: `sys.exit(status)`."""
        if status is None or status == 0:
            return
        if isinstance(status, int):
            raise self.failed("it ended with exit status %d" % status) from None
        raise ToolFailed(str(status)) from None


def _threads():
    """The other threads."""
    threading = sys.modules.get("threading")
    return set(threading.enumerate()) - {threading.current_thread()} if threading is not None else set()


class Surroundings:
    """What a program finds, and what is put back after it: arguments, working directory, variables, search path."""

    def __enter__(self):
        self._argv, self._stdin, self._main = sys.argv, sys.stdin, sys.modules.get("__main__")
        self._path, self._variables = list(sys.path), dict(os.environ)
        try:
            self._directory = os.getcwd()
        except OSError:
            self._directory = None

    def __exit__(self, kind, error, traceback):
        sys.argv, sys.stdin, sys.modules["__main__"] = self._argv, self._stdin, self._main
        sys.path[:] = self._path
        if dict(os.environ) != self._variables:
            os.environ.clear()
            os.environ.update(self._variables)
        if self._directory is not None:
            try:
                os.chdir(self._directory)
            except OSError:
                pass  # the program removed it
