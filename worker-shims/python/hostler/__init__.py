"""What a tool file may import: ``import hostler``. Needs nothing installed; a tool needs none of it.

    hostler.config["issuer"]          this tool's settings, during a call
    hostler.secret("API_KEY")         a secret the file's header declares
    hostler.session["seen"] = 3       what this worker keeps for the client's session; hostler.session.id
    hostler.trace["traceparent"]      the call's span in its client's trace; `headers=hostler.trace`
    hostler.log("fetched", pages=3)   one line in hostler's log
    hostler.progress(3, 10)           how far the running call is
    hostler.call("text.slug", text=…) another tool, where the file has host access
    hostler.tools()                   the catalogue, likewise
    hostler.elicit("Delete it?")      the client's user
    hostler.llm("Summarise …")        the client's language model
    hostler.roots()                   the folders that the client works in
    return hostler.Image("plot.png")  what a model is to see; Audio for sounds, File for other files
    return ["See", hostler.Link(uri)]  texts, images, files and links, in this order
    @hostler.resource("notes://{id}") what applications read, instead of a tool
    @hostler.prompt                   what people choose, instead of a tool

What asks waits for the answer on its own thread, whichever that is. In an `async def` it holds up the
event loop meanwhile: write `await asyncio.to_thread(hostler.elicit, …)`. A thread that outlives its
call must not ask: in a worker for one call at a time it would ask in the name of the next call.
"""

import os
import time
from _thread import allocate_lock
from _collections_abc import Mapping, MutableMapping  # collections.abc, without importing collections

from hostler_worker import host as _host
from hostler_worker.encode import NotJson as _NotJson, encode as _encode
from hostler_worker.state import state as _state

_lines = allocate_lock()

__all__ = [
    "Answer", "Audio", "File", "HostlerError", "Image", "Link", "MissingSecret", "NotSupported", "Root", "ToolError", "call", "config", "elicit",
    "host_config", "llm", "log", "progress", "prompt", "refresh", "resource", "roots", "secret", "session", "status",
    "tools", "trace",
]


def __getattr__(name):  # few tools return files, and all of them would pay for the import
    if name in ("Audio", "File", "Image", "Link"):
        from hostler_worker import files

        return getattr(files, name)
    raise AttributeError("module 'hostler' has no attribute %r" % name)


class HostlerError(Exception):
    """Something was asked of hostler that it does not do here; the message says what to do."""


class MissingSecret(HostlerError):
    """A declared secret that is not set. Do not catch it: hostler then tells the caller where to set it."""

    def __init__(self, name):
        super().__init__("the secret %s is not set" % name)
        self.name = name


class ToolError(HostlerError):
    """A tool called by `hostler.call` failed. `code` is hostler's (`TOOL_TIMEOUT`) where it gave one."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def __str__(self):
        # A number is JSON-RPC's, and says nothing to a person.
        return "%s: %s" % (self.code, self.message) if isinstance(self.code, str) else self.message


class NotSupported(ToolError):
    """The client of this call lacks what was asked of it: `capability` is "elicitation", "sampling" or "roots". Catch it to do
    without; otherwise the caller's fault names what the client needs."""

    @property
    def capability(self):
        return (self.data or {}).get("capability")


def resource(uri, *, name=None, title=None, description=None, icon=None, mime_type=None):
    """Make a function a resource: `@hostler.resource("notes://{id}")`. Its parameters are the variables of the URI; it returns
    text, bytes, a File, or anything JSON. hostler reads the decorator without running it, so its arguments are literals."""
    if not isinstance(uri, str):
        raise TypeError('hostler.resource needs a URI: @hostler.resource("notes://{id}")')
    return lambda function: _marked(function, ("resource", mime_type))


def prompt(name=None, *, title=None, description=None, icon=None):
    """Make a function a prompt: `@hostler.prompt`. Its parameters are the prompt's arguments; it returns text, an image, or a list
    of them and of messages such as {"role": "assistant", "content": "Hello"}."""
    if callable(name):
        return _marked(name, ("prompt", None))
    return lambda function: _marked(function, ("prompt", None))


def _marked(function, mark):
    from hostler_worker.loading import MARK

    try:
        setattr(function, MARK, mark)
    except AttributeError:
        pass  # a callable without attributes; hostler has read the decorator
    return function


class _Config(Mapping):
    """The settings of `[tool.NAME.config]`, read-only. They come with each call."""

    def _values(self):
        params = _state.params
        if params is None:
            raise HostlerError("hostler.config is available only during a call; read it " + _state.where)
        return params.get("config") or {}

    def __getitem__(self, key):
        return self._values()[key]

    def __iter__(self):
        return iter(self._values())

    def __len__(self):
        return len(self._values())

    def __repr__(self):
        return "hostler.config" if _state.params is None else "hostler.config(%r)" % self._values()


config = _Config()


class _Session(MutableMapping):
    """The session of the client that this call is for. It is a dictionary of that session's own in this worker, and ends with
    the session or the worker."""

    @property
    def id(self):
        """A text that no other session has had since hostler started."""
        params = _state.params
        if params is None:
            raise HostlerError("hostler.session is available only during a call; read it " + _state.where)
        return (params.get("call") or {}).get("session") or ""

    def _values(self):
        return _state.sessions.setdefault(self.id, {})

    def __getitem__(self, key):
        return self._values()[key]

    def __setitem__(self, key, value):
        self._values()[key] = value

    def __delitem__(self, key):
        del self._values()[key]

    def __iter__(self):
        return iter(self._values())

    def __len__(self):
        return len(self._values())

    def __repr__(self):
        return "hostler.session" if _state.params is None else "hostler.session(%r)" % self._values()


session = _Session()


