"""Error replies: codes, messages that say what to do, tracebacks cut to what the author wrote."""

import sys

from .state import state
from .wire import id_text, quote

RAISED, NOT_JSON, NO_SECRET, CANCELLED, EXHAUSTED, IMPORT = -32000, -32001, -32002, -32003, -32004, -32010
_LONGEST = 65536  # characters of a message or traceback


def reply(id, code, message, data=None):
    """An error reply as bytes. `data` is a dict of strings, numbers and None."""
    if len(message) > _LONGEST:
        message = message[:_LONGEST] + "…"
    more = ""
    if data:
        more = ',"data":{%s}' % ",".join(quote(key) + ":" + _scalar(value) for key, value in data.items())
    text = '{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}\n'
    return (text % (id_text(id), code, quote(message), more)).encode("utf-8", "replace")


def _scalar(value):
    if value is None:
        return "null"
    return quote(value) if isinstance(value, str) else str(value)


def no_function(id, name, functions):
    have = ", ".join(functions) or "none (a tool is a top-level def without a leading underscore)"
    return reply(id, -32601, "no function %s in this tool file; it has: %s" % (_shown(name), have))


def raised(id, error, kwargs):
    """The reply for what came out of a call."""
    from .convert import Mismatch

    if isinstance(error, Mismatch):
        return reply(id, -32602, str(error))
    hostler = sys.modules.get("hostler")
    if hostler is not None and isinstance(error, hostler.MissingSecret):
        return reply(id, NO_SECRET, str(error), {"secret": error.name})
    if type(error) is TypeError and _never_entered(error):
        return reply(id, -32602, _text(error))
    data = {"type": type_name(error), "traceback": traceback_of(error)}
    resource = _exhausted(error)
    if resource is not None:
        return reply(id, EXHAUSTED, describe(error), {**data, "resource": resource})
    return reply(id, RAISED, describe(error), data)


def _exhausted(error):
    """What ran out: `memory`, `disk` or `descriptors`; None when it was nothing of the kind."""
    if isinstance(error, MemoryError):
        return "memory"
    if not isinstance(error, OSError):
        return None
    import errno

    kinds = {"ENOSPC": "disk", "EDQUOT": "disk", "EMFILE": "descriptors", "ENFILE": "descriptors", "ENOMEM": "memory"}
    return kinds.get(errno.errorcode.get(error.errno))


def import_failed(id, error):
    data = {"type": type_name(error), "traceback": traceback_of(error), "line": _line_of(error), "file": state.tool_file}
    return reply(id, IMPORT, describe(error), data)


def _never_entered(error):
    """A TypeError of the call itself, such as a missing argument: no frame below the shim's."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and frame.tb_frame.f_globals.get("__package__") == __package__


def _line_of(error):
    """Where in the tool file it happened; None when nowhere in it."""
    if isinstance(error, SyntaxError) and error.filename == state.tool_file:
        return error.lineno
    line, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == state.tool_file:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


def type_name(error):
    kind = type(error)
    if kind.__module__ in ("builtins", state.module_name):
        return kind.__qualname__
    return "%s.%s" % (kind.__module__, kind.__qualname__)


def describe(error):
    """`Type: text`, in one line of defence against exceptions that fail to print themselves."""
    if isinstance(error, SystemExit):
        return _exit_text(error)
    text = _text(error)
    members = getattr(error, "exceptions", None)
    if isinstance(members, tuple) and len(members) < 4:  # a group's own text names none of them
        text += ": " + "; ".join(map(describe, members))
    return "%s: %s" % (type_name(error), text) if text else type_name(error)


def _exit_text(error):
    code = error.code
    if code is None:
        code = 0
    if isinstance(code, int):
        return "the tool asked to exit with status %d (sys.exit); raise an exception or return instead" % code
    return "the tool asked to exit with status 1 (sys.exit: %s); raise an exception or return instead" % _shown(code)


def _text(error):
    try:
        return str(error)
    except BaseException:
        return "<its text failed to print>"


def _shown(value):
    try:
        return value if isinstance(value, str) else repr(value)
    except BaseException:
        return "<its text failed to print>"


def traceback_of(error):
    """As Python prints it, chained exceptions and groups included, but only the author's frames
    and the innermost one of each."""
    try:
        import traceback

        whole = traceback.TracebackException(type(error), error, error.__traceback__, lookup_lines=False)
        _trim(whole, traceback, set())
        text = "".join(whole.format())
    except BaseException as trouble:
        if state.terminating:
            raise
        return "%s (no traceback: %s)" % (describe(error), type(trouble).__name__)
    if len(text) > _LONGEST:
        text = text[:_LONGEST // 2] + "\n…\n" + text[-_LONGEST // 2:]
    return text


def _trim(whole, traceback, seen):
    if whole is None or id(whole) in seen:
        return
    seen.add(id(whole))
    frames = list(whole.stack)
    whole.stack = traceback.StackSummary.from_list(
        [frame for frame in frames[:-1] if _of_author(frame.filename)] + frames[-1:])
    for chained in (whole.__cause__, whole.__context__):
        _trim(chained, traceback, seen)
    for member in getattr(whole, "exceptions", None) or ():
        _trim(member, traceback, seen)


def _of_author(file):
    folder = state.tool_file.rpartition("/")[0] + "/"
    return file.startswith(folder) and "/site-packages/" not in file
