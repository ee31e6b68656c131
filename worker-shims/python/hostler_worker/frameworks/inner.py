"""Tools that a function of the file makes when it is called: `def create_server(): … @mcp.tool …`, `def register(mcp): …`. It is called
once, by the first call that needs one of its tools, unless the file has called it."""

import asyncio
import gc
import sys
import threading
from contextvars import ContextVar
from types import CoroutineType, FunctionType
from weakref import WeakSet

from ..loading import FRAMEWORKS, NEWLOCALS, Function, inner_codes
from ..state import state
from .behind import package_of, unwrapped, within
from .calling import calling, current_for, is_coroutine_function, run_on_loop
from .injected import given_to

_MCP = ("fastmcp", "mcp")
_SERVERS = (("fastmcp", "FastMCP"), ("mcp.server.fastmcp", "FastMCP"), ("mcp.server", "MCPServer"), ("mcp.server.mcpserver", "MCPServer"),
            ("mcp.server.lowlevel", "Server"))
_RUNS = ("run", "run_async", "run_stdio_async", "run_sse_async", "run_http_async", "run_streamable_http_async")
_STREAMS = "mcp.server.stdio", "stdio_server"
_LOOPS = ("asyncio", "anyio")
_results = {}  # by module and maker that has ended: what it made and what it was given, which live as long as the worker
_functions = {}  # by module and maker: its functions by their code, as they were for the first of its tools. Another maker may call it again
_failed = WeakSet()  # functions that a maker made before it failed
_making = threading.RLock()
_now = ContextVar("hostler_making", default=None)  # the making that code works for, also in the tasks that it starts


class _Runs(BaseException):
    """Instead of running a server: it has its tools."""


