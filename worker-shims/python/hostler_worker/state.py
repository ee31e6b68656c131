"""What the worker is doing now: one object, because a worker runs one call at a time. Where it runs several, `running` makes
the same object tell each of them its own."""

from _thread import get_ident


class State:
    __slots__ = (
        "guard", "signalled", "call_id", "params", "cancel", "raised", "insist", "task",
        "cancelled", "terminating", "secrets", "host", "tool_file", "source", "module_name", "main",
        "describe", "concurrency", "sessions", "trace",
    )
    several = False
    where = "inside the function"  # config and secrets are there

    def __init__(self):
        # Above zero while the main thread is in the shim's own code, where a signal handler must
        # not raise: a half-written frame would spoil the stream for every later call.
        self.guard = 1
        self.signalled = False  # a SIGUSR1 came while the guard was up
        self.call_id = None  # JSON-RPC id of the running call
        self.params = None  # its params, for hostler.config and hostler.secret
        self.cancel = False  # the host wants the running call to stop
        self.raised = False  # ... and it was told so; it is told once
        self.insist = False  # its async step has not come to an await since
        self.task = None  # its asyncio task, when it is async
        self.cancelled = set()  # ids of queued calls that must never begin
        self.terminating = False
        self.secrets = frozenset()  # declared names
        self.host = frozenset()  # host requests that are allowed
        self.describe = None  # {name: [side]} that hostler wants to know of
        self.concurrency = 1  # calls to run at once
        self.trace = None  # the span that programs find in their environment
        self.sessions = {}  # what tools keep for each session, by its id
        self.tool_file = ""
        self.source = None
        self.module_name = ""
        self.main = get_ident()


state = State()
