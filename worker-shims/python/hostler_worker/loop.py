"""The worker's life: hello, then one message after the other until the host is gone."""

import os
import sys
import _signal
from _thread import get_ident
from _collections import deque  # `collections` would cost 1.6 ms

from . import calls, faults, interrupt
from .output import streams, wait_until_read
from .state import state
from .wire import Gone, id_text, wire

PROTOCOL = 1
FEATURES = '["cancel","progress","output","describe","concurrent","interrupt","stack","recall","sessions"]'
MAX_FRAME = 64 << 20  # the host refuses longer ones, and then the whole worker

queue = deque()
waiting = {}  # id of a host request -> its question


def main(wire, tool_file, source=None, *args):
    streams.install()
    interrupt.install()
    sys.argv = [tool_file, *args]
    for name in ("UV", "UV_RUN_RECURSION_DEPTH"):  # `uv run` adds them; a tool gets no UV_* variable
        os.environ.pop(name, None)
    state.tool_file = os.path.abspath(tool_file)
    state.source = source and os.path.abspath(source)
    wire.receive = lambda message: receive(wire, message, _cancel, _replied)
    try:
        _serve(wire)
    except (Gone, BrokenPipeError):
        pass
    except BaseException:
        if not state.terminating:
            raise
    if wire.forked:  # a child that came back out of the tool: it must not run the parent's exit
        interrupt.exit_now(0)
    if state.terminating:
        _terminate()


def _terminate():
    import atexit

    try:
        atexit._run_exitfuncs()
        streams.flush()
    finally:
        interrupt.die_by_term()


def receive(wire, message, cancel, replied):
    """Sort one arrived message. Runs in the loop, and in the signal handler during a call."""
    if type(message) is not dict:
        wire.fail(None, -32600, "a message is one JSON object")
        return
    method = message.get("method")
    if method == "call":
        queue.append(message)
    elif method is None and ("result" in message or "error" in message):
        id = message.get("id")
        if isinstance(id, str):
            replied(id, message)
    elif method == "cancel" or method == "recall":
        params = message.get("params")
        if type(params) is dict:
            (cancel if method == "cancel" else _recall)(params.get("id"))
    elif isinstance(method, str):
        queue.append(message)
    else:
        wire.fail(message.get("id"), -32600, "a request has a method")


def session_of(message):
    params = message.get("params")
    return params.get("session") if type(params) is dict else None


def _replied(id, message):
    question = waiting.get(id)
    if question is not None:
        question.answer = message


def _recall(id):
    """The running call asks its client: the host wants a call back that waits behind it."""
    for message in list(queue):
        if message["method"] == "call" and message.get("id") == id:
            try:
                queue.remove(message)
            except ValueError:  # another thread reads this, and it has been begun
                return
            wire.fail(id, -32005, "not begun")
            return


def _cancel(id):
    # A cancel follows its call on the same stream, so the call runs, waits here, or is answered.
    if id is None:
        return
    if id == state.call_id:
        state.cancel = True
        if get_ident() != state.main:  # it was read on a thread that asks
            _signal.pthread_kill(state.main, _signal.SIGUSR1)
    elif any(message.get("id") == id for message in list(queue)):
        state.cancelled.add(id)


def _serve(wire):
    functions, served = None, False
    while not state.terminating:
        if queue:
            wire.take_in()
            if wire.eof and not any(message["method"] == "shutdown" for message in queue):
                return  # nothing new is begun for a host that is gone without a word
        elif state.describe and served:
            wire.take_in()  # calls first: to describe types can wait
            if wire.eof:
                state.describe = None
            elif not queue:
                tell_types(wire)
            continue
        else:
            wire.wait()
            continue
        message = queue.popleft()
        method = message["method"]
        if method == "call":
            call = ready(message, functions)
            answer = call if type(call) is bytes else bounded(call[0], calls.run(*call))
            served = True
        elif method == "hello":
            functions, answer = hello(message, functions)
        elif method == "shutdown":
            if "id" in message:
                wire.send(b'{"jsonrpc":"2.0","id":%s,"result":null}\n' % id_text(message["id"]).encode())
            return
        elif "id" in message:
            answer = faults.reply(message["id"], -32601, "no such method: " + method)
        else:
            if method == "session_ended":  # behind its calls
                state.sessions.pop(session_of(message), None)
            continue
        if streams.may_hold_something():
            streams.end_call()
        state.call_id = state.params = None
        if wire.forked:
            return
        wait_until_read()
        wire.send(answer)
        if method == "hello":
            if functions is None:
                sys.exit(1)
            if state.concurrency > 1:
                from . import several

                return several.serve(functions)


