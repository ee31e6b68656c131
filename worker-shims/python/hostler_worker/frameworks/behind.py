"""The function behind what a decorator left in its place."""

from _collections import deque
from types import CellType, FunctionType, MethodType, ModuleType

from ..loading import FRAMEWORKS

# Where frameworks keep it, looked at before anything else.
_PLACES = ("fn", "func", "coroutine", "entrypoint", "_tool_func", "_func", "_fn", "handler", "forward", "function", "__wrapped__")
_KEPT = FRAMEWORKS | {"google", "pydantic", __name__.partition(".")[0]}  # packages whose own functions around an author's are not the author's decorators
_NOTHING_INSIDE = (str, bytes, int, float, type, ModuleType, type(None))
_MOST = 2000  # things to look into


def behind(value, codes):
    """What to call for a value: itself where it is a function, or can be called and is of no framework. `codes` are those that the
    function may have; None for the first function that is found."""
    if type(value) is FunctionType or callable(value) and package_of(type(value)) not in FRAMEWORKS:
        return value
    return within(value, codes) or _referring_to(codes or ())


def package_of(kind):
    module = getattr(kind, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def unwrapped(function):
    for _ in range(64):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return function


def within(value, codes):
    """The outermost function that wraps the code and can be reached by attributes, containers and closures. A decorator of the author's
    need not say what it wraps."""
    seen, queue = {id(value): value}, deque([value])
    while queue and len(seen) < _MOST:
        one = queue.popleft()
        if type(one) in (FunctionType, MethodType):
            code = getattr(unwrapped(one), "__code__", None)
            if code is not None and (codes is None or code in codes) or codes is not None and encloses(one, codes):
                return one
        for part in _parts(one):
            if id(part) not in seen and not isinstance(part, _NOTHING_INSIDE):
                seen[id(part)] = part  # kept, so that no other thing gets its id
                queue.append(part)
    return None


def encloses(function, codes, depth=8):
    """Whether a function that is not of a framework has one of these codes in its closure, as the result of a decorator has."""
    cells = getattr(function, "__closure__", None)
    if not cells or function.__globals__.get("__name__", "").partition(".")[0] in _KEPT:
        return False
    for name, cell in zip(function.__code__.co_freevars, cells):
        for inner in _parts(cell):
            if type(inner) not in (FunctionType, MethodType):
                continue
            is_one = getattr(unwrapped(inner), "__code__", None) in codes
            if is_one and not _is_sibling(function, name, inner) or not is_one and depth and encloses(inner, codes, depth - 1):
                return True
    return False


def _is_sibling(function, name, other):
    """Whether a function only calls one that is defined beside it."""
    around = other.__qualname__.rpartition(".")[0]
    return name == other.__name__ and function.__qualname__.startswith(around)


def wrapping(function):
    """The outermost function around this one, wherever that is: what its decorators have made of it."""
    import gc

    for _ in range(8):
        outer = None
        for one in gc.get_referrers(function):
            if type(one) is CellType:
                closures = [held for held in gc.get_referrers(one) if type(held) is tuple]
                found = [made for held in closures for made in gc.get_referrers(held) if getattr(made, "__closure__", None) is held]
                outer = outer or next((made for made in found if type(made) is FunctionType and encloses(made, [function.__code__])), None)
        if outer is None:
            return function
        function = outer
    return function


def _parts(one):
    if isinstance(one, dict):
        yield from list(one.values())[:100]
        return
    if isinstance(one, (list, tuple, set, frozenset)):
        yield from list(one)[:100]
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
