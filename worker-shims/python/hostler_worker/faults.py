"""Error replies: codes, messages that say what to do, tracebacks cut to what the author wrote."""

import sys

from .package import in_dots, is_own
from .state import state
from .wire import id_text, quote

RAISED, NOT_JSON, NO_SECRET, CANCELLED, EXHAUSTED, IMPORT = -32000, -32001, -32002, -32003, -32004, -32010
_LONGEST = 65536  # characters of a message or traceback
_HERE = __file__.rpartition("/")[0]
_OWN = (_HERE + "/", _HERE.rpartition("/")[0] + "/hostler/")


def reply(id, code, message, data=None):
    """An error reply as bytes. `data` is a dict of strings, numbers and None."""
    if len(message) > _LONGEST:
        from .cuts import head

        message = head(message, _LONGEST) + "…"
    more = ""
    if data:
        more = ',"data":{%s}' % ",".join(quote(key) + ":" + _scalar(value) for key, value in data.items())
    text = '{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}\n'
    return (text % (id_text(id), code, quote(message), more)).encode("utf-8", "replace")


def _scalar(value):
    if value is None:
        return "null"
    return str(value) if type(value) is int else quote(_shown(value))


def no_function(id, name, functions):
    line, module = _defined_at(name), sys.modules.get(state.module_name)
    made = getattr(module, name, None)
    if line is not None and not callable(made):
        if hasattr(module, name):
            what = "None" if made is None else "an object of the type %s" % type(made).__name__
            why = "the name is %s when the file has run; have its decorator return the function" % what
        else:
            why = "it does not exist after the file has run; check the conditions around it"
        return reply(id, -32601, "line %d defines it, but %s" % (line, why), {"missing": True})
    have = ", ".join(functions) or "none (a tool is a top-level def without a leading underscore)"
    return reply(id, -32601, "no function %s in this tool file; it has: %s" % (_shown(name), have))


def _defined_at(name):
    """Where the tool file defines a function of this name at its top level."""
    from .loading import NEWLOCALS, compiled, inner_codes

    try:
        codes = inner_codes(compiled(state.tool_file, state.source))
    except Exception:  # it is gone, or has been changed
        return None
    return next((code.co_firstlineno for code in codes if code.co_name == name and code.co_flags & NEWLOCALS), None)


def raised(id, error, kwargs):
    """The reply for what came out of a call."""
    try:
        return _raised(id, error)
    except BaseException:  # an exception that cannot even be looked at
        if state.terminating:
            raise
        return reply(id, RAISED, describe(error), {"type": type_name(error), "traceback": describe(error)})


def _raised(id, error):
    from .convert import Mismatch
    from .encode import ToolFailed

    # By their types: `__class__` may be anything.
    if issubclass(type(error), Mismatch):
        return reply(id, -32602, str(error))
    if type(error) is ToolFailed:
        return reply(id, RAISED, str(error), {"type": "ToolFailed"})
    hostler = sys.modules.get("hostler")
    if hostler is not None and issubclass(type(error), hostler.MissingSecret):
        return reply(id, NO_SECRET, _text(error), {"secret": _shown(error.name)})
    if type(error) is TypeError and _never_entered(error):
        return reply(id, -32602, _text(error))
    data = {"type": type_name(error), "traceback": traceback_of(error), **_missing(error)}
    resource = _exhausted(error)
    if resource is not None:
        return reply(id, EXHAUSTED, describe(error), {**data, "resource": resource})
    return reply(id, RAISED, _text_of_client(error) if "client" in data else describe(error), data)


def _text_of_client(error):
    return error.message if type(error.message) is str else describe(error)


def _exhausted(error):
    """What ran out: `memory`, `disk` or `descriptors`; None when it was nothing of the kind."""
    if issubclass(type(error), MemoryError):
        return "memory"
    if not issubclass(type(error), OSError):
        return None
    import errno

    kinds = {"ENOSPC": "disk", "EDQUOT": "disk", "EMFILE": "descriptors", "ENFILE": "descriptors", "ENOMEM": "memory"}
    return kinds.get(errno.errorcode.get(error.errno))


