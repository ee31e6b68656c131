"""The folder of a tool file as a package, for relative imports: `from .units import convert`, `from ..shared import connect`."""

import os
import sys

_ALONE = "_hostler_folder"  # the package of a folder without `__init__.py`, below one for the folder around it
_OTHER = "_hostler_own_"  # before the name of a package that has that of another one
_MOST = 16
_MOST_WITHOUT_INIT = 4


def name_of(folder, text=b""):
    """The name of a tool file's package: the names of the folders around it, as far up as they have an `__init__.py`, or as the file imports
    from them."""
    names, depth, is_whole = [], 0, True
    while len(names) < _MOST:
        is_whole = is_whole and _is_package(folder)
        above, name = os.path.split(folder)
        if not is_whole and (len(names) >= _MOST_WITHOUT_INIT or not name):
            break
        names.append(name)
        if is_whole or name.isidentifier() and _imports_module(name, folder, text):
            depth = len(names)
        folder = above
    return ".".join(reversed(names[:depth])) or _ALONE + "." + _ALONE


def _text_of(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # loading says why


def _imports_module(package, folder, text):
    """Whether a file imports a module of this package that the folder has."""
    name = package.encode()
    if not any(before + name + after in text for before in (b"from ", b"import ", b", ") for after in (b".", b" import")):
        return False  # nearly always, and without `re`
    from re import MULTILINE, findall

    found = findall(rb"^[ \t]*(?:from|import)[ \t]+(?:[\w., \t]*,[ \t]*)?%s(?:\.|[ \t]+import[ \t]+\(?(?:\s|#[^\n]*\n)*)(\w+)" % name, text, MULTILINE)
    paths = (os.path.join(folder, module.decode()) for module in found)
    return any(os.path.isdir(path) or os.path.isfile(path + ".py") for path in paths)


def _is_package(folder):
    return os.path.basename(folder).isidentifier() and os.path.exists(os.path.join(folder, "__init__.py"))


def is_own(name):
    """Whether a module is one of a folder's package, which has no name of its own."""
    return name.startswith((_ALONE, _OTHER))


def in_dots(text):
    """What Python says of such a module, as the file names it: `No module named '.units'`."""
    beside = _ALONE + "." + _ALONE
    return text.replace("'%s'" % beside, "the folder of the file").replace(beside + ".", ".").replace(_ALONE + ".", "..").replace(_OTHER, "")


class Folders:
    """Finds these packages when one of them is first imported. It comes after every other finder."""

    def __init__(self, package, folder):
        self._folders, self._around = {}, {}
        around = folder
        while package:
            self._folders[package] = folder
            package, folder = package.rpartition(".")[0], os.path.dirname(folder)
        for _ in range(_MOST_WITHOUT_INIT):
            around, name = os.path.split(around)
            self._around.setdefault(name, os.path.join(around, name))

    def find_spec(self, name, path=None, target=None):
        folder = self._folders.get(name)
        if folder is None and name in self._around and _imports_module(name, self._around[name], _text_of(_importer())):
            folder = self._around[name]
        if folder is None:
            return None
        from importlib.machinery import ModuleSpec
        from importlib.util import spec_from_file_location

        own = os.path.join(folder, "__init__.py")
        if name.partition(".")[0] != _ALONE and os.path.exists(own):
            return spec_from_file_location(name, own, submodule_search_locations=[folder])
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [folder]
        return spec


def _importer():
    """The file whose import is under way."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen "):
        frame = frame.f_back
    return "" if frame is None else frame.f_code.co_filename


def place(module, folder, source):
    """Makes a tool file's module one of its package, and gives its name in that."""
    package = name_of(folder, _text_of(source))
    top, _, rest = package.partition(".")
    if top != _ALONE and _is_taken(top, folder, rest):
        package = _OTHER + package  # what is installed keeps its name
    module.__package__ = package
    sys.meta_path.append(Folders(package, folder))
    stem = os.path.splitext(os.path.basename(module.__file__))[0]
    if stem == "__init__":  # the package itself
        module.__path__ = [folder]
        return package
    return package + "." + stem


def run(module, name, path, execute):
    """Runs the tool file's module, by the name that it has in its package. Where it imports from that package, the `__init__.py` runs
    first, and finds it half done if it has begun: it runs then when that imports it."""
    own = _Own(module, name, execute)
    if not name.startswith(_ALONE) and not hasattr(module, "__path__") and _imports_from(name.partition(".")[0], path):
        from importlib import import_module

        sys.meta_path.insert(0, own)
        try:
            import_module(name.rpartition(".")[0])
        except Exception:
            if own.has_begun:
                raise
            # The file's own import of it says why.
        finally:
            sys.meta_path.remove(own)
    if not own.has_begun:
        sys.modules[name] = module  # a neighbour that imports it shares it
        execute(module)


def _imports_from(top, path):
    from re import MULTILINE, escape, search

    with open(path, "rb") as file:
        return search(rb"^[ \t]*(from[ \t]+\.|(from|import)[ \t]+%s[.\s])" % escape(top.encode()), file.read(), MULTILINE)


class _Own:
    """Finds the tool file in its package, and runs it in the module that it has already."""

    def __init__(self, module, name, execute):
        self._module, self._name, self._execute = module, name, execute
        self.has_begun = False

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self)

    def create_module(self, _spec):
        return self._module

    def exec_module(self, module):
        self.has_begun = True
        self._execute(module)


def _is_taken(top, folder, rest):
    """Whether a package of this name is found without these folders, in another place."""
    if top in getattr(sys, "stdlib_module_names", ()) or top in sys.builtin_module_names or top in sys.modules:
        return True
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(top)
    for _ in filter(None, rest.split(".")):
        folder = os.path.dirname(folder)
    return spec is not None and folder not in (spec.submodule_search_locations or ())
