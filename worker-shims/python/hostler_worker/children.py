"""What children of `multiprocessing` need that begin as new interpreters (`spawn`, `forkserver`): the tool file under its
module's name, by which pickled functions and classes are looked up. Touches no descriptor: the protocol is not theirs."""

import os
import sys

from .loading import PREFIX, compiled
from .package import place


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith(PREFIX):
            return None
        from importlib.machinery import ModuleSpec

        # Asked when it is needed: a fork server takes this in before it is told the arguments of any child. A tool may
        # have changed them, but its folder is the last on the path.
        folders = [os.path.dirname(argument) for argument in sys.argv[:1]] + sys.path[::-1]
        for folder in folders:
            file = os.path.join(folder, name[len(PREFIX):] + ".py")
            if os.path.isfile(file):
                spec = ModuleSpec(name, _Loader, origin=file)
                spec.has_location = True
                return spec
        return None


class _Loader:
    """Without the cache of byte code that the usual one would leave beside the tool file."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        module.__spec__ = None  # it names no package
        place(module, os.path.dirname(module.__file__), module.__file__)
        exec(compiled(module.__file__), module.__dict__)


def install():
    sys.meta_path.append(_Finder)
