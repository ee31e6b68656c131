"""The function behind what a decorator left in its place."""

from _collections import deque
from functools import partial
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


def within(value, codes, beside=()):
    """The outermost function that wraps the code and can be reached by attributes, containers and closures. A decorator of the author's
    need not say what it wraps; functions with the codes `beside` it wrap nothing, but may call it."""
    seen, queue = {id(value): value}, deque([value])
    while queue and len(seen) < _MOST:
        one = queue.popleft()
        if type(one) in (FunctionType, MethodType):
            code = getattr(unwrapped(one), "__code__", None)
            if code is not None and (codes is None or code in codes):
                return one
        if codes is not None and encloses(one, codes, beside):
            return one
        for part in _parts(one):
            if id(part) not in seen and not isinstance(part, _NOTHING_INSIDE):
                seen[id(part)] = part  # kept, so that no other thing gets its id
                queue.append(part)
    return None


def encloses(one, codes, beside=(), depth=8):
    """Whether what can be called and is not of a framework keeps a function of one of these codes, as the result of a decorator does."""
    for inner in _kept_by(one, beside):
        if type(inner) in (FunctionType, MethodType) and getattr(unwrapped(inner), "__code__", None) in codes:
            return True
        if depth and encloses(inner, codes, beside, depth - 1):
            return True
    return False


def _kept_by(one, beside):
    """What a function has in its closure, and an object that can be called in its attributes."""
    if type(one) is MethodType and one.__name__ == "__call__":
        one = one.__self__
    if type(one) is FunctionType:
        if one.__code__ not in beside and one.__globals__.get("__name__", "").partition(".")[0] not in _KEPT:
            for cell in one.__closure__ or ():
                yield from _parts(cell)
    elif type(one) is partial:
        yield one.func
    elif callable(one) and not isinstance(one, type) and package_of(type(one)) not in _KEPT:
        try:
            yield from list(vars(one).values())[:100]
        except TypeError:
            pass  # it has no attributes of its own


def wrapping(function, beside):
    """What the author's decorators have made of a function, wherever that is."""
    import gc

    codes = [function.__code__]
    for _ in range(8):
        outer = next((one for one in _holders(function, gc.get_referrers) if one is not function and encloses(one, codes, beside)), None)
        if outer is None:
            return function
        function = outer
    return function


def _holders(value, referrers):
    """The functions that have a value in their closure, and the objects that have it as an attribute."""
    for one in referrers(value):
        if type(one) is CellType:
            closures = [held for held in referrers(one) if type(held) is tuple]
            yield from (made for held in closures for made in referrers(held) if type(made) is FunctionType and made.__closure__ is held)
        elif type(one) is dict:
            yield from (owner for owner in referrers(one) if getattr(owner, "__dict__", None) is one and not isinstance(owner, ModuleType))
        else:
            yield one


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
