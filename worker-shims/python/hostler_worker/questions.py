"""What tools ask of the host where several calls run at once: each question waits for its own answer."""

from _thread import allocate_lock, get_ident

from .running import current
from .state import state
from .wire import wire


class _Question:
    __slots__ = ("call", "answer", "lock")

    def __init__(self, call):
        self.call, self.answer = call, None
        self.lock = allocate_lock()
        self.lock.acquire()

    def settle(self, answer):
        if self.answer is None:
            self.answer = answer
        try:
            self.lock.release()
        except RuntimeError:
            pass  # it was settled already


class Questions:
    def __init__(self, advance):
        self._advance = advance  # begins what has arrived
        self._open = {}

    def ask(self, key, frame):
        """The answer to a request of a tool, or None when its call was cancelled."""
        call = current.get()
        question = self._open[key] = _Question(call)
        try:
            wire.send(frame)
            if get_ident() != state.main:
                if not call.cancel:  # looked at once it can be found: whoever cancels sees it
                    question.lock.acquire()
            else:  # the loop stands still meanwhile, so what it would read is read here
                while question.lock.locked() and not call.cancel:
                    self._wait()
            return question.answer
        finally:
            del self._open[key]

    def _wait(self):
        state.guard += 1  # no signal comes in between: it would read too
        try:
            wire.wait()
            self._advance()
        finally:
            state.guard -= 1

    def replied(self, id, message):
        question = self._open.get(id)  # the thread that asked may withdraw it at any moment
        if question is not None:
            question.settle(message)

    def drop(self, call):
        """Nothing of a call waits for the host any longer."""
        for question in list(self._open.values()):
            if question.call is call:
                question.settle(None)
