"""hostler as a pipe sees it: lines in, lines out, processes and exit statuses. For what a well-behaved client never does."""

import contextlib
import json
import os
import select
import socket
import subprocess
import time

import shared_mode
from harness import HOSTLER, META, PATIENCE, ROOT, TOOLS, environment, supervisor

REVISION = "2025-11-25"
HELLO = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}

# What every request of a session without a handshake carries.
INLINE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def line(**message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def request(number, method, /, **params):
    return line(id=number, method=method, params=params)


def call(number, name, progress=None, /, **arguments):
    meta = {"_meta": {"progressToken": progress}} if progress is not None else {}
    return request(number, "tools/call", name=name, arguments=arguments, **meta)


OPENING = request(0, "initialize", **HELLO) + line(method="notifications/initialized")


class Wire:
    """A hostler on pipes or sockets."""

    def __init__(self, *tools, env=None, sockets=False, arguments=(), cwd=None, before=(), program=(HOSTLER,)):
        words = [*before, *program, "serve", *shared_mode.words(arguments), *arguments]
        env = env if env is not None else environment()
        if "--config" in arguments:
            env = shared_mode.limited(env, arguments[arguments.index("--config") + 1])
        for folder in tools or (TOOLS,):
            words += ["--tools", str(folder)] if folder else []  # None: the usual ones
        if sockets:  # as Node does it: one socket pair for each stream
            self.input, theirs_in = socket.socketpair()
            self.output, theirs_out = socket.socketpair()
        else:
            reader, writer = os.pipe()
            theirs_in, self.input = os.fdopen(reader, "rb", 0), os.fdopen(writer, "wb", 0)
            reader, writer = os.pipe()
            self.output, theirs_out = os.fdopen(reader, "rb", 0), os.fdopen(writer, "wb", 0)
        self.process = subprocess.Popen(
            words, env=env, cwd=cwd or ROOT, start_new_session=True,
            stdin=theirs_in.fileno(), stdout=theirs_out.fileno(), stderr=subprocess.PIPE)
        theirs_in.close()
        theirs_out.close()
        self.buffer = b""
        self.notes = []
        self.shared = None
        if "--shared" in words and "--shared" not in arguments:
            try:
                self.shared = shared_mode.wait_attached(self.process.pid, env)
            except BaseException:
                self.__exit__()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.input.close()
        self.output.close()
        self.process.stderr.close()

    @property
    def supervisor(self):
        """The process that serves; the one that was started is its keeper, or attached to it."""
        return self.shared or supervisor(self.process.pid)

    def send(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.input.fileno(), view):]

    def end_input(self):
        self.input.close()

    def read(self):
        """The next message of any kind; None at the end."""
        while b"\n" not in self.buffer:
            if not select.select([self.output], [], [], PATIENCE)[0]:
                raise AssertionError("hostler says nothing")
            data = os.read(self.output.fileno(), 1 << 20)
            if not data:
                assert not self.buffer, self.buffer
                return None
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(text)

    def answer(self, number):
        """The answer to one request, also one that came already; messages that come before it are kept."""
        for place, note in enumerate(self.notes):
            if note.get("id") == number and "method" not in note:
                return self.notes.pop(place)
        while True:
            message = self.read()
            if message is None:
                raise EOFError(f"no answer to {number}; notes: {self.notes}")
            if message.get("id") == number and "method" not in message:
                return message
            self.notes.append(message)

    def until(self, method):
        """The next notification of a kind, also one that came already; those before it are kept."""
        for place, note in enumerate(self.notes):
            if note.get("method") == method:
                return self.notes.pop(place)
        while True:
            message = self.read()
            if message is None:
                raise EOFError(f"no {method}; notes: {self.notes}")
            if message.get("method") == method:
                return message
            self.notes.append(message)

    def open(self):
        self.send(OPENING)
        return self.answer(0)

    def value(self, number, name, /, **arguments):
        self.send(call(number, name, **arguments))
        result = self.answer(number)["result"]
        assert not result.get("isError"), result
        return result["structuredContent"]["result"] if set(result["structuredContent"]) == {"result"} else result["structuredContent"]

    def fault(self, number, name, /, **arguments):
        """What a call that fails tells the model."""
        self.send(call(number, name, **arguments))
        result = self.answer(number)["result"]
        assert result.get("isError"), result
        return result["content"][0]["text"]

    def worker(self, number, name, /, **arguments):
        """Makes a call and says who answered it."""
        self.send(call(number, name, **arguments))
        return self.answer(number)["result"]["_meta"][META]["metadata"]["worker"]

    def began(self, number, name, /, **arguments):
        """Sends a call and waits until the tool says that it runs. Gives the numbers it said: worker, children."""
        self.send(call(number, name, number, **arguments))
        while True:
            message = self.read()
            text = (message.get("params") or {}).get("message") or ""
            if text.startswith("began "):
                return [int(word) for word in text.split()[1:]]
            assert message.get("id") != number, message

    def ended(self, limit):
        """Waits for the end of hostler; gives its exit status and how long it took."""
        began = time.monotonic()
        status = self.process.wait(timeout=PATIENCE)
        took = time.monotonic() - began
        assert took <= limit, f"hostler took {took:.2f} s to end, allowed are {limit} s"
        return status

    def stderr(self):
        return self.process.stderr.read().decode()

    def said(self):
        """What hostler has logged, of workers too: these may be shared, and so is the log of what they do."""
        return self.stderr() + shared_mode.log()