class _Trace(Mapping):
    """The span of this call as the headers of a request: `traceparent` and perhaps `tracestate` (W3C trace context). Empty in a call
    without a trace, and outside of calls. Programs that the tool starts find it in their environment (`TRACEPARENT`), except where
    `concurrency` lets several calls share this process."""

    def _values(self):
        call = (_state.params or {}).get("call") or {}
        span = {"traceparent": call.get("trace"), "tracestate": call.get("tracestate")}
        return {name: value for name, value in span.items() if value}

    def __getitem__(self, key):
        return self._values()[key]

    def __iter__(self):
        return iter(self._values())

    def __len__(self):
        return len(self._values())

    def __repr__(self):
        return "hostler.trace(%r)" % self._values()


trace = _Trace()


def secret(name):
    """The value of a secret the header declares, during a call."""
    if name not in _state.secrets:
        error = HostlerError("the secret %s is not declared under `secrets = [...]` in the file's header" % name)
        error.undeclared = name
        raise error
    params = _state.params
    if params is None:
        raise HostlerError("hostler.secret is available only during a call; read it " + _state.where)
    value = (params.get("secrets") or {}).get(name)
    if value is None:
        raise MissingSecret(name)
    return value


def log(message, level="info", **fields):
    """Write one line to hostler's log. Never fails the call: what is not JSON is logged as text."""
    now = time.time()
    moment = "%s.%03dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)), now % 1 * 1000)
    call_of = ((_state.params or {}).get("call") or {}).get("id")
    line = {"hostler": "log", "level": level, "message": message, "fields": fields, "call": call_of, "time": moment}
    try:
        text = _encode(line)
    except _NotJson:
        line["message"], line["fields"] = str(message), {key: repr(value) for key, value in fields.items()}
        text = _encode(line)
    with _lines:  # a long one is written in pieces
        os.write(2, (text + "\n").encode("utf-8", "replace"))


def progress(progress, total=None, message=None):
    """Say how far the running call is; `progress` grows, `total` is what it grows to."""
    params = {"progress": progress, "total": total, "message": message}
    _host.progress({key: value for key, value in params.items() if value is not None})


def _ask(method, params):
    try:
        return _host.request(method, params)
    except _host.Refused as refused:
        if refused.code is None:
            raise HostlerError(str(refused)) from None
        data = refused.data if isinstance(refused.data, dict) else {}
        code = data["code"] if isinstance(data.get("code"), str) else refused.code
        kind = NotSupported if code == "NOT_SUPPORTED" else ToolError
        error = kind(code, str(refused), refused.data)
        error.of_client = method in ("host.llm", "host.elicit", "host.roots")
        raise error from None


def call(tool, /, **arguments):
    """Call another tool by name and return its result; ToolError when it fails."""
    return _ask("host.call", {"tool": tool, "arguments": arguments})


def tools():
    """The catalogue: a list of tools, each with name, description and input schema."""
    return _ask("host.tools", {})


def host_config():
    """hostler's own settings, as far as the operator lets tools see them."""
    return _ask("host.config", {})


def status():
    """The state of hostler: tools, running calls, workers and why they ended."""
    return _ask("host.status", {})


def refresh():
    """Reads all tool folders again and asks every executable for its schema again; returns a sentence with the number
    of tools."""
    return _ask("host.refresh", {})


def llm(prompt, system=None, max_tokens=1000, *, images=(), temperature=None, key=None):
    """Ask the language model of the client that made this call, and return its text. `prompt` is text, or a list of messages
    such as {"role": "user", "content": "Hello"}; the other role is "assistant". `images` are paths, bytes or hostler.Image."""
    params = {"prompt" if isinstance(prompt, str) else "messages": prompt, "system": system, "max_tokens": max_tokens,
              "temperature": temperature, "key": key}
    if images:
        from hostler_worker.forms import images_of

        params["images"] = images_of(images)
    return _ask("host.llm", {key: value for key, value in params.items() if value is not None})


class Answer:
    """What a user answered. `action` is "accept", "decline" or "cancel"; `data` is the value, and None unless accepted. An
    answer is true when it was accepted."""

    __slots__ = __match_args__ = ("action", "data")

    def __init__(self, action, data=None):
        self.action, self.data = action, data

    def __bool__(self):
        return self.action == "accept"

    def __repr__(self):
        return "hostler.Answer(%r, %r)" % (self.action, self.data)


def elicit(message, type=None, *, key=None):
    """Ask the user of the client that made this call, and return an Answer. `type` says what: a dataclass, a pydantic model or
    a TypedDict is a form with one field for each of its own; str, int, bool, a Literal or an Enum is one field; None only
    asks for consent; a dict is the form's JSON Schema."""
    from hostler_worker.forms import form

    schema, value_of = form(type)
    params = {"message": message, "schema": schema, "key": key}
    said = _ask("host.elicit", {key: value for key, value in params.items() if value is not None})
    if said["action"] != "accept":
        return Answer(said["action"])
    return Answer("accept", value_of(said.get("content") or {}))


class Root:
    """A folder that the client works in: `uri`, `name` (may be None), and `path` where the URI is a file's."""

    __slots__ = ("uri", "name")

    def __init__(self, uri, name=None):
        self.uri, self.name = uri, name

    @property
    def path(self):
        if not self.uri.startswith("file://"):
            return None
        from urllib.parse import unquote

        return unquote("/" + self.uri[7:].partition("/")[2])

    def __repr__(self):
        return "hostler.Root(%r, %r)" % (self.uri, self.name)


def roots(*, key=None):
    """The folders that the client of this call works in, a list of Root."""
    return [Root(root["uri"], root.get("name")) for root in _ask("host.roots", {} if key is None else {"key": key})]
