"""Signals: SIGUSR1 looks for cancellations, SIGTERM ends the worker, SIGUSR2 prints the stack."""

import faulthandler
import os
import sys
import time
from _thread import start_new_thread

import _signal  # `signal` would import enum, 4 ms

from .state import state
from .wire import wire


SOON = 0.005  # seconds until the destructor is surely left
exit_now = os._exit
_PATIENCE = 0.1  # seconds an async step may take to come to its next await


class Cancelled(BaseException):
    """Raised in a tool whose call was cancelled. Not an Exception, so that `except Exception` in
    a tool does not hold it up."""


def install():
    _signal.signal(_signal.SIGUSR1, _on_cancel)
    _signal.signal(_signal.SIGTERM, _on_term)
    # Written by C from the signal handler itself: works inside a regex that holds the GIL. Only of the thread that is
    # asked: the frames of another that runs meanwhile cannot be read.
    faulthandler.register(_signal.SIGUSR2, file=2, all_threads=False, chain=False)
    faulthandler.enable(file=2)
    sys.unraisablehook = _unraisable
    os._exit = _exit_telling_where


def _unraisable(unraisable, usual=sys.unraisablehook):
    """A Cancelled that hit a destructor or weakref callback is dropped by Python: raise it again."""
    if unraisable.exc_type is Cancelled:
        again()
    else:
        usual(unraisable)


def again():
    state.raised = False
    start_new_thread(_signal_soon, ())


def _signal_soon():
    time.sleep(SOON)
    _signal.pthread_kill(state.main, _signal.SIGUSR1)


def _on_cancel(_signum, _frame):
    if state.guard:
        state.signalled = True
    else:
        deliver()


def _on_term(_signum, _frame):
    if state.terminating:
        return
    state.terminating = True
    # Out of whatever runs, also out of a blocked write: the worker is about to die anyway.
    raise SystemExit(143)


def deliver():
    """Take in what has arrived; leave the running call when it is among the cancelled."""
    state.guard += 1
    try:
        state.signalled = True
        while state.signalled:
            state.signalled = False
            wire.take_in()
    finally:
        state.guard -= 1
    if state.cancel and not state.raised and not state.guard:
        _stop_running()
    if state.insist and not state.guard:
        _break_off()


def leave():
    """Lower the guard, and do what waited for that."""
    state.guard -= 1
    if not state.guard and (state.signalled or state.cancel and not state.raised):
        deliver()


def _stop_running():
    task = state.task
    if task is None:
        state.raised = True
        raise Cancelled("the call was cancelled")
    if _current() is not task:
        # Between two steps, or in another task: the loop must not be torn.
        cancel_task()
        return
    # In the midst of a step. Its next await raises CancelledError, which async code cleans up by;
    # only a step that goes on and on, as time.sleep(60) would, is broken off.
    state.raised = True
    task.cancel()
    start_new_thread(_insist, (task,))


def _current():
    return sys.modules["asyncio"].current_task(state.task.get_loop())


def _insist(task):
    time.sleep(_PATIENCE)
    if state.task is task and task._must_cancel:
        state.insist = True
        _signal.pthread_kill(state.main, _signal.SIGUSR1)  # also ends a blocking system call


def _break_off():
    state.insist = False
    if state.task is not None and _current() is state.task and state.task._must_cancel:
        raise Cancelled("the call was cancelled")


def cancel_task():
    """Cancel the running async call by asyncio's own means."""
    if state.cancel and not state.raised:
        state.raised = True
        # Threadsafe, because this may be a signal handler while the loop sleeps in its selector.
        state.task.get_loop().call_soon_threadsafe(state.task.cancel)


def die_by_term():
    """Die by the signal itself, so that whoever waits for this process sees what it was."""
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
    os.kill(os.getpid(), _signal.SIGTERM)


def _exit_telling_where(status):
    """What a tool calls as `os._exit`: nobody who waits for its answer would know the line."""
    faulthandler.dump_traceback(file=2, all_threads=False)
    exit_now(status)


def reset_in_child():
    os._exit = exit_now
    _signal.signal(_signal.SIGUSR1, _signal.SIG_DFL)
    _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
