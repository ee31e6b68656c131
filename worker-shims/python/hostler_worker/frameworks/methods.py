"""Methods as tools, and classes that are one: `Tools.search`, `WeatherTool`. One instance is made by the first call that needs it."""

import gc
from threading import RLock
from types import FunctionType

import hostler

from ..loading import FRAMEWORKS, Function
from . import around
from .behind import behind, package_of, unwrapped, within
from .calling import calling, current_for, of_framework, uncopied
from .injected import given_to

_RUN = ("_run", "_arun", "forward")
_INSTANCES = ("self", "cls", "this", "_self", "_cls")


def named(module, symbol):
    """The function of a symbol that hostler read in the file: `Class.method`, `instance.method`, `Class`, `instance`; None when there
    is no such thing."""
    if symbol.startswith("typer.run:"):
        from .commands import run_by_typer

        return Function(symbol, run_by_typer(module.__dict__[symbol.partition(":")[2]]))
    if symbol.startswith("agno:"):  # an agent of agno is given the function itself
        function = module.__dict__[symbol.partition(":")[2]]
        return Function(symbol, calling(function, given_to(function, module, "agno")))
    if symbol.startswith("tool_spec:"):
        from . import strands

        return strands.named(module, symbol)
    if symbol.startswith("made:"):
        from . import inner

        return inner.named(module, symbol)
    if symbol.startswith("beside:"):
        from . import beside

        return beside.named(module, symbol)
    if symbol.startswith(("call_tool:", "on_call_tool:")):
        from . import low_level

        return low_level.named(module, symbol)
    of_file, head = (True, symbol[len("held:"):]) if symbol.startswith("held:") else (False, symbol)
    head, _, name = head.partition(".")
    owner = module.__dict__.get(head)
    if owner is None:
        return None
    holder = _Held(owner) if of_file else Made(owner) if isinstance(owner, type) else _There(owner)
    if not name:
        run = next((run for run in _RUN if _overrides(holder.kind, run)), None)
        return run and Function(symbol, _calling(holder, run, module, is_whole=True))
    method = getattr(holder.kind, name, None)
    if not callable(method) and package_of(type(method)) not in FRAMEWORKS:
        return None
    return Function(symbol, _calling(holder, name, module, is_whole=False))


def _overrides(kind, name):
    """Whether the author defined it, and not the framework."""
    owner = next((base for base in kind.__mro__ if name in base.__dict__), None)
    return owner is not None and package_of(owner) == package_of(kind)


class _There:
    """An instance that the file has made."""

    def __init__(self, instance):
        self.instance, self.kind = instance, type(instance)

    def get(self):
        return self.instance


_made = {}
_making = RLock()


class Made:
    """An instance that is made once, and without arguments."""

    def __init__(self, kind):
        self.kind = kind

    def get(self):
        with _making:
            if self.kind not in _made:
                _made[self.kind] = self.make()
            return _made[self.kind]

    def make(self):
        return self.kind()


class _Held(Made):
    """The only instance of a class that the file has made without a name, and something holds."""

    def make(self):
        there = [one for one in gc.get_objects() if type(one) is self.kind]
        if len(there) != 1:
            raise RuntimeError(_why_not_one(self.kind.__name__, len(there)))
        return there[0]


def _why_not_one(name, count):
    what = "nothing holds the `%s` that the file has made" % name if not count else "the file has made %d instances of `%s`" % (count, name)
    return "%s; give the one with the tools a name: `tools = %s(…)`" % (what, name)


def _calling(holder, name, module, is_whole):
    """`is_whole` says that the instance is the tool, and describes its arguments."""
    raw = next((base.__dict__[name] for base in holder.kind.__mro__ if name in base.__dict__), None)
    function = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
    if not hasattr(function, "__code__"):
        function = behind(function, None) or function
    package = "agno" if any(package_of(base) == "agno" for base in holder.kind.__mro__) else ""
    given = given_to(function, module, package)
    function = uncopied(function, given)
    begin, current = around(module)
    if type(raw) not in (FunctionType, staticmethod, classmethod) and not _takes_instance(function):
        return current_for(calling(function, given, raw, begin), current)  # decorated, in a class that only gathers tools

    def method(*args, **kwargs):
        if isinstance(raw, (staticmethod, classmethod)):
            return getattr(holder.kind, name)(*args, **kwargs)  # without an instance, whose constructor may need arguments
        instance = holder.get()
        _fill_valves(instance)
        if is_whole:
            if getattr(instance, "is_initialized", True) is False:  # smolagents
                instance.setup()
            complete = of_framework(instance)[0]
            kwargs = kwargs if complete is None else complete(kwargs)
        bound = getattr(instance, name)
        try:
            return (bound if callable(bound) else function.__get__(instance))(*args, **kwargs)
        except NotImplementedError as error:  # LangChain: for agents that wait
            within = error.__traceback__.tb_next
            if name != "_run" or within is None or within.tb_next is not None or not _overrides(holder.kind, "_arun"):
                raise
            return instance._arun(*args, **kwargs)

    method.__wrapped__ = function
    own = raw if package_of(type(raw)) == "strands" else None  # a decorated method
    return current_for(calling(method, given, own, begin), current)


def _takes_instance(function):
    code = getattr(unwrapped(function), "__code__", None) or getattr(within(function, None), "__code__", None)
    return code is None or code.co_argcount > 0 and code.co_varnames[0] in _INSTANCES


_valves = {}  # the settings that each instance was given last; instances live as long as the worker


def _fill_valves(instance):
    """Open WebUI: the settings of a tool are the fields of its class `Valves`."""
    valves = getattr(type(instance), "Valves", None)
    fields = getattr(valves, "model_fields", None)
    if fields is None:
        return
    given = {name: value for name, value in hostler.config.items() if name in fields}
    if _valves.get(id(instance)) != given:
        instance.valves = valves(**given)
        _valves[id(instance)] = given
