"""Making one of several calls: in a thread, or as a task of the loop. Whatever comes out of it, the call is answered."""

import asyncio
from contextvars import copy_context

from . import calls, separate
from .interrupt import Cancelled, exit_now
from .output import until_read, wait_until_read
from .state import state
from .wire import wire


def made_in_a_thread(call, go_on):
    """The answer, or None when `go_on` was given what is to be awaited on the loop."""
    try:
        answer = _plain(call, go_on)
        if answer is not None:
            _leave_child()
            separate.end_call(call)
            wait_until_read()
        return answer
    except BaseException as error:
        return calls.failed(call.id, error, call.kwargs, call.cancel)


def _plain(call, go_on):
    try:
        try:
            if not call.enter():
                raise Cancelled
            value = calls.invoke(call.function, call.function.plan, call.kwargs)
            if type(value) in calls.UNFINISHED and type(value) not in (calls.COROUTINE, calls.ASYNC_GENERATOR):
                value = list(value)
            if type(value) is bytes or call.function.cut is not None:
                value = calls.declared(call.function, value, call.id)
        finally:
            call.leave()
    except Cancelled as error:
        return calls.cancelled(call.id, error)
    except BaseException as error:
        return calls.failed(call.id, error, call.kwargs, call.cancel)
    if type(value) in (calls.COROUTINE, calls.ASYNC_GENERATOR):  # a plain function around an async one
        go_on(copy_context(), call, value)
        return None
    return calls.answer(call.id, value)


async def made_on_the_loop(call, value):
    """The answer of an async function; `value` is its coroutine where it was begun in a thread."""
    answer = await _awaited(call, value)
    try:
        _leave_child()
        separate.end_call(call)
        for pause in until_read():
            try:
                await asyncio.sleep(pause)
            except asyncio.CancelledError:
                pass  # meant for the tool, which has ended
        return answer
    except BaseException as error:
        return calls.failed(call.id, error, call.kwargs, call.cancel)


async def _awaited(call, value):
    try:
        try:
            if call.cancel:
                raise Cancelled
            call.task = asyncio.current_task()
            if value is None:
                value = calls.invoke(call.function, call.function.plan, call.kwargs)
            value = await (value if type(value) is calls.COROUTINE else calls.collect(value))
            if type(value) is calls.ASYNC_GENERATOR:
                value = await calls.collect(value)
            if type(value) is bytes or call.function.cut is not None:
                value = calls.declared(call.function, value, call.id)
        finally:
            call.task = None
    except Cancelled as error:
        if type(value) is calls.COROUTINE:
            value.close()  # never begun
        return calls.cancelled(call.id, error)
    except BaseException as error:
        return calls.failed(call.id, error, call.kwargs, call.cancel)
    return calls.answer(call.id, value)


def _leave_child():
    """A child that came back out of the tool."""
    if wire.forked:
        exit_now(0)
