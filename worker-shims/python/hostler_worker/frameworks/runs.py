"""What happens in place of running a server, while its tools are made: a function ends there, and a coroutine waits there
without an end, so that what it has opened around the server stays open."""

import asyncio
import sys
from _thread import get_ident
from contextvars import ContextVar
from types import CoroutineType

from .calling import is_coroutine_function, run_on_loop

_SERVERS = (("fastmcp", "FastMCP"), ("mcp.server.fastmcp", "FastMCP"), ("mcp.server", "MCPServer"), ("mcp.server.mcpserver", "MCPServer"),
            ("mcp.server.lowlevel", "Server"), ("uvicorn", "Server"))
# Discovery takes calls of these for the end of a function (`ENDS`, `discovery/python/frameworks/runs.rs`).
_RUNS = ("run", "run_async", "run_stdio_async", "run_sse_async", "run_http_async", "run_streamable_http_async", "serve")
_STREAMS = "mcp.server.stdio", "stdio_server"
_LOOPS = ("asyncio", "anyio")
_now = ContextVar("hostler_making", default=None)  # the making that code works for, also in the tasks that it starts


class _Runs(BaseException):
    """Instead of running a server: it has its tools."""


class Making:
    """One call of a function that makes tools."""

    def __init__(self):
        self.kept = []  # what it made and was given, which lives as long as the worker
        self._parked = None
        self._thread = get_ident()
        self._is_over = False

    def run(self, make):
        """Calls `make` with this, until it has ended or would run a server."""
        _stop_at_runs()
        token = _now.set(self)
        try:
            make(self)
        except _Runs:
            pass
        finally:
            _now.reset(token)
            self._is_over = True

    def drives_loops(self):
        """Whether a loop that begins now belongs to this call. Threads and later tasks have loops of their own."""
        return not self._is_over and get_ident() == self._thread and _is_free()

    def finish(self, value):
        """What a function gives, or the coroutine that it returns, on the loop where the tools will run. One that comes to where it would
        run a server stays there, with all that it has opened."""
        if type(value) is not CoroutineType:
            return value
        is_parked, value, error = run_on_loop(self._until_parked(value))
        if is_parked:
            raise _Runs
        if error is not None:
            raise error
        return value

    async def _until_parked(self, coroutine):
        self._parked = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(_outcome(coroutine))
        try:
            await asyncio.wait((task, self._parked), return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            task.cancel()
            raise
        if task.done():
            self._parked = None
            return (False, *task.result())
        self.kept.append(task)
        task.add_done_callback(_report)
        _cancel_at_exit(task)
        return True, None, None

    async def park(self, server=None):
        """Instead of running a server in a coroutine."""
        self.kept.append(server)
        loop = asyncio.get_running_loop()
        if self._parked is None or self._parked.get_loop() is not loop:
            raise _Runs  # on a loop of the file's own
        if not self._parked.done():
            self._parked.set_result(None)
        await loop.create_future()


async def _outcome(coroutine):
    """A loop would end by what a task raises that is no Exception."""
    try:
        return await coroutine, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error


def _report(task):
    """Where a coroutine fails that should wait, what it had opened is closed."""
    error = None if task.cancelled() else task.result()[1]
    if error is not None:
        import traceback

        print("the coroutine that made the tools has failed:", file=sys.stderr)
        traceback.print_exception(type(error), error, error.__traceback__)


def _cancel_at_exit(task):
    """What a coroutine has opened is closed when the worker ends, if that takes no longer than a moment."""
    import atexit

    loop = task.get_loop()

    def cancel():
        if not (task.done() or loop.is_running() or loop.is_closed()):
            task.cancel()
            loop.run_until_complete(asyncio.wait((task,), timeout=1))

    atexit.register(cancel)


def _stop_at_runs():
    """From now on, a server that is run while tools are made is kept instead: its function ends there, or waits there without an end."""
    _import_servers()
    for place, name in _SERVERS:
        kind = getattr(sys.modules.get(place), name, None)
        for method in _RUNS if kind is not None else ():
            _replace(kind, method, _stopping)
    for place, name, by in (*((place, "run", _finishing) for place in _LOOPS), ("uvicorn", "run", _stopping), (*_STREAMS, _parking)):
        if place in sys.modules:
            own = getattr(sys.modules[place], name)
            _replace(sys.modules[place], name, by)
            for module in list(sys.modules.values()):  # those that have imported the name
                if getattr(module, "__dict__", {}).get(name) is own:
                    setattr(module, name, getattr(sys.modules[place], name))


def _replace(owner, name, by):
    run = getattr(owner, name, None)
    if run is not None and not hasattr(run, "_hostler_run"):
        stopping = by(run)
        stopping._hostler_run = run
        setattr(owner, name, stopping)


def _import_servers():
    """Where nothing has imported a server yet, the function that makes tools may do so itself."""
    from importlib import import_module

    places = [place for place, _ in _SERVERS if place != "uvicorn"]
    for place in ["uvicorn"] if any(place in sys.modules for place in places) else [*places, "uvicorn"]:
        try:
            import_module(place)
        except ImportError:
            pass


def _stopping(run):
    is_async = is_coroutine_function(run)

    def stopping(server, *args, **kwargs):
        making = _now.get()
        if making is None:
            return run(server, *args, **kwargs)
        if is_async:
            return making.park(server)
        making.kept += [server, *_locals_above()]
        raise _Runs

    return stopping


def _locals_above():
    """What the functions have that end now, as they would while they run the server."""
    frame, found = sys._getframe(2), []
    while frame is not None and frame.f_code is not Making.run.__code__:
        found.append(list(frame.f_locals.values()))
        frame = frame.f_back
    return found


def _parking(opened):
    """`async with stdio_server() as (read, write)`: a server must not read the worker's standard input."""
    def parking(*args, **kwargs):
        making = _now.get()
        return opened(*args, **kwargs) if making is None else _Parked(making)

    return parking


class _Parked:
    def __init__(self, making):
        self._making = making

    async def __aenter__(self):
        await self._making.park()

    async def __aexit__(self, *_):
        pass


def _finishing(run):
    """`asyncio.run(main())`, `anyio.run(main, …)`"""
    def finishing(main, *args, **kwargs):
        making = _now.get()
        if making is None or not making.drives_loops():
            return run(main, *args, **kwargs)
        return making.finish(main(*args) if callable(main) else main)

    return finishing


def _is_free():
    """Whether no loop runs on this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False
