"""Tools that a function of the file makes when it is called: `def create_server(): … @mcp.tool …`, `def register(mcp): …`. It is called
once, by the first call that needs one of its tools, unless the file has called it."""

import gc
import sys
import threading
from types import FunctionType
from weakref import WeakSet

from ..loading import FRAMEWORKS, NEWLOCALS, Function, inner_codes
from ..state import state
from .behind import package_of, unwrapped, within
from .calling import calling, current_for
from .injected import given_to

_MCP = ("fastmcp", "mcp")
_SERVERS = (("fastmcp", "FastMCP"), ("mcp.server.fastmcp", "FastMCP"), ("mcp.server", "MCPServer"), ("mcp.server.mcpserver", "MCPServer"))
_RUNS = ("run", "run_async", "run_stdio_async", "run_sse_async", "run_http_async", "run_streamable_http_async")
_results = {}  # by module and maker that has ended: what it made and what it was given, which live as long as the worker
_functions = {}  # by module and maker: its functions by their code, as they were for the first of its tools. Another maker may call it again
_failed = WeakSet()  # functions that a maker made before it failed
_making = threading.RLock()
_own = threading.local()  # `kept` while this thread makes tools


class _Runs(BaseException):
    """Instead of running a server: it has its tools."""


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
    calls the maker with what it needs, which is `WAY`, `PLACE/FUNCTION`, or if that is empty the top level of the tool file, `host`."""
    way, rest = None, symbol.partition(":")[2]
    if ">" in rest:
        way, _, rest = rest.rpartition(">")
    maker, line, name = rest.split(":", 2)
    return Later(symbol, lambda: _found(module, maker, int(line), name, host or module, way))


def _found(module, maker, line, name, host, way):
    from .mcp import current_of, lifespan_of

    owner, _, method = maker.partition(".")
    owner = module.__dict__[owner]
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
        raise RuntimeError(_why_not_one(maker, name, len(functions), way))
    own = module.__name__, state.module_name
    made = list(_within_reach(_results.get(by, ()), own))
    value = next((one for one in [*made, *_within_reach(list(module.__dict__.values()), own)]
                  if package_of(type(one)) in FRAMEWORKS and package_of(type(one)) not in _MCP and within(one, [code])), None)
    # Where the server is looked for: its own before those of the file.
    scope = type(module)(module.__name__)
    scope.__dict__.update({"made %d" % place: one for place, one in enumerate(made)}, **module.__dict__)
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
    def make(kept):
        if method:
            kept += _by_method(module, owner, method, codes)
        else:
            given = _required(module, owner)
            kept += [owner(*given), *given]

    return _making_tools(make, codes)


def _by_way(host, way, codes):
    """Calls the function that calls the maker. Where the file does so when it runs, that has happened."""
    from .beside import neighbour

    place, _, function = way.rpartition("/")
    if not function:
        return []
    by = neighbour(host, place).__dict__[function]
    return _making_tools(lambda kept: kept.append(by()), codes)


def _making_tools(make, codes):
    _stop_at_runs()
    _own.kept = kept = []
    try:
        make(kept)
    except _Runs:
        pass
    except BaseException:
        for code in codes:
            _failed.update(_functions_of(code))
        raise
    finally:
        del _own.kept
    return kept


def _by_method(module, owner, method, codes):
    from .methods import Made

    there = [one for one in list(module.__dict__.values()) if type(one) is owner]
    instance = there[0] if there else Made(owner).get()
    is_made = any(_functions_of(code) for code in codes)
    return [instance, None if is_made else getattr(instance, method)()]


def _required(module, function):
    """A server, where the function needs one."""
    inner = unwrapped(function)
    code = inner.__code__
    count = code.co_argcount - len(inner.__defaults__ or ())
    if not count:
        return ()
    from .mcp import server_of

    server = server_of(module)
    return (_Server() if server is None else server,)


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
    """From now on, a server that is run while tools are made on this thread is kept instead, and its function ends there."""
    _import_servers()
    for place, name in _SERVERS:
        kind = getattr(sys.modules.get(place), name, None)
        for method in _RUNS if kind is not None else ():
            run = getattr(kind, method, None)
            if run is not None and not hasattr(run, "_hostler_run"):
                setattr(kind, method, _stopping(run))


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
    def stopping(server, *args, **kwargs):
        kept = getattr(_own, "kept", None)
        if kept is None:
            return run(server, *args, **kwargs)
        kept.append(server)
        raise _Runs

    stopping._hostler_run = run
    return stopping
