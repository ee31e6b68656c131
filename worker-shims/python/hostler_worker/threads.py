"""Threads for the functions that are not async: started as they are needed, and kept."""

import threading
from _queue import SimpleQueue

from .state import state


class Threads:
    def __init__(self, most, run):
        self.most = most
        self.run = run
        self.started = 0
        self.calls = set()  # begun and not done
        self.jobs = SimpleQueue()

    def put(self, context, call):
        """On the main thread only."""
        self.calls.add(call)
        if self.started < min(len(self.calls), self.most):
            self.started += 1
            # Daemons: an exit waits for none of them.
            threading.Thread(target=self._work, name="hostler-%d" % self.started, daemon=True).start()
        self.jobs.put((context, call))

    def _work(self):
        try:
            while True:
                context, call = self.jobs.get()
                context.run(self.run, call)
                del context, call  # what the call left lives no longer than it must
        except BaseException:
            if not state.terminating:  # then nobody is there to be told
                raise
