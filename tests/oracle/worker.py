"""The worker's own code on the live functions: arguments in, result out, without a process around it."""

import asyncio
import inspect
import json
import sys
import typing

import typing_extensions

from conforms import conforms
from corpus import ROOT

sys.path.insert(0, str(ROOT / "worker-shims" / "python"))

from hostler_worker.convert import Mismatch, plan_of  # noqa: E402
from hostler_worker.encode import encode  # noqa: E402

__all__ = ["Mismatch", "Worker"]


class Worker:
    def __init__(self, subject):
        self.function = subject.function
        inner = inspect.unwrap(subject.function)
        self.plan = plan_of(subject.function, inner.__globals__)
        self.hints = typing_extensions.get_type_hints(inner, include_extras=True)
        parameters = inspect.signature(inner).parameters.values()
        self.names = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY]
        self.rest = next((each.name for each in parameters if each.kind is each.VAR_KEYWORD), None)
        self.optional = {each.name for each in parameters if each.default is None}

    def convert(self, arguments):
        return ([], dict(arguments)) if self.plan is None else self.plan.apply(arguments)

    def mistyped(self, args, kwargs):
        """The names of arguments that are not what the annotations say."""
        given = {**dict(zip(self.names, args)), **kwargs}
        return [name for name, value in given.items() if not self._fits(name, value)]

    def _fits(self, name, value):
        hint = self.hints.get(name)
        if name not in inspect.signature(inspect.unwrap(self.function)).parameters:
            hint = self.hints.get(self.rest, typing.Any)
            if typing.get_origin(hint) in (typing.Unpack, typing_extensions.Unpack):
                inner = typing_extensions.get_type_hints(typing.get_args(hint)[0], include_extras=True)
                hint = inner.get(name, typing.Any)
        if hint is None or value is None and name in self.optional:
            return True
        return conforms(value, hint)

    def result(self, args, kwargs):
        """The result as JSON text, collected as the worker collects it."""
        value = self.function(*args, **kwargs)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        if inspect.isgenerator(value):
            value = list(value)
        return json.loads(encode(value))