class _Making:
    """A call of what makes tools."""

    def __init__(self):
        self.kept = []  # what it made and was given, which lives as long as the worker
        self._task = self._parked = None

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
        self._task = asyncio.ensure_future(_outcome(coroutine))
        try:
            await asyncio.wait((self._task, self._parked), return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            self._task.cancel()
            raise
        if self._task.done():
            return (False, *self._task.result())
        self.kept.append(self._task)
        return True, None, None

    async def park(self, server=None):
        """Instead of running a server in a coroutine."""
        self.kept.append(server)
        if self._parked is None:
            raise _Runs  # on a loop of the file's own
        if not self._parked.done():
            self._parked.set_result(None)
        await asyncio.get_running_loop().create_future()


async def _outcome(coroutine):
    """A loop would end by what a task raises that is no Exception."""
    try:
        return await coroutine, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error


class Later(Function):
    """A tool that is not there before its first call: only that has what the maker may ask hostler for."""

    __slots__ = ("_find",)

    def __init__(self, symbol, find):
        super().__init__(symbol, self._first)
        self._find = find

    @property
    def plan(self):
        return Function.plan.fget(self) if self._find is None else None

    def _first(self, **kwargs):
        from ..calls import invoke

        with _making:
            if self._find is not None:
                self.call, self._find = self._find(), None
        return invoke(self, self.plan, kwargs)


def named(module, symbol, host=None):
    """The tool of a symbol `made:MAKER:LINE:NAME`, where the line is the first of its decorators, or `made:WAY>MAKER:LINE:NAME`: something
    calls the maker with what it needs, which is `WAY`, `PLACE/FUNCTION`, or if that is empty the top level of the tool file, `host`. With
    `:TOOL` behind, that function is the handler of a low-level server for its tool of this name."""
    way, rest = None, symbol.partition(":")[2]
    if ">" in rest:
        way, _, rest = rest.partition(">")
    maker, line, name = rest.split(":", 2)
    return Later(symbol, lambda: _found(module, maker, int(line), name, host or module, way))


def _found(module, maker, line, name, host, way):
    from .mcp import current_of, lifespan_of

    name, _, tool = name.partition(":")
    owner, _, method = maker.partition(".")
    owner = _program(module.__dict__[owner])
    codes = list(_codes_within(unwrapped(getattr(owner, method) if method else owner).__code__))
    code = next((code for code in codes if code.co_name == name and code.co_firstlineno == line), None)
    if code is None:
        raise RuntimeError("`%s` is not what the file defines by that name" % maker)
    key = module.__name__, maker
    by = key if way is None else (host.__name__, way)
    if key not in _functions:
        if not any(_functions_of(code) for code in codes) and by not in _results:
            _results[by] = _make(module, owner, method, codes) if way is None else _by_way(host, way, codes)
        gc.collect()  # without those of earlier makings that nothing holds
        _functions[key] = {code: _functions_of(code) for code in codes}
    functions = _functions[key][code]
    if len(functions) != 1:
        raise RuntimeError(_why_not_one(maker, tool or name, len(functions), way))
    own = module.__name__, state.module_name
    made = list(_within_reach(_results.get(by, ()), own))
    value = next((one for one in [*made, *_within_reach(list(module.__dict__.values()), own)]
                  if package_of(type(one)) in FRAMEWORKS and package_of(type(one)) not in _MCP and within(one, [code])), None)
    # Where the server is looked for: its own before those of the file.
    scope = type(module)(module.__name__)
    scope.__dict__.update({"made %d" % place: one for place, one in enumerate(made)}, **module.__dict__)
    if tool:
        from .low_level import handled

        call = handled(functions[0], tool, lifespan_of(scope))
    else:
        call = calling(functions[0], given_to(functions[0], scope, package_of(type(value))), value, lifespan_of(scope))
    return current_for(call, current_of(scope))


def _why_not_one(maker, name, count, way):
    if count:
        return "`%s` has made the tool `%s` %d times; call it once" % (maker, name, count)
    if way is None:
        return "`%s` makes the tool `%s` under other conditions only; make it under all" % (maker, name)
    by = way.rpartition("/")[2]
    missing = "`%s` did not call `%s`" % (by, maker) if by else "`%s` was not called while the file was loaded" % maker
    return "the tool `%s` was not made: %s, or not so that it makes it" % (name, missing)


def _codes_within(code):
    """Those of the functions in a function, also of functions within these; not of methods."""
    for const in inner_codes(code):
        if const.co_flags & NEWLOCALS:
            yield const
            yield from _codes_within(const)


def _functions_of(code):
    return [one for one in gc.get_referrers(code) if type(one) is FunctionType and one.__code__ is code and one not in _failed]


def _within_reach(results, own):
    """What there is, and what that has."""
    for result in results:
        yield result
        if isinstance(result, dict):
            yield from list(result.values())
        elif isinstance(result, (list, tuple, set)):
            yield from list(result)
        elif getattr(type(result), "__module__", None) in own:
            yield from list(getattr(result, "__dict__", {}).values())


def _make(module, owner, method, codes):
    def make(making):
        if method:
            _by_method(making, module, owner, method, codes)
        else:
            given = _required(module, owner)
            making.kept += given
            making.kept.append(making.finish(owner(*given)))

    return _making_tools(make, codes)


def _by_way(host, way, codes):
    """Calls the function that calls the maker. Where the file does so when it runs, that has happened."""
    from .beside import neighbour

    place, _, function = way.rpartition("/")
    if not function:
        return []
    by = _program(neighbour(host, place).__dict__[function])
    return _making_tools(lambda making: making.kept.append(making.finish(by())), codes)


def _program(value):
    """What runs a command of click without arguments, as its program does; anything else as it is."""
    if package_of(type(value)) != "click":
        return value

    def run(*_):
        return value.main(args=[], prog_name=value.name, standalone_mode=False)

    run.__wrapped__ = value.callback
    return run


def _making_tools(make, codes):
    _stop_at_runs()
    making = _Making()
    token = _now.set(making)
    try:
        make(making)
    except _Runs:
        pass
    except BaseException:
        for code in codes:
            _failed.update(_functions_of(code))
        raise
    finally:
        _now.reset(token)
    return making.kept


def _by_method(making, module, owner, method, codes):
    from .methods import Made

    there = [one for one in list(module.__dict__.values()) if type(one) is owner]
    instance = there[0] if there else Made(owner).get()
    making.kept.append(instance)
    if not any(_functions_of(code) for code in codes):
        making.kept.append(making.finish(getattr(instance, method)()))


def _required(module, function):
    """A server, where the function needs one, and nothing where it accepts that."""
    inner = unwrapped(function)
    code = inner.__code__
    names = code.co_varnames[:code.co_argcount - len(inner.__defaults__ or ())]
    if not names:
        return []
    from .mcp import server_of

    return [None if _accepts_none(inner.__annotations__.get(name)) else server_of(module) or _Server() for name in names]


def _accepts_none(hint):
    """`Path | None`, also as a text."""
    if isinstance(hint, str):
        return "None" in hint or "Optional" in hint
    return type(None) in getattr(hint, "__args__", ())


class _Server:
    """What a function registers its tools with that is given a server; also anything that this has. Its decorators change nothing."""

    def __init__(self, kept=None):
        self._kept = [] if kept is None else kept

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Server(self._kept)

    def __call__(self, *args, **_):
        if len(args) != 1 or not callable(args[0]):
            return self
        self._kept.append(args[0])
        return args[0]


def _stop_at_runs():
    """From now on, a server that is run while tools are made is kept instead: its function ends there, or waits there without an end."""
    _import_servers()
    for place, name in _SERVERS:
        kind = getattr(sys.modules.get(place), name, None)
        for method in _RUNS if kind is not None else ():
            _replace(kind, method, _stopping)
    for place in _LOOPS:
        if place in sys.modules:
            _replace(sys.modules[place], "run", _finishing)
    place, name = _STREAMS
    if place in sys.modules:
        opened = getattr(sys.modules[place], name)
        _replace(sys.modules[place], name, _parking)
        for module in list(sys.modules.values()):  # those that have imported the name
            if getattr(module, "__dict__", {}).get(name) is opened:
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

    if not any(place in sys.modules for place, _ in _SERVERS):
        for place, _ in _SERVERS:
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
        making.kept.append(server)
        raise _Runs

    return stopping


def _parking(opened):
    """`async with stdio_server() as (read, write)`: the worker's own input is none of a server's."""
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
        if making is None or not _is_free():
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
