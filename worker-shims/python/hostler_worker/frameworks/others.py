"""What smaller frameworks give to their tools."""

import hostler

from .call import Settings, call_id


def nothing(_kind):
    return None


def agno_context(kind):
    return kind(run_id=call_id(), session_id=hostler.session.id, session_state=_agno_state(), dependencies=dict(hostler.config))


def _agno_state():
    return hostler.session.setdefault("agno", {})


def of_agno(name):
    if name == "session_state":
        return _agno_state
    if name == "dependencies":
        return lambda: dict(hostler.config)
    if name == "run_context":
        def context():
            from agno.run import RunContext

            return agno_context(RunContext)

        return context
    return lambda: None


def pydantic_ai_context(kind):
    fields = kind.__dataclass_fields__
    values = {"deps": Settings(), "model": None, "usage": None, "prompt": None, "tool_call_id": call_id()}
    return kind(**{name: value for name, value in values.items() if name in fields})


def cancellation_token(kind):
    return kind()


def strands_context(kind):
    return kind(tool_use={"toolUseId": call_id(), "name": "", "input": {}}, agent=None, invocation_state=dict(hostler.config))


def adk_context(_kind):
    return _AdkContext()


class _AdkContext:
    """ADK's `ToolContext`: a state that the client's session keeps in this worker, ids, and actions, which change nothing."""

    def __init__(self):
        from types import SimpleNamespace

        self.state = hostler.session.setdefault("adk", {})
        self.function_call_id = self.invocation_id = call_id()
        self.agent_name = ""
        self.actions = SimpleNamespace(
            skip_summarization=None, escalate=None, transfer_to_agent=None, state_delta={}, artifact_delta={})

    def __getattr__(self, name):
        raise AttributeError("hostler gives no `%s` in place of ADK's context; it has: %s" % (name, ", ".join(sorted(vars(self)))))
