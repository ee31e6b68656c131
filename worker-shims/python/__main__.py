"""Entry of the Python worker shim: ``python -I <this directory> <tool file>``."""

import sys

from hostler_worker.wire import wire  # first: takes fds 0 and 1 away from everything that follows
from hostler_worker.loop import main

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -I <shim directory> <tool file>")
    main(wire, sys.argv[1])