def _limited(seconds):
    """Lets an exception end what runs too long; the handler that was there, or None where the tool has an alarm of its own,
    or one that only C can put back."""
    if _signal.getitimer(_signal.ITIMER_REAL)[0] or _signal.getsignal(_signal.SIGALRM) is None:
        return None

    def stop(_signum, _frame):
        raise SystemExit  # no Exception: what is wrong with one type is caught there, and the next could hang without end

    before = _signal.signal(_signal.SIGALRM, stop)
    _signal.setitimer(_signal.ITIMER_REAL, seconds)
    return before


def tell_types(wire):
    """Once, while nothing else is to do: what the types are that hostler could not read out of the file."""
    wanted, state.describe = state.describe, None
    timed = _limited(1.0)
    try:
        from .describe import describe
        from .encode import encode

        told = encode(describe(wanted, sys.modules[state.module_name].__dict__))
    except BaseException:  # the author's types ran
        if state.terminating:
            raise
        return  # then hostler knows what it knew before
    finally:
        if timed is not None:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            _signal.signal(_signal.SIGALRM, timed)
    wire.send(b'{"jsonrpc":"2.0","method":"described","params":%s}\n' % told.encode("utf-8", "replace"))


def ready(message, functions):
    """What a call says, for `calls.run`; or the refusal of one that cannot be made."""
    id = message.get("id")
    if functions is None:
        return faults.reply(id, -32600, "say hello first")
    if state.cancelled and id in state.cancelled:
        state.cancelled.discard(id)
        return faults.reply(id, -32003, "cancelled before it began")
    params = message.get("params")
    try:
        name = params["function"]
        kwargs = params.get("kwargs") or {}
    except (TypeError, KeyError, AttributeError):
        return faults.reply(id, -32600, "call needs params {function, kwargs}")
    if type(id) is not int and not isinstance(id, str):
        return faults.reply(None, -32600, "call needs an id")
    if type(kwargs) is not dict:
        return faults.reply(id, -32602, "kwargs: expected an object")
    try:
        function = functions[name]
    except (KeyError, TypeError):
        return faults.no_function(id, name, functions)
    return id, params, function, kwargs


def bounded(id, answer):
    """An answer, where the host takes one of this length."""
    if len(answer) > MAX_FRAME:
        return faults.reply(id, -32001, "result is %d MB of JSON; the limit is 64 MB; return a part, or "
                            "write it to a file and return the path" % (len(answer) >> 20))
    return answer


def hello(message, functions):
    id = message.get("id")
    params = message.get("params")
    if type(params) is not dict:
        params = {}
    if functions is not None:
        return functions, faults.reply(id, -32600, "hello was said already")
    if params.get("protocol") != PROTOCOL:
        return None, faults.reply(id, -32602, "this worker speaks protocol %d" % PROTOCOL)
    state.secrets = frozenset(params.get("secrets") or ())
    state.host = frozenset(params.get("host") or ())
    state.describe = params.get("describe") or None
    concurrency = params.get("concurrency")
    if type(concurrency) is int and concurrency > 1:
        from . import several

        several.prepare(concurrency)

    from .loading import load
    from .wire import quote

    functions, problem = load(state.tool_file, state.source, params.get("program") is True)
    if problem is not None:
        return None, faults.import_failed(id, problem)
    text = '{"jsonrpc":"2.0","id":%s,"result":{"protocol":%d,"pid":%d,"python":"%d.%d.%d","functions":[%s],"features":%s}}\n'
    return functions, (text % (
        id_text(id), PROTOCOL, os.getpid(), *sys.version_info[:3], ",".join(map(quote, functions)), FEATURES,
    )).encode()
