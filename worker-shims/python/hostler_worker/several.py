"""The worker's life where it runs several calls at once: async functions as tasks of one event loop on the main thread, which
reads the protocol too, and the others in threads. What a call is and how it is answered stands in `calls`."""

import asyncio
import os
import sys
import _signal
from concurrent.futures import ThreadPoolExecutor
from _thread import get_ident
from contextvars import copy_context

from . import calls, encode, faults, host, interrupt, making, separate
from .interrupt import Cancelled
from .loop import bounded, hello, queue, ready, receive, session_of, tell_types
from .output import streams
from .questions import Questions
from .running import Call, current, tell_apart
from .state import state
from .threads import Threads
from .wire import Wire, id_text, wire

_ASYNC = 0x80 | 0x200  # what is set on the code of `async def`, with `yield` and without


def prepare(concurrency):
    """Before the tool file is imported."""
    state.concurrency = concurrency
    # Threads that compute let the loop, which takes in cancellations, have its turn five times sooner than they would.
    sys.setswitchinterval(0.001)
    encode.share()
    separate.install()


def serve(functions):
    """Until the host is gone or says that it is enough."""
    _Server(functions).live()


class _Server:
    def __init__(self, functions):
        tell_apart()
        self.functions = functions
        self.running = {}  # by the id of the request
        self.unanswered = set()  # those, and whose answers are on their way
        self.questions = Questions(self._advance)
        self.ended_sessions = set()  # whose calls may still run
        self.served = False
        self.is_over = False
        self.threads = Threads(state.concurrency, self._plain)
        self.loop = calls.new_loop()
        # Threads of cancelled calls are still at work there, and hold up no others.
        self.loop.set_default_executor(ThreadPoolExecutor(max(32, 4 * state.concurrency), "asyncio"))
        self.base = copy_context()  # what the file set while it was imported, and nothing of any call
        wire.send = self._send_whole
        host.exchange = self.questions.ask
        interrupt.again = self._again
        wire.receive = lambda message: receive(wire, message, self._cancel, self.questions.replied)

    def live(self):
        self.loop.add_reader(wire.source, self._arrived)
        self._wake_for_signals()
        self.loop.call_soon(self._advance)  # what came with the hello
        while not self.is_over:
            try:
                self.loop.run_forever()  # a tool may stop it
            except (SystemExit, KeyboardInterrupt):
                if state.terminating:
                    raise  # else a task that a tool had started asked for it, and is told by asyncio
        if self.unanswered and not state.terminating:
            # They get no chance, and the interpreter must not wait for what they hold.
            import atexit

            atexit._run_exitfuncs()
            streams.flush()
            interrupt.exit_now(0)

    def _end(self):
        self.is_over = True
        self.loop.stop()

    def _wake_for_signals(self):
        """Handlers run between two steps in Python. One that comes just before the loop begins to wait would wait with it."""
        wakes, written = os.pipe()
        for end in (wakes, written):
            os.set_blocking(end, False)
        _signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        self.loop.add_reader(wakes, os.read, wakes, 4096)
        _signal.signal(_signal.SIGUSR1, self._nudged)
        _signal.signal(_signal.SIGINT, self._interrupted)

    def _nudged(self, _signum, _frame):
        """A call that should have ended has not: perhaps it is the one whose step holds up the loop."""
        call = current.get()
        if call is None or state.guard > 1:
            return
        state.guard += 1
        try:
            wire.take_in()  # nobody else does, as long as the step goes on
        finally:
            state.guard -= 1
        self.loop.call_soon(self._advance)
        if call.cancel and not call.ended:
            raise Cancelled("the call was cancelled")

    @staticmethod
    def _interrupted(_signum, _frame):
        """A tool can send this, by `_thread.interrupt_main`. Whose step it meets is chance, so it ends none."""

    def _arrived(self):
        wire.take_in()  # and never wait: somebody may have read since the loop saw that there is something
        if wire.eof:
            self.loop.remove_reader(wire.source)
            if not any(message["method"] == "shutdown" for message in queue):
                return self._end()  # nothing new is begun for a host that is gone without a word
        self._advance()

    def _advance(self):
        """Begin what may begin, in the order it came."""
        self._end_sessions()
        while queue:
            message = queue[0]
            method = message["method"]
            if method == "call" and len(self.running) >= state.concurrency or method == "shutdown" and self.unanswered:
                return
            queue.popleft()
            if method == "call":
                self._begin(message)
            elif method == "shutdown":
                if "id" in message:
                    self._send(b'{"jsonrpc":"2.0","id":%s,"result":null}\n' % id_text(message["id"]).encode())
                return self._end()
            elif method == "ping":  # answered here and nowhere else: it shows that calls get on
                self._send(b'{"jsonrpc":"2.0","id":%s,"result":null}\n' % id_text(message.get("id")).encode())
            elif method == "hello":
                self._send(hello(message, self.functions)[1])
            elif method == "session_ended":
                self.ended_sessions.add(session_of(message))
                self._end_sessions()
            elif "id" in message:
                self._send(faults.reply(message["id"], -32601, "no such method: " + method))
        if state.describe and self.served and not self.unanswered and not wire.eof:
            wire.take_in()  # calls first: to describe types can wait
            if not queue:
                tell_types(wire)
            self._advance()

    def _end_sessions(self):
        """What is kept for a session ends behind its calls: those that hostler does not wait for any more may still run."""
        if self.ended_sessions:
            running = [call.params for call in list(self.running.values())]
            running = {(params.get("call") or {}).get("session") for params in running if params}
            for session in self.ended_sessions - running:
                state.sessions.pop(session, None)
            self.ended_sessions &= running

    def _begin(self, message):
        made = ready(message, self.functions)
        if type(made) is bytes:
            return self._send(made)
        call = Call(*made)
        call.function.plan  # may import; on this thread, and once
        self.running[call.id] = call
        self.unanswered.add(call)
        context = self.base.copy()
        context.run(current.set, call)
        code = getattr(call.function.call, "__code__", None)
        if code is not None and code.co_flags & _ASYNC:
            self._start(context, call)
        else:
            self.threads.put(context, call)

    def _start(self, context, call, coroutine=None):
        context.run(self.loop.create_task, self._async(call, coroutine))

    def _plain(self, call):
        """A call, on a thread of its own."""
        answer = making.made_in_a_thread(call, self._go_on)
        if answer is not None:
            self.threads.calls.discard(call)
            self._answered(call, answer)

    def _go_on(self, context, call, coroutine):
        self.threads.calls.discard(call)
        self.loop.call_soon_threadsafe(self._start, context, call, coroutine)

    async def _async(self, call, coroutine):
        """A call, as a task of the loop."""
        try:
            self._answered(call, await making.made_on_the_loop(call, coroutine))
        finally:
            if state.terminating:
                self._end()

    def _answered(self, call, answer):
        call.end()
        self.questions.drop(call)
        answer = bounded(call.id, answer)
        del self.running[call.id]  # before the host hears of it, and may send another
        self.served = True
        self._send(answer)
        self.unanswered.discard(call)
        if queue or state.describe or self.ended_sessions:
            self.loop.call_soon_threadsafe(self._advance)

    @staticmethod
    def _send_whole(data):
        call = current.get()
        if call is None or get_ident() == state.main:
            return Wire.send(wire, data)
        with call.lock:  # nothing is raised in the thread meanwhile, which could leave half a frame
            Wire.send(wire, data)

    def _send(self, data):
        try:
            wire.send(data)
        except OSError:  # nobody is there to read it
            self.loop.call_soon_threadsafe(self._end)

    def _cancel(self, id):
        call = self.running.get(id) if isinstance(id, (int, str)) else None
        if call is not None:
            call.stop()
            self.questions.drop(call)
        elif any(message.get("id") == id for message in queue):
            state.cancelled.add(id)

    def _again(self):
        """A destructor dropped what was to stop the call."""
        call = current.get()
        if call is not None:
            call.raised = False
            self.loop.call_soon_threadsafe(self.loop.call_later, interrupt.SOON, call.stop)
