"""What a tool may ask of its host while a call runs."""

from _thread import get_ident
from itertools import count

from .encode import NotJson, encode, share
from .interrupt import leave
from .state import state
from .wire import Gone, id_text, quote, wire

_numbers = count(1)


class Refused(Exception):
    """The host answered with an error, or cannot be asked; `code` is None in the latter case."""

    def __init__(self, message, code=None, data=None):
        super().__init__(message)
        self.code, self.data = code, data


def request(method, params):
    """Ask the host and wait, on any thread. Calls that arrive meanwhile are queued, cancellations are heeded."""
    _check(method)
    if get_ident() != state.main and not state.several:
        share()
    try:
        encoded = [quote(name) + ":" + encode(value) for name, value in params.items()]
    except NotJson as error:
        raise Refused("cannot send this to the host: " + str(error).replace("result", "the arguments", 1)) from None
    key = "w%d" % next(_numbers)
    encoded.append('"id":' + id_text(state.call_id))
    if state.several and get_ident() == state.main:
        encoded.append('"blocks":true')  # the event loop stands still meanwhile
    frame = '{"jsonrpc":"2.0","id":"%s","method":"%s","params":{%s}}\n' % (key, method, ",".join(encoded))
    try:
        answer = exchange(key, frame.encode("utf-8", "replace"))
    except (Gone, BrokenPipeError):
        raise Refused("the host is gone") from None
    if answer is None:
        # An async call: its task is cancelled at the next await, which this is not.
        raise Refused("the call was cancelled")
    if "error" in answer:
        error = answer["error"] if type(answer["error"]) is dict else {}
        raise Refused(str(error.get("message", "the host refused")), error.get("code", 0), error.get("data"))
    return answer["result"]


class Question:
    """A request of a call, and its answer once it is there."""

    __slots__ = ("answer",)

    def __init__(self):
        self.answer = None


def exchange(key, frame):
    """The answer to a request, or None when its call is over. Where several calls run, `questions` has its own."""
    from .loop import waiting

    call = state.call_id
    is_main = get_ident() == state.main
    state.guard += is_main
    try:
        question = waiting[key] = Question()
        try:
            wire.send(frame)
            while question.answer is None and not state.cancel and state.call_id == call:
                wire.wait()
            return question.answer
        finally:
            del waiting[key]
    finally:
        if is_main:
            leave()  # raises when the call was cancelled meanwhile


_OF_CLIENT = frozenset(("llm", "elicit", "roots"))


def _check(method):
    if state.call_id is None:
        raise Refused("the host can be asked only while a call runs, not at import: ask " + state.where)
    name = method[5:]
    if name in state.host:
        return
    if name in _OF_CLIENT:
        raise Refused("this tool file may not use hostler.%s: the operator has set `client_access = false` under "
                      "`[tool.NAME]`" % name)
    raise Refused("this tool file may not use hostler.%s: only internal tool files (without a header) have "
                  "host access, unless the operator sets `host_access = true` under `[tool.NAME]`" % name)


def progress(params):
    """Tell the host how far the running call is. From any thread."""
    id = state.call_id
    if id is None:
        return
    text = '{"jsonrpc":"2.0","method":"progress","params":{"id":%s,%s}}\n' % (id_text(id), encode(params)[1:-1])
    data = text.encode("utf-8", "replace")
    if get_ident() != state.main:
        wire.send(data)
        return
    state.guard += 1
    try:
        wire.send(data)
    finally:
        leave()
