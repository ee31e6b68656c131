"""The folder of a tool file as a package, for relative imports: `from .units import convert`, `from ..shared import connect`."""

import os
import sys

_ALONE = "_hostler_folder"  # the package of a folder without `__init__.py`, below one for the folder around it
_OTHER = "_hostler_own_"  # before the name of a package that has that of another one
_MOST = 16


def name_of(folder):
    """The name of a tool file's package: the names of the folders around it, as far up as they have an `__init__.py`."""
    if not _is_package(folder):
        return _ALONE + "." + _ALONE
    names = []
    while len(names) < _MOST and _is_package(folder):
        folder, name = os.path.split(folder)
        names.append(name)
    return ".".join(reversed(names))


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
        self._folders = {}
        while package:
            self._folders[package] = folder
            package, folder = package.rpartition(".")[0], os.path.dirname(folder)

    def find_spec(self, name, path=None, target=None):
        folder = self._folders.get(name)
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


def place(module, folder):
    """Makes a tool file's module one of its package, and gives its name in that."""
    package = name_of(folder)
    top, _, rest = package.partition(".")
    if top != _ALONE and _is_taken(top, folder, rest):
        package = _OTHER + package  # what is installed keeps its name
    module.__package__ = package
    sys.meta_path.append(Folders(package, folder))
    return package + "." + os.path.splitext(os.path.basename(module.__file__))[0]


def imported(name, path, source):
    """The tool file's module where the `__init__.py` of its package imports it: that runs before a file that imports from its package,
    and finds it half done if the file has begun. None where it does not, and where the file's text is another one by now."""
    package = name.rpartition(".")[0]
    if package.startswith(_ALONE):
        return None
    from importlib import import_module
    from re import MULTILINE, escape, search

    with open(path, "rb") as file, open(source, "rb") as kept:
        text = file.read()
        is_current = source == path or text == kept.read()
    imports_own = rb"^[ \t]*(from[ \t]+\.|(from|import)[ \t]+%s[.\s])" % escape(package.partition(".")[0].encode())
    if not is_current or not search(imports_own, text, MULTILINE):
        return None
    try:
        import_module(package)
    except Exception:
        pass  # the file's own import of it says why
    return sys.modules.get(name)


def _is_taken(top, folder, rest):
    """Whether a package of this name is found without these folders, in another place."""
    if top in getattr(sys, "stdlib_module_names", ()) or top in sys.builtin_module_names or top in sys.modules:
        return True
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(top)
    for _ in filter(None, rest.split(".")):
        folder = os.path.dirname(folder)
    return spec is not None and folder not in (spec.submodule_search_locations or ())
