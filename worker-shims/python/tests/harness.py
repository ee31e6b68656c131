"""A host in forty lines: starts real shim processes and talks to them over pipes."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

SHIM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
PYTHON = os.environ.get("SHIM_PYTHON", sys.executable)  # run the same tests on another interpreter
LIMIT = 20  # seconds until a silent worker fails its test


class Worker:
    def __init__(self, path, cwd):
        self.process = subprocess.Popen(
            [PYTHON, "-I", SHIM, path], cwd=cwd, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.buffer = b""
        self.count = 0
        self.signalled = False  # a cancel with its signal is unanswered
        self.notes = []  # notifications in the order they came

    def write(self, *messages):
        data = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view):]

    def line(self):
        fd = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            patience = time.monotonic() + LIMIT
            while not select.select([fd], [], [], 0.1)[0]:
                if time.monotonic() > patience:
                    raise AssertionError("the worker says nothing")
                if self.signalled:  # as the host does: a signal just before a system call is lost to it
                    os.kill(self.process.pid, signal.SIGUSR1)
            data = os.read(fd, 1 << 20)
            if not data:
                raise EOFError
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def read(self):
        """The next message that is not a notification; those are kept in `notes`."""
        while True:
            message = json.loads(self.line())
            if "method" in message and "id" not in message:
                self.notes.append(message)
            else:
                self.signalled = False
                return message

    def note(self, text):
        """Wait for an output notification with this text: the tool says where it is."""
        while not any(text in note["params"].get("text", "") for note in self.notes):
            message = json.loads(self.line())
            assert "method" in message, message
            self.notes.append(message)

    def hello(self, **params):
        self.write({"id": 0, "method": "hello", "params": {"protocol": 1, **params}})
        return self.read()

    def begin(self, function, kwargs=None, **params):
        self.count += 1
        self.write({"id": self.count, "method": "call", "params": {
            "function": function, "kwargs": kwargs or {}, "config": {}, "secrets": {},
            "call": {"id": "c%d" % self.count, "deadline_ms": 1000, "trace": None, "tags": []}, **params}})
        return self.count

    def call(self, function, kwargs=None, **params):
        id = self.begin(function, kwargs, **params)
        answer = self.read()
        assert answer["id"] == id, answer
        return answer

    def cancel(self, id, signalled=True):
        self.write({"method": "cancel", "params": {"id": id}})
        if signalled:
            os.kill(self.process.pid, signal.SIGUSR1)
            self.signalled = True

    def printed(self, stream="stdout"):
        return "".join(note["params"]["text"] for note in self.notes
                       if note["method"] == "output" and note["params"]["stream"] == stream)

    def end(self):
        """Close stdin; (exit status, all of stderr)."""
        self.process.stdin.close()
        err = self.process.stderr.read().decode()
        return self.process.wait(LIMIT), err


class ShimTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def file(self, source, name="tool.py"):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = source if isinstance(source, bytes) else textwrap.dedent(source).encode()
        with open(path, "wb") as file:
            file.write(data)
        return path

    def start(self, path):
        worker = Worker(path, self.folder)
        self.addCleanup(self.stop, worker)
        return worker

    def worker(self, source, name="tool.py", **hello):
        worker = self.start(self.file(source, name))
        answer = worker.hello(**hello)
        self.assertIn("result", answer, answer)
        return worker

    @staticmethod
    def stop(worker):
        worker.process.kill()
        worker.process.wait()
        for pipe in (worker.process.stdin, worker.process.stdout, worker.process.stderr):
            pipe.close()

    def fault(self, answer, code, *words):
        self.assertIn("error", answer, answer)
        self.assertEqual(answer["error"]["code"], code, answer)
        for word in words:
            self.assertIn(word, answer["error"]["message"])
        return answer["error"]
