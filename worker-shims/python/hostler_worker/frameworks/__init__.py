"""Tools as frameworks make them: the function behind what a decorator left, what the framework would give it, and what it returns
in the framework's own classes. Imported only where a tool file has imported a framework, or a decorator left no function."""

from .. import encode
from ..loading import Function
from .behind import behind
from .calling import calling
from .injected import given_to
from .results import READERS

encode.readers = READERS

def adapt(found, module, codes):
    """Puts in place of what the file's top-level functions have become what is to be called. `codes` are those that each name was
    defined by."""
    for name, made in codes.items():
        value = module.__dict__.get(name)
        if value is None or isinstance(value, type):
            continue
        function = behind(value, made)
        if function is not None:
            found[name] = Function(name, calling(function, given_to(function, module), value))
