"""One call: from its arguments to the bytes of its answer."""

from . import faults
from .encode import NotJson, ToolFailed, encode, half_character
from .interrupt import Cancelled, cancel_task, deliver, exit_now, leave
from .state import state
from .wire import id_text, wire


async def _coroutine():
    pass


async def _async_generator():
    yield


def _generator():
    yield


_probe = _coroutine()
COROUTINE = type(_probe)
_probe.close()
ASYNC_GENERATOR = type(_async_generator())
UNFINISHED = frozenset((COROUTINE, ASYNC_GENERATOR, type(_generator())))

_loop = None


def run(id, params, function, kwargs):
    state.params = params
    call = params.get("call")
    if call is not None and call.get("trace") is not state.trace:
        hand_on(call)
    state.cancel = state.raised = state.insist = False
    state.call_id = id
    plan = function.plan  # may import; a cancellation must not come in the midst of that
    try:
        try:
            state.guard = 0
            if state.signalled:
                deliver()
            value = invoke(function, plan, kwargs)
            if type(value) in UNFINISHED:
                value = _finish(value)
            if type(value) is bytes or function.cut is not None:
                value = declared(function, value, id)
        finally:
            # Until this line a cancellation may still raise, and does so inside the outer try. It
            # raises once a call, so not again in the clauses below.
            state.guard = 1
    except Cancelled as error:
        state.guard = 1
        return cancelled(id, error.__cause__)
    except BaseException as error:
        state.guard = 1
        return failed(id, error, kwargs, state.raised)
    return answer(id, value)


def hand_on(call):
    """Most workers never see a trace."""
    global hand_on
    from .trace import hand_on

    hand_on(call)


def invoke(function, plan, kwargs):
    """What the function gives, which may still have to be awaited or gathered."""
    return function.call(**kwargs) if plan is None else function.call_converted(kwargs)


def declared(function, value, id):
    """A value in the form that the function's annotation declares: bytes as a file, a model without what a subclass adds."""
    if function.cut is not None and type(value) is not bytes:
        dropped = set()
        value = function.cut(value, dropped)
        if dropped:
            text = '{"jsonrpc":"2.0","method":"dropped","params":{"id":%s,"fields":%s}}\n' % (id_text(id), encode(sorted(dropped)))
            wire.send(text.encode("utf-8", "replace"))
        return value
    from .files import typed

    return typed(function.call, value)


def cancelled(id, error=None):
    """The reply of a cancelled call; `error` is what it was told by, and says where it was."""
    return faults.reply(id, -32003, "the call was cancelled", error and {"traceback": faults.traceback_of(error)})


def failed(id, error, kwargs, was_cancelled):
    """The reply for what came out of a call instead of a value."""
    if state.terminating:
        raise error
    if wire.forked:
        _leave_child(error)
    if was_cancelled:  # what the tool made of its cancellation
        return cancelled(id, error if state.several else None)
    return faults.raised(id, error, kwargs)


def answer(id, value):
    """The reply for a value."""
    try:
        return ('{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (id_text(id), encode(value))).encode("utf-8")
    except UnicodeEncodeError:
        return faults.reply(id, -32001, half_character(value))
    except NotJson as error:
        return faults.reply(id, -32001, str(error))
    except ToolFailed as error:
        return faults.reply(id, faults.RAISED, str(error), {"type": "ToolFailed"})
    except BaseException as error:  # no memory for it, perhaps
        if state.terminating:
            raise
        return faults.reply(id, -32001, "result: " + faults.describe(error))


def _finish(value):
    """The value of what a generator or a coroutine function returned."""
    kind = type(value)
    if kind is COROUTINE:
        value = _run_async(value)
        return _finish(value) if type(value) in UNFINISHED and type(value) is not COROUTINE else value
    if kind is ASYNC_GENERATOR:
        return _run_async(collect(value))
    return list(value)


async def collect(generator):
    return [item async for item in generator]


def _run_async(coroutine):
    """On one event loop for the worker's whole life, so that clients a tool keeps stay usable."""
    state.guard += 1
    try:
        asyncio = _make_loop()
        state.task = _loop.create_task(coroutine)
    finally:
        leave()
    try:
        return _loop.run_until_complete(state.task)
    except asyncio.CancelledError as error:
        if state.raised:
            raise Cancelled("the call was cancelled") from error  # that knows where the coroutine waited
        raise
    finally:
        state.task = None
        _loop.remove_reader(wire.source)


def _make_loop():
    import asyncio

    if _loop is None:
        new_loop()
    try:
        _loop.add_reader(wire.source, _arrived)
    except OSError:
        pass  # a source that cannot be watched; the signal still tells
    return asyncio


def new_loop():
    """The one event loop of this worker."""
    global _loop
    import asyncio
    import atexit

    _loop = asyncio.new_event_loop()
    asyncio.set_event_loop(_loop)
    atexit.register(_close_loop)
    return _loop


def _arrived():
    """The loop saw something arrive while an async call runs."""
    state.guard += 1
    try:
        wire.take_in()
        if wire.eof:
            _loop.remove_reader(wire.source)
    finally:
        state.guard -= 1
    cancel_task()


def _close_loop():
    try:
        _loop.run_until_complete(_loop.shutdown_asyncgens())
        _loop.close()
    except Exception:
        pass  # closed by the tool, or left running by SIGTERM: nothing to save at exit


def _leave_child(error):
    """A forked child ends here with the status it asked for: the call is its parent's to answer."""
    code = 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    else:
        import traceback

        traceback.print_exception(type(error), error, error.__traceback__)
    exit_now(code & 0xFF)
