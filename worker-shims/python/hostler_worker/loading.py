"""The tool file as a module, and which of its functions are tools."""

import os
import sys

from . import package
from .state import state

MARK = "__hostler__"  # what `hostler.resource` and `hostler.prompt` leave on a function
# Packages whose decorators leave something else than a function, or whose functions want more than callers give.
FRAMEWORKS = frozenset((
    "fastmcp", "mcp", "mcp_types", "langchain", "langchain_core", "langgraph", "agents", "smolagents", "agno", "strands", "llama_index",
    "autogen_core", "crewai", "pydantic_ai", "haystack", "semantic_kernel", "anthropic", "claude_agent_sdk", "claude_code_sdk",
    "click", "rich_click", "typer", "camel",
))
PREFIX = "_hostler_tool_"  # shadows nothing anybody imports
NEWLOCALS = 0x2  # set on the code of functions, not on that of class bodies


class Functions(dict):
    """By name. Methods and classes that are tools are looked up when they are called."""

    def __missing__(self, name):
        from .frameworks.methods import named

        function = named(sys.modules[state.module_name], name)
        if function is None:
            raise KeyError(name)
        self[name] = function
        return function


class Function:
    """One tool. `plan` is None when every argument passes as it came."""

    __slots__ = ("name", "call", "cut", "_plan", "_planned")

    def __init__(self, name, call):
        self.name = name
        self.call = call
        self.cut = None  # what cuts a result to the model that the function declares; known with the plan
        self._planned = False

    @property
    def plan(self):
        if not self._planned:
            from .convert import plan_of

            try:
                self._plan = plan_of(self.call, sys.modules[state.module_name].__dict__)
            except Exception:
                self._plan = None  # annotations that fail to be read: arguments pass as they come
            if "pydantic" in sys.modules:
                from .cutting import cut_of

                self.cut = cut_of(self.call)
            self._planned = True
        return self._plan

    def call_converted(self, kwargs):
        args, kwargs = self._plan.apply(kwargs)
        return self.call(*args, **kwargs)


def load(path, source=None, is_program=False):
    """Import the tool file; (functions by name, None) or (None, what went wrong). A program is not imported: its calls run it."""
    folder = os.path.dirname(path)
    _take_python_path()
    if folder not in sys.path:
        sys.path.append(folder)  # last: `markdown.py` shall still import the real `markdown`
    stem = os.path.splitext(os.path.basename(path))[0]
    state.module_name = name = PREFIX + stem
    module = type(sys)(name)
    module.__file__ = path
    sys.modules[name] = module  # before it runs: dataclasses and pickle look there
    name_in_package = package.place(module, folder, source or path)
    try:
        code = compiled(path, source)
        if is_program:
            sys.modules[name_in_package] = module
            from .program import running

            return Functions(main=Function("main", running(code, path))), None
        state.guard -= 1  # the author's code: a print here may be interrupted like any other
        try:
            package.run(module, name_in_package, source or path, lambda module: exec(code, module.__dict__))
        finally:
            state.guard += 1
        return _tools(module, code), None
    except BaseException as error:
        if state.terminating:
            raise
        return None, error


def _take_python_path():
    """`-I` ignores the variable. Its folders come after the standard library, which the shim imports from, and before packages."""
    listed = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # A relative folder would be below the client's working directory.
    folders = [folder for folder in listed if os.path.isabs(folder) and folder not in sys.path]
    if folders:
        place = next((place for place, known in enumerate(sys.path) if known.endswith("-packages")), len(sys.path))
        sys.path[place:place] = folders


def compiled(path, source=None):
    """The code of a tool file; of the text in another file, where that one keeps what this one held."""
    with open(source or path, "rb") as file:
        text = file.read()
    # From bytes, so that BOM and coding line are read by Python's own rules.
    return compile(text, path, "exec", dont_inherit=True)


def inner_codes(code):
    """The code of what a body defines, one level down."""
    for const in code.co_consts:
        if type(const) is type(code):
            if const.co_name.startswith("<generic parameters of "):  # def f[T](...)
                yield from inner_codes(const)
            else:
                yield const


def _tools(module, code):
    # What a top-level `def` made, however decorated; an imported name is never among it.
    made_here = {}
    for const in inner_codes(code):
        if const.co_flags & NEWLOCALS:
            made_here.setdefault(const.co_name, []).append(const)
    names = getattr(module, "__all__", None)
    if not isinstance(names, (list, tuple)):
        names = [name for name in made_here if not name.startswith("_")]
    # Resources and prompts need no other sign than their decorator.
    names = dict.fromkeys(name for name in names if isinstance(name, str))
    names.update((name, None) for name in made_here if getattr(getattr(module, name, None), MARK, None) is not None)
    found, strange = Functions(), False
    for name in names:
        value = getattr(module, name, None)
        if callable(value) and not isinstance(value, type) and (
            name in made_here or getattr(value, "__module__", None) == module.__name__
        ):
            found[name] = Function(name, value)
        elif name in made_here and value is not None and type(value).__name__ != "TypeAliasType":  # `type Ids[T] = list[T]`
            strange = True
    if strange or not FRAMEWORKS.isdisjoint(sys.modules):
        from .frameworks import adapt

        adapt(found, module, made_here)
    return found