def _missing(error):
    """What was not there, for those who know where it comes from: a module, a declaration, a variable."""
    hostler = sys.modules.get("hostler")
    kind, name, what = type(error), None, None
    if issubclass(kind, ModuleNotFoundError):
        what, name = "module", ImportError.name.__get__(error)
        if type(name) is str and is_own(name):
            return {}  # a neighbour: no package brings it
    elif hostler is not None and issubclass(kind, hostler.HostlerError):
        if getattr(error, "of_client", False) and error.code in ("NOT_SUPPORTED", "TOOL_TIMEOUT", "BUSY"):
            capability = getattr(error, "capability", None)
            return {"client": error.code, **({"capability": capability} if type(capability) is str else {})}
        what, name = "undeclared", getattr(error, "undeclared", None)
    elif kind is KeyError and _raised_by_environ(error):
        what, name = "variable", error.args[0]
    else:
        what, name = "usage", _usage_error(error)
    return {what: name} if type(name) is str else {}


def _usage_error(error):
    """What argparse or click says of the command line that the file's program reads; not of one that a function parses."""
    frames = []
    entry = error.__traceback__
    while entry is not None:
        frames.append(entry.tb_frame)
        entry = entry.tb_next
    if issubclass(type(error), SystemExit):
        of_argparse = [frame for frame in frames if frame.f_globals.get("__name__") == "argparse"]
        if of_argparse and of_argparse[-1].f_code.co_name == "exit":
            said = [frame.f_locals.get("message") for frame in of_argparse if frame.f_code.co_name == "error"]
            # Those that parse the process's own line leave this empty, or fill it from that.
            if said and of_argparse[0].f_locals.get("args", ()) in (None, sys.argv[1:]):
                return said[0]
    elif any(frame.f_code.co_name == "run_program" and frame.f_globals.get("__package__") == __package__ + ".frameworks" for frame in frames):
        return _of_click(error)
    return None


def _of_click(error):
    names = [one.__name__ for one in type(error).__mro__]
    if "UsageError" in names:
        try:
            return error.format_message().rstrip(".")
        except Exception:
            pass
    return "it asks for what is missing, and there is no terminal" if "Abort" in names else None


def _raised_by_environ(error):
    """Whether it was `os.environ` that had no such key."""
    import os

    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and frame.tb_frame.f_code is type(os.environ).__getitem__.__code__


def import_failed(id, error):
    data = {"type": type_name(error), "traceback": traceback_of(error), "line": _line_of(error), "file": state.tool_file,
            **_missing(error)}
    told = describe(error)
    if issubclass(type(error), SystemExit) and "usage" not in data:
        # Neither of what helps within a call helps here.
        told = told.partition(";")[0].replace("the tool asked", "the file asked, while it was imported,") + \
            "; remove that, or move it into a function"
    return reply(id, IMPORT, told, data)


def _never_entered(error):
    """A TypeError of the call itself, such as a missing argument: no frame but the shim's. Where the author's is on
    the way, the author gave something of the shim's a wrong type."""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__package__") != __package__:
            return False
        frame = frame.tb_next
    return True


def _line_of(error):
    """Where in the tool file it happened; None when nowhere in it."""
    if type(error) in (SyntaxError, IndentationError, TabError) and error.filename == state.tool_file:
        return error.lineno
    line, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == state.tool_file:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


def type_name(error):
    # Past what its metaclass makes of them.
    module, name = (type.__dict__[part].__get__(type(error)) for part in ("__module__", "__qualname__"))
    return name if module in ("builtins", state.module_name) else "%s.%s" % (module, name)


def describe(error):
    """`Type: text`, in one line of defence against exceptions that fail to print themselves."""
    usage = _usage_error(error)
    if type(usage) is str:
        return "the file's program refuses its command line: " + usage
    if issubclass(type(error), SystemExit):
        return _exit_text(error)
    return _named(error, ()) + _advice(error)


