"""Tools that a function of the file makes when it is called: `def create_server(): … @mcp.tool …`, `def register(mcp): …`. It is called
once, by the first call that needs one of its tools, unless the file has called it."""

import gc
import sys
import threading
from types import FunctionType, MethodType
from weakref import ref

from ..convert import annotations_of
from ..loading import FRAMEWORKS, NEWLOCALS, Function, inner_codes
from ..state import state
from .behind import outermost, package_of, unwrapped, within, wrapping
from .calling import calling, current_for
from .injected import given_to
from .runs import Making

_MCP = ("fastmcp", "mcp")
_results = {}  # by module and what was called, the maker or the way to it: what it made and was given, which lives as long as the worker
_functions = {}  # by module, maker and perhaps method: its functions, as they were for the first of its tools. Another maker may call it again
_failed = []  # weak references to functions and bound methods that a maker made before it failed
_making = threading.RLock()


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
    by = (module.__name__, maker) if way is None else (host.__name__, way)
    find = _bound_method if name.startswith(".") else _inner_function
    code, functions = find(module, maker, line, name, host, way, by)
    if len(functions) != 1:
        raise RuntimeError(_why_not_one(maker, tool or name.lstrip("."), len(functions), way))
    own = module.__name__, state.module_name
    made = list(_within_reach(_results.get(by, ()), own))
    there = [*made, *_within_reach(list(module.__dict__.values()), own)]
    value = next((one for one in there
                  if package_of(type(one)) in FRAMEWORKS and package_of(type(one)) not in _MCP and within(one, [code])), None)
    function = functions[0]
    if type(function) is FunctionType:
        function = _as_decorated(function, tuple(one for one in _beside(_code_of(module, maker), code) if one is not code), made, there)
    # Where the server is looked for: its own before those of the file.
    scope = type(module)(module.__name__)
    scope.__dict__.update({"made %d" % place: one for place, one in enumerate(made)}, **module.__dict__)
    if tool:
        from .low_level import handled, is_of_second_sdk, requested

        call = requested(function, tool, scope) if is_of_second_sdk() else handled(function, tool, lifespan_of(scope))
    else:
        call = calling(function, given_to(function, scope, package_of(type(value))), value, lifespan_of(scope))
    return current_for(call, current_of(scope))


def _as_decorated(function, beside, made, there):
    """What the author's decorators have made of a function: a guard is part of the tool."""
    is_it = lambda one: one is function or type(one) is FunctionType and _is_copy(one, function)
    of_frameworks = [one for one in there if package_of(type(one)) in FRAMEWORKS]
    found = (outermost(holders, is_it, beside) for holders in (of_frameworks, made))
    decorated = next((one for one in found if one is not None), None)
    if decorated is None:
        decorated = wrapping(function, beside)
    if type(decorated) is FunctionType and unwrapped(decorated).__code__ is function.__code__:
        return decorated

    def call(*args, **kwargs):
        return decorated(*args, **kwargs)

    call.__wrapped__ = function  # whose parameters and types are those of the tool
    return call


def _is_copy(one, other):
    """Whether a function was made anew of another one, as FastMCP does to write notes into annotations."""
    return one.__code__ is other.__code__ and one.__annotations__ != other.__annotations__ and _is_alike(one, other)


def _is_alike(one, other):
    """Whether two functions of one code do the same."""
    inside = lambda function: (*map(id, function.__closure__ or ()), *map(id, function.__defaults__ or ()),
                               *(id(value) for value in (function.__kwdefaults__ or {}).values()))
    return one.__globals__ is other.__globals__ and inside(one) == inside(other)


