"""The protocol's two file descriptors: taking them, framing, parsing. No meaning of any message."""

import os
import select
from _thread import allocate_lock, get_ident

try:
    # json.loads and json.dumps, without the 6 ms that importing `json` (and with it `re` and
    # `enum`) takes at start, and without their per-call wrapping.
    from _json import encode_basestring as quote, make_scanner
except ImportError:  # an interpreter without the accelerator
    from json.encoder import encode_basestring as quote
    from json.scanner import make_scanner

_SMALL = 65536  # below malloc's mmap threshold
_TURN = 0.05  # seconds until a thread looks again whether another one still reads
_LARGE = 1 << 20  # once a message has proved to be longer than one read


class Gone(Exception):
    """The host closed its end."""


def _no_constant(name):
    raise ValueError(name + " is not JSON")


class _Options:
    """What the scanner reads from its decoder."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_no_constant)
    memo = {}


_scan = make_scanner(_Options())


def parse(line):
    """One line of bytes to a value; ValueError when it is not JSON."""
    text = line.decode()
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        text = text.strip()
        try:
            value, end = _scan(text, 0)
        except StopIteration as stop:
            raise ValueError("no JSON value at character %s" % stop.value) from None
    if end != len(text) and text[end:].strip():
        raise ValueError("more text after the JSON value, at character %d" % end)
    return value


def id_text(id):
    """A JSON-RPC id as JSON."""
    if type(id) is int:
        return str(id)
    if isinstance(id, str):
        return quote(id)
    return "null"


class Wire:
    def __init__(self):
        # Private, non-inheritable copies; then 0 is empty and 1 is stderr, so that print at C
        # level, children and input() never touch the protocol.
        self.source = os.dup(0)
        self.sink = os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        for fd in (self.source, self.sink):
            os.set_blocking(fd, True)
        self.lock = allocate_lock()
        self.reading = allocate_lock()  # held to read: threads that ask read too
        self.reads = 0
        self.late = {}  # by thread: what is still to be written of what it sends
        self.torn = False
        self.forked = False
        self.eof = False
        self.chunks = []  # the beginning of a message whose end has not come
        self.size = _SMALL
        self.receive = None  # set by the loop: takes one parsed message
        self._poll = select.poll()
        self._poll.register(self.source, select.POLLIN)

    def send(self, data):
        """Write whole frames, from any thread. The collector may run a destructor in the midst of it, and that may print: a
        frame of the same thread waits behind the one under way."""
        me = get_ident()
        late = self.late.get(me)
        if late is not None:
            late.append(data)
            return
        self.late[me] = late = [data]
        try:
            with self.lock:
                while late:
                    self._write(late.pop(0))
        finally:
            del self.late[me]
        while late:  # it came after the last look
            self.send(late.pop(0))

    def _write(self, data):
        """Short writes are continued."""
        if self.torn:  # SIGTERM came out of an earlier write: end that line first
            data = b"\n" + data
        self.torn = True
        sent = os.write(self.sink, data)
        if sent != len(data):
            rest = memoryview(data)[sent:]
            while rest:
                rest = rest[os.write(self.sink, rest):]
        self.torn = False

    def wait(self):
        """Block until something has arrived, and take it in, here or on another thread."""
        if self.eof:
            raise Gone
        before = self.reads
        if self.reading.acquire(False) or self.reading.acquire(True, _TURN):
            try:
                if self.reads == before:
                    self._feed(os.read(self.source, self.size))
            finally:
                self.reading.release()
        if self.eof:
            raise Gone

    def take_in(self):
        """Take in what has arrived, without blocking. A thread that reads meanwhile takes it in itself."""
        if not self.reading.acquire(False):
            return
        try:
            while not self.eof and self._poll.poll(0):
                self._feed(os.read(self.source, self.size))
        finally:
            self.reading.release()

    def _feed(self, data):
        self.reads += 1
        if not data:
            self.eof = True
            return
        end = data.rfind(b"\n")
        if end < 0:
            self.chunks.append(data)
            self.size = _LARGE
            return
        if self.chunks:
            self.chunks.append(data[:end])
            whole = b"".join(self.chunks)
            self.chunks.clear()
            self.size = _SMALL
        else:
            whole = data[:end]
        if end + 1 != len(data):
            self.chunks.append(data[end + 1:])
        for line in whole.split(b"\n") if b"\n" in whole else (whole,):
            self._line(line)

    def _line(self, line):
        try:
            message = parse(line)
        except (ValueError, RecursionError) as error:
            if line.strip():
                self.fail(None, -32700, "not JSON: " + str(error))
            return
        self.receive(message)

    def fail(self, id, code, message):
        """An error reply without data."""
        text = '{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}\n'
        self.send((text % (id_text(id), code, quote(message))).encode("utf-8", "replace"))

    def after_fork(self):
        """A forked child must neither write to the protocol nor hold off its end."""
        if self.forked:  # a child's child
            return
        self.forked = True
        os.close(self.source)
        os.close(self.sink)
        self.source = self.sink = -1
        # Another thread may have been sending or reading.
        self.lock, self.late, self.reading = allocate_lock(), {}, allocate_lock()


wire = Wire()