def _advice(error):
    """What to do where Python's own words do not say it."""
    if type(error) is EOFError and _text(error) == "EOF when reading a line":
        return "; input() cannot be used in a tool; take the value as an argument"
    if type_name(error) == "bdb.BdbQuit":
        return "; breakpoint() cannot be used in a tool; remove it, and print or log instead"
    return ""


def _named(error, above):
    text = in_dots(_text(error)) if issubclass(type(error), ImportError) else _text(error)
    above += (id(error),)
    members = [one for one in _members(error) if id(one) not in above]
    if members and len(members) < 4 and len(above) < 5:  # a group's own text names none of them
        text += ": " + "; ".join(_named(one, above) for one in members)
    return "%s: %s" % (type_name(error), text) if text else type_name(error)


def _members(error):
    """The exceptions of a group. The attribute may be anybody's, and anything."""
    try:
        members = error.exceptions
        return [one for one in members if issubclass(type(one), BaseException)] if type(members) is tuple else []
    except BaseException:
        return []


def _exit_text(error):
    try:
        code = error.code
    except BaseException:
        code = 1
    if code is None:
        code = 0
    if issubclass(type(code), int):
        return "the tool asked to exit with status %s (sys.exit); raise an exception or return instead" % _shown(int.__int__(code))
    return "the tool asked to exit with status 1 (sys.exit: %s); raise an exception or return instead" % _shown(code)


def _text(error):
    try:
        return str.__str__(str(error))
    except BaseException:
        return "<its text failed to print>"


def _shown(value):
    try:
        return str.__str__(value if isinstance(value, str) else repr(value))
    except BaseException:
        return "<its text failed to print>"


def traceback_of(error):
    """As Python prints it, chained exceptions and groups included, but only the author's frames
    and the innermost one of each that is not the shim's."""
    try:
        import traceback

        if state.source:
            _know_lines()
        whole = traceback.TracebackException(type(error), error, error.__traceback__, lookup_lines=False)
        _trim(whole, traceback, set())
        text = "".join(whole.format())
    except BaseException as trouble:
        if state.terminating:
            raise
        return "%s (no traceback: %s)" % (describe(error), type(trouble).__name__)
    if len(text) > _LONGEST:
        from .cuts import head, tail

        text = head(text, _LONGEST // 2) + "\n…\n" + tail(text, _LONGEST // 2)
    return text


def _know_lines():
    """The lines that run, whatever the tool file holds by now."""
    import linecache

    known = linecache.cache.get(state.tool_file)
    if known is not None and len(known) == 4 and known[1] is None:
        return
    lines = linecache.getlines(state.source)
    if lines:  # no time of change: these are never looked up again
        linecache.cache[state.tool_file] = (sum(map(len, lines)), None, lines, state.tool_file)


def _trim(whole, traceback, seen):
    if whole is None or id(whole) in seen:
        return
    seen.add(id(whole))
    frames = list(whole.stack)
    # `sys.stdout.write(b"")` fails in the shim, and is the author's line. A fault of the shim alone shows its place; a
    # SyntaxError (these have an offset) shows its own, in a file that has no frame yet.
    last = len(frames)
    while last and frames[last - 1].filename.startswith(_OWN):
        last -= 1
    if last or hasattr(whole, "offset"):
        del frames[last:]
    whole.stack = traceback.StackSummary.from_list(
        [frame for frame in frames[:-1] if _of_author(frame.filename)] + frames[-1:])
    for chained in (whole.__cause__, whole.__context__):
        _trim(chained, traceback, seen)
    for member in getattr(whole, "exceptions", None) or ():
        _trim(member, traceback, seen)


def _of_author(file):
    folder = state.tool_file.rpartition("/")[0] + "/"
    return file.startswith(folder) and "/site-packages/" not in file
