"""What LangChain gives to its tools, and how its tools declare arguments and results."""

import hostler

from .call import Settings, call_id, settings_of_tool


def of_type(kind):
    name = kind.__name__
    if name == "RunnableConfig":
        return {"tags": [], "metadata": {}, "callbacks": None, "configurable": dict(hostler.config)}
    if name == "ToolRuntime":
        return _runtime(kind)
    return kind.get_noop_manager()


def _runtime(kind):
    values = {"state": {}, "context": Settings(), "config": {"configurable": dict(hostler.config)}, "store": _store(),
              "stream_writer": lambda part: hostler.log(str(part)), "tool_call_id": call_id()}
    known = getattr(kind, "__dataclass_fields__", values)
    return kind(**{name: value for name, value in values.items() if name in known})


def injected(kind, note, name, default=()):
    """By the class of the note: `InjectedToolCallId`, `InjectedState("messages")`, `InjectedStore`, and `InjectedToolArg` itself, which the
    settings of the tool give by the parameter's name. Without them it is the parameter's default, in a tuple where it has one."""
    if kind.__name__ == "InjectedToolCallId":
        return call_id()
    if kind.__name__ == "InjectedStore":
        return _store()
    if name in hostler.config:
        return hostler.config[name]
    if kind.__name__ == "InjectedState":
        return {} if getattr(note, "field", None) is None else None
    if default:
        return default[0]
    raise hostler.HostlerError("`%s` is given by LangChain (%s), and here by the operator: set `%s` under `%s`"
                               % (name, kind.__name__, name, settings_of_tool()))


_OWN_DEFAULT = object()  # instead of that of a model's field, which is not for checking
_kept = []


def _store():
    """One in memory, as long as the worker lives."""
    if not _kept:
        try:
            from langgraph.store.memory import InMemoryStore
        except ImportError:
            return None
        _kept.append(InMemoryStore())
    return _kept[0]


def _kind_of(note):
    return note if isinstance(note, type) else type(note)


def _is_injected(note):
    return any(base.__name__ == "InjectedToolArg" for base in _kind_of(note).__mro__)


def completing(tool):
    """What makes the arguments of a tool complete by its `args_schema`, where the author wrote one."""
    schema = getattr(tool, "args_schema", None)
    if not isinstance(schema, type) or schema.__module__.startswith("langchain") or not hasattr(schema, "model_fields"):
        return None
    from .. import models

    convert = models.converter(schema)
    given = {name: (note, field) for name, field in schema.model_fields.items() for note in field.metadata if _is_injected(note)}

    def complete(kwargs):
        own = {name: value for name, value in kwargs.items() if name in schema.model_fields and name not in given}
        for name, (note, field) in given.items():
            value = injected(_kind_of(note), note, name, () if field.is_required() else (_OWN_DEFAULT,))
            if value is not _OWN_DEFAULT:
                own[name] = value
        made = convert(own, "arguments")
        return {**kwargs, **{name: getattr(made, name) for name in schema.model_fields}}

    return complete


def reading(tool):
    """`response_format="content_and_artifact"`: the model gets the first of two."""
    if getattr(tool, "response_format", None) != "content_and_artifact":
        return None
    return lambda value: value[0] if isinstance(value, tuple) and len(value) == 2 else value
