"""What Open WebUI gives to its tools by name: `__user__`, `__event_emitter__` and others."""

import asyncio

import hostler

from .call import call_id


def given(name, module):
    if name == "__user__":
        return lambda: _user(module)
    return _GIVEN.get(name)


def _user(module):
    """Its valves are the settings of the tool, in the tool's own class for them."""
    kind = getattr(getattr(module, "Tools", None), "UserValves", None)
    fields = getattr(kind, "model_fields", {})
    valves = kind(**{name: value for name, value in hostler.config.items() if name in fields}) if fields else {}
    return {"id": hostler.session.id, "name": "user", "email": "", "role": "user", "valves": valves}


async def emit(event):
    """`{"type": "status", "data": {"description": …, "done": …}}` is progress, a message is a line of the log."""
    data = event.get("data") if isinstance(event, dict) else None
    data = data if isinstance(data, dict) else {}
    text = data.get("description") or data.get("content") or ""
    if event.get("type") == "status":
        steps = hostler.session.get("open_webui.steps", 0) + 1
        hostler.session["open_webui.steps"] = steps
        hostler.progress(steps, message=str(text))
    elif text:
        hostler.log(str(text))


async def ask(event):
    """`input` and `confirmation` ask the user."""
    data = event.get("data") or {}
    message = "\n".join(part for part in (data.get("title"), data.get("message")) if part)
    if event.get("type") == "confirmation":
        return bool(await asyncio.to_thread(hostler.elicit, message))
    if event.get("type") == "input":
        answer = await asyncio.to_thread(hostler.elicit, message, str)
        return answer.data if answer else None
    raise hostler.HostlerError("hostler asks users for `input` and `confirmation`, not for `%s`" % event.get("type"))


_GIVEN = {
    "__event_emitter__": lambda: emit,
    "__event_call__": lambda: ask,
    "__metadata__": lambda: {"chat_id": hostler.session.id, "message_id": call_id(), "session_id": hostler.session.id},
    "__messages__": list,
    "__files__": list,
    "__chat_id__": lambda: hostler.session.id,
    "__session_id__": lambda: hostler.session.id,
    "__message_id__": call_id,
    "__model__": dict,
    "__request__": lambda: None,
    "__oauth_token__": lambda: None,
    "__id__": lambda: None,
}
