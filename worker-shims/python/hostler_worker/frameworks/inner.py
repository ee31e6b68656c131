"""Tools that a function of the file makes when it is called: `def create_server(): … @mcp.tool …`, `def register(mcp): …`. It is called
once, by the first call that needs one of its tools, unless the file has called it."""

import sys
from threading import RLock

from ..loading import Function
from .behind import package_of, referring_to, unwrapped, within
from .calling import calling, current_for
from .injected import given_to

_SERVERS = (("fastmcp", "FastMCP"), ("mcp.server.fastmcp", "FastMCP"), ("mcp.server", "MCPServer"), ("mcp.server.mcpserver", "MCPServer"))
_RUNS = ("run", "run_async", "run_stdio_async", "run_sse_async", "run_http_async", "run_streamable_http_async")
_results = {}  # by maker: what it made and what it was given, which live as long as the worker
_making = RLock()


class _Runs(BaseException):
    """Instead of running a server: it has its tools."""


class _Made(Function):
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


def named(module, symbol):
    """The tool of a symbol `made:MAKER:NAME`."""
    _, maker, name = symbol.split(":", 2)
    return _Made(symbol, lambda: _found(module, maker, name))


def _found(module, maker, name):
    from .mcp import current_of, lifespan_of

    owner, _, method = maker.partition(".")
    owner = module.__dict__[owner]
    holder = getattr(owner, method) if method else owner
    code = _code_within(unwrapped(getattr(holder, "__wrapped__", holder)).__code__, name)
    if referring_to([code]) is None:
        _make(module, maker, owner, method, code)
    function = referring_to([code])
    if function is None:
        raise RuntimeError("`%s` did not make the tool `%s`" % (maker, name))
    made = list(_made_by(maker))
    value = next((one for one in made if package_of(type(one)) not in ("fastmcp", "mcp", "") and within(one, [code])), None)
    # Where the server is looked for: its own before those of the file.
    scope = type(module)(module.__name__)
    scope.__dict__.update({"made %d" % place: one for place, one in enumerate(made)}, **module.__dict__)
    call = calling(function, given_to(function, scope, package_of(type(value))), value, lifespan_of(scope))
    return current_for(call, current_of(scope))


def _made_by(maker):
    """What it has made, and what that has."""
    for result in _results.get(maker, ()):
        yield result
        if isinstance(result, dict):
            yield from list(result.values())
        elif isinstance(result, (list, tuple, set)):
            yield from list(result)
        elif package_of(type(result)).startswith("_hostler_tool_"):
            yield from list(getattr(result, "__dict__", {}).values())


def _code_within(code, name):
    for const in code.co_consts:
        if type(const) is type(code):
            found = const if const.co_name == name else _code_within(const, name)
            if found is not None:
                return found
    return None


def _make(module, maker, owner, method, code):
    _results[maker] = kept = []
    with _NotRun(kept):
        if not method:
            given = _required(module, owner)
            kept += [owner(*given), *given]
            return
        from .methods import Made

        instance = Made(owner).get()
        kept.append(instance)
        if referring_to([code]) is None:
            getattr(instance, method)()


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


class _NotRun:
    """Within it, servers are kept instead of run: the function ends there."""

    def __init__(self, kept):
        self.kept = kept

    def __enter__(self):
        kinds = {getattr(sys.modules.get(place), name, None) for place, name in _SERVERS}
        self.before = [(kind, name, kind.__dict__.get(name)) for kind in kinds - {None} for name in _RUNS if hasattr(kind, name)]
        for kind, name, _ in self.before:
            setattr(kind, name, _stop)

    def __exit__(self, kind, error, trace):
        for owner, name, method in self.before:
            delattr(owner, name) if method is None else setattr(owner, name, method)
        if kind is _Runs:
            self.kept += error.args
        return kind is _Runs


def _stop(server, *_, **__):
    raise _Runs(server)
