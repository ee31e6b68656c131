"""A file that is served as one tool: for each call it runs as a program, with the call's command line."""

import sys

from .printed import Printed, Surroundings


def running(code, path):
    def call(argv=(), stdin=""):
        from io import BytesIO, TextIOWrapper

        module = type(sys)("__main__")
        module.__file__ = path
        with Printed() as printed, Surroundings():
            sys.argv = [path, *sys.argv[1:], *map(str, argv)]
            sys.stdin = TextIOWrapper(BytesIO(stdin.encode("utf-8", "surrogateescape")), "utf-8")
            sys.modules["__main__"] = module  # pickle and dataclasses look there
            try:
                exec(code, module.__dict__)
            except SystemExit as end:
                printed.ended(end.code)
            printed.finish()
        return printed.text()

    return call