def _inner_function(module, maker, line, name, host, way, by):
    """The code of a function that the maker defines, and the functions of it that are made."""
    owner, _, method = maker.partition(".")
    owner = _program(module.__dict__[owner])
    codes = list(_codes_within(_code_of(module, maker)))
    code = next((code for code in codes if code.co_name == name and code.co_firstlineno == line), None)
    if code is None:
        raise RuntimeError("`%s` is not what the file defines by that name" % maker)
    key = module.__name__, maker
    if key not in _functions:
        found = lambda: [one for code in codes for one in _functions_of(code)]
        if not found() and by not in _results:
            _results[by] = _made_tools(_made_by(module, owner, method, found) if way is None else _called_by(host, way), found)
        gc.collect()  # without those of earlier makings that nothing holds
        _functions[key] = {code: _functions_of(code) for code in codes}
    functions = _functions[key]
    functions[code] = _without_copies(functions[code])
    if not functions[code]:  # perhaps another branch defines it
        others = [other for other in codes if other.co_name == name and functions[other]]
        code = others[0] if len(others) == 1 else code
    return code, functions[code]


def _bound_method(module, maker, line, name, host, way, by):
    """The code of a method of the maker's class, and the bound methods of it that a server has, or that making tools has left."""
    owner, _, method = maker.partition(".")
    owner, name = module.__dict__[owner], name[1:]
    function = owner.__dict__.get(name)
    code = getattr(unwrapped(function), "__code__", None)
    if code is None:
        raise RuntimeError("`%s` is not what the file defines by that name" % maker)
    key = module.__name__, maker, name
    if key not in _functions:
        earlier = _all_bound(function)
        values = [*module.__dict__.values(), *host.__dict__.values()]
        of_servers = lambda: _bound(function, [*values, *_within_reach(_results.get(by, ()), (module.__name__,))])
        # What the constructor of the file's instance has given an agent is there, too.
        are_there = lambda: of_servers() or way is None and method == "__init__" and _all_bound(function)
        if not are_there() and by not in _results:
            make = _made_by(module, owner, method, are_there) if way is None else _called_by(host, way)
            _results[by] = _made_tools(make, lambda: _all_bound(function))
        gc.collect()
        _functions[key] = of_servers() or _since(function, earlier)
    return code, _functions[key]


def _why_not_one(maker, name, count, way):
    if count:
        return "`%s` has made the tool `%s` %d times; call it once" % (maker, name, count)
    if way is None:
        return "`%s` makes the tool `%s` under other conditions only; make it under all" % (maker, name)
    by = way.rpartition("/")[2]
    missing = "`%s` did not call `%s`" % (by, maker) if by else "`%s` was not called while the file was loaded" % maker
    return "the tool `%s` was not made: %s, or not so that it makes it" % (name, missing)


def _code_of(module, maker):
    owner, _, method = maker.partition(".")
    owner = _program(module.__dict__[owner])
    return unwrapped(getattr(owner, method) if method else owner).__code__


def _beside(outer, code):
    """The codes that are defined where this one is, with it."""
    inner = list(inner_codes(outer))
    return inner if code in inner else next(filter(None, (_beside(one, code) for one in inner)), [])


def _codes_within(code):
    """Those of the functions in a function, also of functions within these; not of methods."""
    for const in inner_codes(code):
        if const.co_flags & NEWLOCALS:
            yield const
            yield from _codes_within(const)


def _without_copies(functions):
    return [one for place, one in enumerate(functions) if not any(_is_alike(one, other) for other in functions[:place])]


def _functions_of(code):
    return [one for one in gc.get_referrers(code) if type(one) is FunctionType and one.__code__ is code and not _has_failed(one)]


def _bound(function, values):
    """The bound methods of a function that servers among these have."""
    servers = {id(one): one for one in values if package_of(type(one)) in _MCP}
    found = (within(server, [unwrapped(function).__code__]) for server in servers.values())
    return list({id(one.__self__): one for one in found if type(one) is MethodType and not _has_failed(one)}.values())


def _since(function, earlier):
    """The bound methods of a function that were not there earlier, one for each instance; all where none is new."""
    found = _all_bound(function)
    new = [one for one in found if not any(one is other for other in earlier)] or found
    return list({id(one.__self__): one for one in new}.values())


def _all_bound(function):
    return [one for one in gc.get_referrers(function) if type(one) is MethodType and one.__func__ is function and not _has_failed(one)]


