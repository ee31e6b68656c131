"""The corpus, read three ways: by hostler from the text, by pydantic and by FastMCP from the live functions."""

import importlib.util
import inspect
import json
import os
import random
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = HERE / "corpus"
HOSTLER = os.environ.get("HOSTLER_BIN", str(ROOT / "target" / "debug" / "hostler"))
SEED = int(os.environ.get("HOSTLER_ORACLE_SEED", "1"))
NEWER = "newer"  # in the words of Python 3.13


class Subject:
    """One function of the corpus."""

    def __init__(self, name, shown, function):
        self.name = name
        self.ours = shown["input_schema"]
        self.promised = shown["output_schema"]
        self.function = function  # None where this Python cannot read its file

    def chance(self, purpose):
        """The same for the same seed, whatever else ran before."""
        return random.Random(f"{SEED} {self.name} {purpose}")


def _load(path):
    spec = importlib.util.spec_from_file_location("corpus_" + path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _hostler(*words):
    done = subprocess.run([HOSTLER, *words, "--tools", str(CORPUS), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@cache
def subjects():
    modules = {}
    for path in sorted(CORPUS.glob("*.py")):
        readable = path.stem != NEWER or sys.version_info >= (3, 13)
        modules[path.stem] = _load(path) if readable else None
    listed = _hostler("list")
    broken = [row["reason"] for row in listed if row["status"] != "ready"]
    assert not broken, broken
    names = [row["name"] for row in listed]
    with ThreadPoolExecutor(2) as pool:
        shown = list(pool.map(lambda name: _hostler("show", name), names))
    found = []
    for name, one in zip(names, shown):
        pack, _, function = name.partition(".")
        found.append(Subject(name, one, modules[pack] and getattr(modules[pack], function)))
    return found


def live():
    return [subject for subject in subjects() if subject.function is not None]


def gives_back(subject):
    """Whether a function of the corpus returns its only argument."""
    body = inspect.getsource(inspect.unwrap(subject.function)).rstrip().rpartition("\n")[2].strip()
    return body in [f"return {name}" for name in subject.ours["properties"]]


def by_name(function):
    """The function with parameters that can be given by name: neither oracle takes others."""
    inner = inspect.unwrap(function)
    if not isinstance(function, types.FunctionType):
        function = inner  # a cache around it
    if not inner.__code__.co_posonlyargcount:
        return function
    code = inner.__code__.replace(co_posonlyargcount=0)
    copy = types.FunctionType(code, inner.__globals__, inner.__name__, inner.__defaults__, inner.__closure__)
    copy.__kwdefaults__, copy.__annotations__, copy.__module__ = inner.__kwdefaults__, inner.__annotations__, inner.__module__
    return copy


def pydantic_schema(subject):
    from pydantic import TypeAdapter

    return TypeAdapter(by_name(subject.function)).json_schema()


def fastmcp_schema(subject):
    from fastmcp.tools import Tool

    return Tool.from_function(by_name(subject.function)).parameters
