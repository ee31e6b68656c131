"""What Open WebUI gives to its tools by name: `__user__`, `__event_emitter__` and others."""

import asyncio

import hostler

from ..encode import ToolFailed
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


class Emitter:
    """`__event_emitter__` of one call. `{"type": "status", "data": {"description": …}}` is progress. Messages, which would be added to the
    chat, are the result of a function that returns none."""

    def __init__(self):
        self._said, self._failure = [], None

    async def __call__(self, event):
        kind = event.get("type") if isinstance(event, dict) else None
        data = event.get("data") if isinstance(event, dict) else None
        data = data if isinstance(data, dict) else {}
        text = str(data.get("description") or data.get("content") or "")
        if kind == "status":
            steps = hostler.session.get("open_webui.steps", 0) + 1
            hostler.session["open_webui.steps"] = steps
            hostler.progress(steps, message=text)
            self._failure = text if data.get("status") == "error" else None
        elif kind in ("replace", "chat:message"):
            self._said = [text]
        elif kind in ("message", "chat:message:delta"):
            self._said.append(text)
        elif text:
            hostler.log(text)

    def result(self, value):
        """What a function has said in place of a value that it returns."""
        if value is not None or not self._said and self._failure is None:
            return value
        if not self._said:
            raise ToolFailed(self._failure or "the tool failed")
        return "".join(self._said)


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
    "__event_emitter__": Emitter,
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