def _has_failed(made):
    return any(failed() is made for failed in _failed)


def _within_reach(results, own):
    """What there is, and what that has."""
    for result in results:
        yield result
        if isinstance(result, dict):
            yield from list(result.values())
        elif isinstance(result, (list, tuple, set)):
            yield from list(result)
        elif type(result) is _Server:
            yield from result._kept
        elif getattr(type(result), "__module__", None) in own:
            yield from list(getattr(result, "__dict__", {}).values())


def _made_by(module, owner, method, is_made):
    """What calls the maker."""
    def make(making):
        if not method:
            given = _required(module, owner)
            making.kept += given
            making.kept.append(making.finish(owner(*given)))
            return
        from .methods import Made

        there = [one for one in list(module.__dict__.values()) if type(one) is owner]
        instance = there[0] if there else Made(owner).get()
        making.kept.append(instance)
        if method != "__init__" and not is_made():
            making.kept.append(making.finish(getattr(instance, method)()))

    return make


def _called_by(host, way):
    """What calls the function that calls the maker. Where the file does so when it runs, that has happened."""
    from .beside import neighbour

    place, _, function = way.rpartition("/")
    if not function:
        by = _nothing
    elif function == "__main__":
        by = _as_program(neighbour(host, place))
    else:
        by = _program(neighbour(host, place).__dict__[function])
    return lambda making: making.kept.append(making.finish(by()))


def _nothing():
    pass


def _as_program(module):
    """What runs the statements of a file under `if __name__ == "__main__":`."""
    import ast

    def run():
        # What the tool file held when it was loaded.
        source = state.source if module.__file__ == state.tool_file else None
        with open(source or module.__file__, "rb") as file:
            tree = ast.parse(file.read())
        guards = [block for block in tree.body if isinstance(block, ast.If) and ast.unparse(block.test) == "__name__ == '__main__'"]
        if len(guards) == 1:
            futures = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
            exec(compile(ast.Module([*futures, *guards[0].body], []), module.__file__, "exec"), module.__dict__)

    return run


def _program(value):
    """What runs a command of click or typer with the file's command line, as its program does; anything else as it is."""
    of_click = package_of(type(value)) == "click"
    command = value if of_click else _command_of_typer(value)
    if command is None:
        return value

    def run_program(*_):  # faults.py knows it by its name
        return command.main(args=sys.argv[1:], prog_name=command.name, standalone_mode=False)

    run_program.__wrapped__ = value.callback if of_click else value
    return run_program


def _command_of_typer(value):
    """The command that typer makes of a function that describes its options to it."""
    typer = sys.modules.get("typer")
    if typer is None or type(value) is not FunctionType:
        return None
    notes = [note for hint in annotations_of(value).values() for note in getattr(hint, "__metadata__", ())]
    described = [*notes, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if not any(package_of(type(one)) == "typer" for one in described):
        return None
    app = typer.Typer(add_completion=False)
    app.command()(value)
    return typer.main.get_command(app)


def _made_tools(make, found):
    """Has tools made, and returns what that leaves. If it fails, what `found` returns then is never used."""
    making = Making()
    try:
        making.run(make)
    except BaseException:
        _failed.extend(map(ref, found()))
        raise
    return making.kept


def _required(module, function):
    """A server, where the function needs one, and nothing where it accepts that."""
    inner = unwrapped(function)
    code = inner.__code__
    names = code.co_varnames[:code.co_argcount - len(inner.__defaults__ or ())]
    if not names:
        return []
    from .mcp import server_of

    hints = annotations_of(inner)
    return [None if _accepts_none(hints.get(name)) else server_of(module) or _Server() for name in names]


def _accepts_none(hint):
    """`Path | None`, also as a string; not `FastMCP | None`."""
    text = hint if isinstance(hint, str) else "" if hint is None else repr(hint)
    return ("None" in text or "Optional" in text) and "MCP" not in text and "Server" not in text


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
