"""Threads for the functions that are not async: started as they are needed, and kept."""

import os
import threading
from _queue import SimpleQueue

from .state import state


class Threads:
    def __init__(self, most, run):
        self.most = most
        self.run = run
        self.started = 0
        self.alive = set()
        self.calls = set()  # begun and not done
        self.jobs = SimpleQueue()

    def put(self, context, call):
        """On the main thread only."""
        self.calls.add(call)
        if len(self.alive) < min(len(self.calls), self.most):
            # Daemons: an exit waits for none of them.
            self.started += 1
            thread = threading.Thread(target=self._work, name="hostler-%d" % self.started, daemon=True)
            self.alive.add(thread)
            thread.start()
        self.jobs.put((context, call))

    def _work(self):
        try:
            while True:
                context, call = self.jobs.get()
                _name(b"call:%d" % call.id if type(call.id) is int else b"call")
                context.run(self.run, call)
                _name(b"idle")
                del context, call  # what the call left lives no longer than it must
        except BaseException:
            if not state.terminating:  # then nobody is there to be told
                raise
        finally:
            self.alive.discard(threading.current_thread())


def _name(name):
    """What the system calls this thread, by which hostler finds the one that it asks where it is."""
    try:
        # Not kept open: a tool that closes what it did not open would have another file under that number.
        file = os.open("/proc/thread-self/comm", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(file, name)
    finally:
        os.close(file)
