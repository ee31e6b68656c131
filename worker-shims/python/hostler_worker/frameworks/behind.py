"""The function behind what a decorator left in its place."""

from _collections import deque
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType

from ..loading import FRAMEWORKS

# Where frameworks keep it, looked at before anything else.
_PLACES = ("fn", "func", "coroutine", "entrypoint", "_tool_func", "_func", "_fn", "handler", "forward", "function", "method", "callback",
           "__wrapped__")
_OWN = __name__.partition(".")[0]
_OF_FRAMEWORKS = FRAMEWORKS | {"google", "pydantic"}  # their functions around an author's are not the author's decorators
_NOTHING_INSIDE = (str, bytes, int, float, type, ModuleType, type(None))
_MOST = 2000  # things to look into
_MOST_OF_SERVER = 20_000


def behind(value, codes):
    """What to call for a value: itself where it is a function, or can be called and is of no framework. `codes` are those that the
    function may have; None for the first function that is found."""
    if type(value) is FunctionType or callable(value) and package_of(type(value)) not in FRAMEWORKS:
        return value
    if codes:
        decorated = outermost([value], lambda one: _attribute(one, "__code__") in codes)
        if decorated is not None:
            return decorated
    return within(value, codes) or _referring_to(codes or ())


def package_of(kind):
    module = getattr(kind, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def unwrapped(function):
    for _ in range(64):
        inner = _attribute(function, "__wrapped__")
        if inner is None:
            break
        function = inner
    return function


def within(value, codes):
    """The outermost function that wraps the code and can be reached by attributes, containers and closures."""
    seen, queue = {id(value): value}, deque([value])
    while queue and len(seen) < _MOST:
        one = queue.popleft()
        if type(one) in (FunctionType, MethodType):
            code = getattr(unwrapped(one), "__code__", None)
            if code is not None and (codes is None or code in codes):
                return one
        for part in _parts(one):
            if id(part) not in seen and not isinstance(part, _NOTHING_INSIDE):
                seen[id(part)] = part  # kept, so that no other thing gets its id
                queue.append(part)
    return None


def outermost(holders, is_it, beside=()):
    """What the author's decorators have made of a function, as one of these has it: what can be called and comes first on the way to the
    function, after the last thing of a framework. Functions of the codes `beside` it are not decorators: they may only call it."""
    found = _outermost(holders, is_it, beside, True)
    return found if found is not None else _outermost(holders, is_it, beside, False)


def _outermost(holders, is_it, beside, says_it):
    """With `says_it`, one that says what it wraps."""
    seen, others, queue = {}, set(), deque((holder, None) for holder in holders)
    while queue and len(seen) < _MOST_OF_SERVER:
        one, first = queue.popleft()
        if id(one) in seen or id(first) in others or isinstance(one, _NOTHING_INSIDE):
            continue
        seen[id(one)] = one  # kept, so that no other thing gets its id
        if says_it and callable(one) and not _is_of_framework(one):
            if is_it(unwrapped(one)):
                return one
            continue
        if type(one) in (FunctionType, MethodType) and is_it(one):
            return one if first is None else first
        if _is_of_framework(one):
            if first is None:
                placed = list(map(id, _placed(one)))
                queue.extend((part, None) for part in _parts(one) if _may_be_tool(part) or id(part) in placed)
        elif type(one) is CellType or isinstance(one, (dict, list, tuple, set, frozenset)):
            # A decorator may keep a list of all its functions.
            queue.extend((part, first) for part in _parts(one) if first is None or type(one) in (CellType, tuple) or len(one) == 1)
        elif type(one) is FunctionType and one.__code__ in beside:
            others.update([] if first is None else [id(first)])  # that is what another tool has become
        else:
            begun = one if first is None and callable(one) else first
            queue.extend((part, begun) for part in _decorated_by(one))
    return None


def wrapping(function, beside):
    """The outermost function around this one, wherever that is."""
    import gc

    for _ in range(8):
        cells = [one for one in gc.get_referrers(function) if type(one) is CellType]
        closures = [held for cell in cells for held in gc.get_referrers(cell) if type(held) is tuple]
        around = [one for held in closures for one in gc.get_referrers(held) if type(one) is FunctionType and one.__closure__ is held]
        outer = next((one for one in around if one.__code__ not in beside and not _is_of_framework(one)), None)
        if outer is None:
            return function
        function = outer
    return function


def _is_of_framework(one):
    if type(one) is FunctionType:
        package = one.__globals__.get("__name__", "").partition(".")[0]
        is_of_package = package in _OF_FRAMEWORKS and "-packages" in one.__code__.co_filename
        return package == _OWN or is_of_package and "__wrapped__" not in one.__dict__
    return package_of(type(one)) in FRAMEWORKS


def _may_be_tool(part):
    """Whether it is what a framework keeps tools in, or a function, and not any object of the author's that can be called."""
    return not callable(part) or type(part) in (FunctionType, MethodType) or _is_of_framework(part)


def _placed(one):
    """What a framework's tool has where its function is, or its function in its closure."""
    if type(one) is FunctionType:
        return [part for cell in one.__closure__ or () for part in _parts(cell)]
    return [_attribute(one, name) for name in _PLACES]


def _attribute(one, name):
    try:
        return getattr(one, name)
    except Exception:
        return None  # an attribute that it does not have, or not now


def _decorated_by(one):
    """Where the result of a decorator keeps what it decorates."""
    if type(one) is FunctionType:
        yield from one.__closure__ or ()
        yield from (*one.__dict__.values(), *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values())
    elif type(one) is MethodType:
        yield one.__func__
        yield from getattr(one.__self__, "__dict__", {}).values()
    elif type(one) is partial:
        yield from (one.func, *one.args, *one.keywords.values())
    else:
        yield _attribute(one, "__wrapped__")
        yield from (_attribute(one, name) for kind in type(one).__mro__ for name in kind.__dict__.get("__slots__", ()))
        yield from list((_attribute(one, "__dict__") or {}).values())[:100]


def _parts(one):
    if isinstance(one, dict):
        yield from list(one.values())[:1000]
        return
    if isinstance(one, (list, tuple, set, frozenset)):
        yield from list(one)[:1000]
        return
    if type(one) is CellType:
        try:
            yield one.cell_contents
        except ValueError:
            pass  # empty
        return
    for name in () if type(one) is FunctionType else _PLACES:
        try:
            yield getattr(one, name)
        except Exception:
            pass  # an attribute that it does not have, or not now
    if type(one) in (FunctionType, MethodType):  # others may have any attribute that is asked for
        yield from one.__closure__ or ()
    try:
        yield from list(vars(one).values())[:200]
    except TypeError:
        pass  # it has no attributes of its own


def _referring_to(codes):
    """A function of this code that exists anywhere."""
    import gc

    for code in reversed(codes):
        for one in gc.get_referrers(code):
            if type(one) is FunctionType and one.__code__ is code:
                return one
    return None
