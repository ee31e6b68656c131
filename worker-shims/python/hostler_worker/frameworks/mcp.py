"""The `Context` of FastMCP and of the official SDK of MCP, made of what hostler has: log, progress, questions to the user and the model."""

import asyncio
import sys
from types import SimpleNamespace

import hostler

from .behind import package_of
from .call import call_id, source

_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LEVEL = {"notice": "info", "critical": "error", "alert": "error", "emergency": "error"}


class _NotThere(hostler.HostlerError, AttributeError):
    """So that `hasattr` and `getattr` with a default work. Tracebacks show it as AttributeError."""

    __module__, __qualname__ = "builtins", "AttributeError"


def context_of(kind, module):
    """What gives a context. Where the server has a lifespan, that is begun by the first call and ends with the worker."""
    server = server_of(module)
    lifespan = _lifespan_of(server)
    if lifespan is None:
        return lambda: Context(server, None, kind)
    return _WithLifespan(server, lifespan, kind)


def lifespan_of(module):
    """What begins the lifespan of a file's server, which its tools rely on whether or not they have a context; None without one."""
    server = server_of(module)
    lifespan = _lifespan_of(server)
    return lifespan and _WithLifespan(server, lifespan, None).begin


def current_of(module):
    """What makes a context the current one for a call, where the file asks for it; None elsewhere."""
    text = source()
    if b"get_context" not in text and b"request_context" not in text:
        return None
    server = server_of(module)
    return lambda: _Current(Context(server, None, None))


class _Current:
    """Where FastMCP and the SDK look for the current context. What only one of their releases has is left out."""

    def __init__(self, context):
        self._context = context
        self._set = []

    def __enter__(self):
        for name, variable, value in (("fastmcp.server.context", "_current_context", self._context),
                                      ("mcp.server.lowlevel.server", "request_ctx", self._context.request_context)):
            found = getattr(sys.modules.get(name), variable, None)
            if hasattr(found, "set"):
                self._set.append((found, found.set(value)))

    def __exit__(self, *_):
        for variable, token in self._set:
            variable.reset(token)


def server_of(module):
    servers = (value for value in list(module.__dict__.values())
               if package_of(type(value)) in ("fastmcp", "mcp") and type(value).__name__ in ("FastMCP", "MCPServer", "Server"))
    return next(servers, None)


def _lifespan_of(server):
    own = getattr(server, "_lifespan", None) or getattr(getattr(server, "settings", None), "lifespan", None) or getattr(server, "lifespan", None)
    is_usual = getattr(own, "__name__", "") == "default_lifespan" or str(getattr(own, "__module__", "")).startswith("mcp.")
    return None if is_usual or not callable(own) else own


class _WithLifespan:
    is_async = True
    begun = {}  # by server: the task that holds it open, and what it gave

    def __init__(self, server, lifespan, kind):
        self.server, self.lifespan, self.kind = server, lifespan, kind

    async def __call__(self, stack):
        return Context(self.server, await self.begin(), self.kind)

    @classmethod
    def value_of(cls, server):
        """What its lifespan gave, once that has begun."""
        _, ready = cls.begun.get(id(server), (None, None))
        return ready.result() if ready is not None and ready.done() and not ready.exception() else None

    async def begin(self):
        key = id(self.server)
        if key not in self.begun:
            ready = asyncio.get_running_loop().create_future()
            self.begun[key] = (asyncio.create_task(self._hold(ready)), ready)
        begun = self.begun[key]
        try:
            return await asyncio.shield(begun[1])
        except BaseException:
            if begun[1].done() and self.begun.get(key) is begun:
                del self.begun[key]  # the next call tries again
            raise

    async def _hold(self, ready):
        """One task enters and leaves it, as cancel scopes demand."""
        over = asyncio.Event()
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        try:
            async with self.lifespan(self.server) as value:
                import atexit

                atexit.register(lambda: (over.set(), loop.is_running() or loop.is_closed() or loop.run_until_complete(task)))
                ready.set_result(value)
                await over.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)


