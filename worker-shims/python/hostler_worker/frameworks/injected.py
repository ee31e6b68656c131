"""Parameters that a framework gives, and not its caller: which they are, and what makes their values in a call. hostler's own reading
(`discovery/python/frameworks/injected.rs`) leaves the same ones out of the schema."""

from ..convert import annotations_of
from ..types import Builder
from .behind import package_of, unwrapped

_MCP = ("fastmcp", "mcp")
_LANGCHAIN = ("langchain", "langchain_core", "langgraph")
_AGNO = frozenset(("agent", "team", "run_context", "session_state", "dependencies"))
_DEEPEST = 8


def given_to(function, module, package=""):
    """By parameter, a callable that makes its value; a coroutine function where that takes an event loop. `package` is that of what the
    framework made of the function, or of its class."""
    inner = unwrapped(function)
    code = getattr(inner, "__code__", None)
    if code is None:
        return {}
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    builder = Builder(getattr(inner, "__globals__", module.__dict__))
    hints = {name: builder.resolve(hint) for name, hint in annotations_of(inner).items()}
    defaults = _defaults_of(inner, code)
    found = {}
    for name in names:
        default = (defaults[name],) if name in defaults else ()
        give = _of_default(defaults.get(name), module) or _of_hint(hints.get(name), name, module, default, _DEEPEST) \
            or _of_name(name, module, package)
        if give is _own_default and default:
            continue
        if give is not None:
            found[name] = give
    return found


def _defaults_of(function, code):
    positional = function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(positional):code.co_argcount]
    return {**dict(zip(names, positional)), **(function.__kwdefaults__ or {})}


def _own_default():
    """Nothing better than the default is there."""
    return None


def _of_default(value, module):
    """`Depends(connect)`, `CurrentContext()`"""
    kind = type(value)
    if value is None or package_of(kind) not in ("fastmcp", "fastapi", "uncalled_for", "docket", "mcp"):
        return None
    from . import dependencies

    return dependencies.of(value, module)


def _of_hint(hint, name, module, default, left):
    """`default` is that of the parameter, in a tuple where it has one."""
    if hint is None or not left:
        return None
    for note in getattr(hint, "__metadata__", ()):
        give = _of_note(note, name, module, default)
        if give is not None:
            return give
    args = getattr(hint, "__args__", ())
    origin = getattr(hint, "__origin__", None)
    if hasattr(hint, "__metadata__"):
        return _of_hint(origin, name, module, default, left - 1)
    kind = origin if isinstance(origin, type) else hint
    if isinstance(kind, type):
        give = _of_class(kind, module)
        if give is not None:
            return give
    if args and getattr(origin, "__name__", "UnionType") in ("Union", "UnionType", "Optional"):
        return next((give for arg in args if (give := _of_hint(arg, name, module, default, left - 1)) is not None), None)
    return None


def _of_class(kind, module):
    # `Context[Session, None]` of the SDK is a class of the module that writes it.
    kind = (getattr(kind, "__pydantic_generic_metadata__", None) or {}).get("origin") or kind
    package, name = package_of(kind), kind.__name__
    if name == "Context" and package in _MCP:
        from . import mcp

        return mcp.context_of(kind, module)
    if name in ("RunContextWrapper", "ToolContext") and package == "agents":
        from . import openai_agents

        return lambda: openai_agents.context(kind)
    if package in _LANGCHAIN and name in ("RunnableConfig", "ToolRuntime", "CallbackManagerForToolRun", "AsyncCallbackManagerForToolRun"):
        from . import langchain

        return lambda: langchain.of_type(kind)
    known = {("agno", "RunContext"): "agno_context", ("pydantic_ai", "RunContext"): "pydantic_ai_context",
             ("autogen_core", "CancellationToken"): "cancellation_token", ("strands", "ToolContext"): "strands_context",
             ("starlette", "Request"): "nothing", ("fastapi", "Request"): "nothing", ("llama_index", "Context"): "nothing",
             ("workflows", "Context"): "nothing", ("google", "ToolContext"): "adk_context",
             ("google", "Context"): "adk_context", ("google", "CallbackContext"): "adk_context", ("livekit", "RunContext"): "nothing"}.get((package, name))
    if known is None:
        return None
    from . import others

    make = getattr(others, known)
    return lambda: make(kind)


def _of_note(note, name, module, default):
    """`Annotated[str, InjectedToolArg]`, and what is made from that class; `Annotated[Client, Depends(connect)]`"""
    kind = note if isinstance(note, type) else type(note)
    if any(base.__name__ == "InjectedToolArg" for base in kind.__mro__):
        from . import langchain

        return lambda: langchain.injected(kind, note, name, default)
    return _of_default(note, module)


def _of_name(name, module, package):
    if len(name) > 4 and name.startswith("__") and name.endswith("__"):
        from . import open_webui

        return open_webui.given(name, module) or _own_default
    if name in _AGNO and package == "agno":
        from . import others

        return others.of_agno(name)
    if name == "agent" and package == "strands":
        return _own_default
    return None
