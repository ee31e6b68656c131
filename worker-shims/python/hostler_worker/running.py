"""The calls of a worker that runs several at once. Which of them a piece of code works for, its context says."""

from _thread import RLock, get_ident
from contextvars import ContextVar

from .interrupt import Cancelled
from .state import State, state

current = ContextVar("hostler_call", default=None)


class Call:
    """One call, from its beginning to its answer."""

    __slots__ = ("id", "params", "function", "kwargs", "lock", "thread", "task", "cancel", "raised", "streams", "ended")

    def __init__(self, id, params, function, kwargs):
        self.id, self.params, self.function, self.kwargs = id, params, function, kwargs
        self.lock = RLock()  # held to begin, to end, to send and to break off; by a destructor within one of them too
        self.thread = None  # that runs the function, as long as it does
        self.task = None  # likewise, of an async one
        self.cancel = False  # the host wants it to stop
        self.raised = False  # ... and it was told so; it is told once
        self.streams = {}  # what it printed and did not flush, by stream
        self.ended = False

    def enter(self):
        """The function begins on this thread; False when it must not any more."""
        with self.lock:
            if not self.cancel:
                self.thread = get_ident()
            return not self.cancel

    def leave(self):
        """The function has ended. Should what was raised not have reached it yet, it is taken back: here it would cost the
        answer."""
        with self.lock:
            self.thread = None
        if self.raised:
            _raise_in(get_ident(), None)

    def stop(self):
        """On the main thread: tells it, by the means there are, that nobody wants it any more."""
        self.cancel = True
        if self.raised:
            return
        if self.task is not None:
            self.raised = True
            self.task.cancel()
            return
        with self.lock:
            if self.thread is not None:
                self.raised = True
                _raise_in(self.thread, Cancelled)

    def end(self):
        """Its answer is made: what holds for a call only holds no longer, whatever it has left running."""
        self.ended = True
        self.params = None


def _raise_in(thread, kind):
    """Have an exception raised at the thread's next step in Python, or none. It ends no system call."""
    try:
        import ctypes
    except ImportError:  # then hostler stops the worker when its other calls have ended
        return
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind))


class Several(State):
    """The state of a worker whose calls are told apart by context. What is all its calls' own is as it was."""

    __slots__ = ()
    several = True
    where = ("inside the function; a thread that the function starts knows of the call when it is started by "
             "asyncio.to_thread, or runs contextvars.copy_context().run")

    @property
    def call_id(self):
        call = current.get()
        return None if call is None or call.ended else call.id

    @property
    def params(self):
        call = current.get()
        return None if call is None else call.params


def tell_apart():
    state.__class__ = Several