class _Given:
    """Lists what it has where a file asks for more."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        known = sorted(word for word in {*dir(type(self)), *vars(self)} if not word.startswith("_"))
        raise _NotThere("the %s that hostler gives has no `%s`; it has: %s" % (self._called, name, ", ".join(known)))


class Context(_Given):
    """What FastMCP and the SDK give to a tool. What is asked of the client is asked by hostler."""

    _called = "context"

    def __init__(self, server, lifespan, kind):
        self._server, self._lifespan, self._kind = server, lifespan, kind

    # What happens

    async def log(self, level_or_message, message=None, *, level=None, logger_name=None, extra=None, **fields):
        """FastMCP's order is (message, level), that of the SDK (level, message)."""
        text = level_or_message
        if message is not None and level_or_message in _LEVELS:
            level, text = level_or_message, message
        elif message is not None:
            level = message
        self._log(text, level or "info", logger_name, extra, fields)

    def _log(self, text, level, logger_name, extra, fields):
        fields = {**fields, **(extra or {}), **({"logger": logger_name} if logger_name else {})}
        fields = {name + "_" if name in ("level", "message") else name: value for name, value in fields.items()}
        hostler.log(text if isinstance(text, str) else repr(text), level=_LEVEL.get(level, level), **fields)

    async def debug(self, message, *, logger_name=None, extra=None, **fields):
        self._log(message, "debug", logger_name, extra, fields)

    async def info(self, message, *, logger_name=None, extra=None, **fields):
        self._log(message, "info", logger_name, extra, fields)

    async def warning(self, message, *, logger_name=None, extra=None, **fields):
        self._log(message, "warning", logger_name, extra, fields)

    async def error(self, message, *, logger_name=None, extra=None, **fields):
        self._log(message, "error", logger_name, extra, fields)

    async def report_progress(self, progress, total=None, message=None):
        hostler.progress(progress, total, message)

    # What is asked

    async def elicit(self, message, response_type=None, schema=None, **_):
        kind = schema if schema is not None else response_type
        answer = await asyncio.to_thread(hostler.elicit, message, _form(kind))
        return _elicitation(answer, self._kind)

    async def sample(self, messages, *, system_prompt=None, temperature=None, max_tokens=None, result_type=None, tools=None, **_):
        if tools or result_type not in (None, str):
            raise hostler.HostlerError("the context that hostler gives asks the model for text only, without `tools` and `result_type`")
        text = await asyncio.to_thread(
            hostler.llm, _prompt(messages), system_prompt, max_tokens or 1000, temperature=temperature)
        return _Said(text)

    async def list_roots(self):
        found = await asyncio.to_thread(hostler.roots)
        return [SimpleNamespace(uri=root.uri, name=root.name) for root in found]

    # The call and its session

    @property
    def request_id(self):
        return call_id()

    @property
    def session_id(self):
        return hostler.session.id

    @property
    def client_id(self):
        return None

    @property
    def fastmcp(self):
        return self._server

    mcp_server = fastmcp

    @property
    def lifespan_context(self):
        lifespan = _WithLifespan.value_of(self._server) if self._lifespan is None else self._lifespan
        return {} if lifespan is None else lifespan

    @property
    def session(self):
        return _Session(self)

    @property
    def request_context(self):
        return _Request(self)

    # What is kept

    def get_state(self, key):
        return self._maybe_awaited("get_state", hostler.session.get("fastmcp." + key))

    def set_state(self, key, value, **_):
        hostler.session["fastmcp." + key] = value
        return self._maybe_awaited("set_state", None)

    def delete_state(self, key):
        hostler.session.pop("fastmcp." + key, None)
        return self._maybe_awaited("delete_state", None)

    def _maybe_awaited(self, name, value):
        """FastMCP 2 has plain methods here, later ones have to be awaited."""
        from inspect import iscoroutinefunction

        real = getattr(sys.modules.get("fastmcp"), "Context", None)
        return _at_once(value) if iscoroutinefunction(getattr(real, name, None)) else value

    # hostler watches the tool files itself

    async def send_tool_list_changed(self):
        """Nothing to do."""

    send_resource_list_changed = send_prompt_list_changed = send_tool_list_changed


