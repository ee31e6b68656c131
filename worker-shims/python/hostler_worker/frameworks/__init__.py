"""Tools as frameworks make them: the function behind what a decorator left, what the framework would give it, and what it returns
in the framework's own classes. Imported only where a tool file has imported a framework, or a decorator left no function."""

import sys

from .. import encode
from ..loading import Function
from .behind import behind, package_of
from .calling import calling, current_for
from .injected import given_to
from .results import READERS

SERVERS = frozenset(("mcp", "fastmcp"))
COMMANDS = frozenset(("click", "typer"))
CLAUDE = frozenset(("claude_agent_sdk", "claude_code_sdk"))
encode.readers = READERS


def adapt(found, module, codes):
    """Puts in place of what the file's top-level functions have become what is to be called. `codes` are those that each name was
    defined by."""
    commands = None
    if not COMMANDS.isdisjoint(sys.modules):
        from .commands import Commands

        commands = Commands(module)
    begin, current = around(module)
    for name, made in codes.items():
        value = module.__dict__.get(name)
        if value is None or isinstance(value, type):
            continue
        function = behind(value, made)
        if function is not None:
            command = commands.calling(value, function) if commands else None
            if command is not None:
                found[name] = Function(name, command)
                continue
            package = package_of(type(value))
            if package in CLAUDE:
                from . import claude

                found[name] = Function(name, claude.calling(function))
                continue
            call = calling(function, given_to(function, module, package), value, begin)
            found[name] = Function(name, current_for(call, current))


def around(module):
    """What a server of MCP adds to each call: what begins its lifespan, and what makes a context the current one. None in place of what
    the file has not."""
    if SERVERS.isdisjoint(sys.modules):
        return None, None
    from .mcp import current_of, lifespan_of

    return lifespan_of(module), current_of(module)