async def _at_once(value):
    return value


class _Request(_Given):
    """`ctx.request_context`"""

    _called = "request context"
    request = None

    def __init__(self, context):
        self._context = context
        self.request_id, self.session = context.request_id, context.session
        self.meta = _Meta(context.request_id)

    @property
    def lifespan_context(self):
        return self._context.lifespan_context


class _Meta:
    """What a client may have added to its request: nothing but where progress goes."""

    model_extra = None

    def __init__(self, token):
        self.progressToken = self.progress_token = token

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def model_dump(self, **_):
        return {"progressToken": self.progressToken}


class _Session(_Given):
    """`ctx.session`: the client, where the SDK has its requests."""

    _called = "session"

    def __init__(self, context):
        self._context = context

    async def create_message(self, messages, *, max_tokens=None, system_prompt=None, temperature=None, **_):
        return await self._context.sample(messages, system_prompt=system_prompt, temperature=temperature, max_tokens=max_tokens)

    async def elicit(self, message, requestedSchema=None, requested_schema=None, **_):
        answer = await asyncio.to_thread(hostler.elicit, message, requestedSchema or requested_schema)
        return SimpleNamespace(action=answer.action, content=answer.data)

    elicit_form = elicit

    async def list_roots(self):
        return SimpleNamespace(roots=await self._context.list_roots())

    async def send_log_message(self, level, data, logger=None, **_):
        self._context._log(data, level, logger, None, {})

    async def send_progress_notification(self, progress_token, progress, total=None, message=None, **_):
        hostler.progress(progress, total, message)

    async def send_resource_updated(self, uri):
        """Nothing to do: clients read resources anew."""

    send_tool_list_changed = send_resource_list_changed = send_prompt_list_changed = Context.send_tool_list_changed


class _Said(str):
    """What a model said: text, which is also where FastMCP and the SDK have it."""

    type, role, model, stopReason = "text", "assistant", "", "endTurn"

    @property
    def text(self):
        return str(self)

    result = text

    @property
    def content(self):
        return self


def _prompt(messages):
    if isinstance(messages, str):
        return messages
    return [_message(one) for one in (messages if isinstance(messages, (list, tuple)) else [messages])]


def _message(one):
    if isinstance(one, str):
        return {"role": "user", "content": one}
    role = one.get("role") if isinstance(one, dict) else one.role
    content = one.get("content") if isinstance(one, dict) else one.content
    parts = content if isinstance(content, (list, tuple)) else [content]
    texts = [part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else getattr(part, "text", None)
             for part in parts]
    if None in texts:
        raise hostler.HostlerError("the context that hostler gives sends text to the model; for images, use hostler.llm(images=…)")
    return {"role": role or "user", "content": "\n".join(texts)}


def _form(kind):
    """FastMCP's short forms: a list of texts is a choice of them."""
    if isinstance(kind, (list, tuple)) and kind and all(isinstance(one, str) for one in kind):
        from typing import Literal

        return Literal[tuple(kind)]
    if isinstance(kind, dict) and "type" not in kind:  # {value: {"title": …}}
        choices = [{"const": value, "title": (shown or {}).get("title", value)} for value, shown in kind.items()]
        return {"type": "object", "properties": {"value": {"type": "string", "oneOf": choices}}, "required": ["value"]}
    return kind


def _elicitation(answer, kind):
    """The class that the framework would have returned: files match on it."""
    name = {"accept": "AcceptedElicitation", "decline": "DeclinedElicitation", "cancel": "CancelledElicitation"}[answer.action]
    package = package_of(kind) if kind is not None else "fastmcp"
    values = {"data": {} if answer.data is None else answer.data} if answer.action == "accept" else {}
    if isinstance(answer.data, dict) and set(answer.data) == {"value"}:
        values["data"] = answer.data["value"]
    for place in (package + ".server.elicitation", "mcp.server.elicitation"):
        try:
            cls = getattr(__import__(place, fromlist=[name]), name)
            return cls(action=answer.action, **values)
        except Exception:
            continue  # of another release
    return answer
