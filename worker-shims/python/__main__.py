"""Entry of the Python worker shim: ``python -I <this file> <tool file>``.

The directory in place of this file works too, 6 ms slower: Python then imports runpy.
"""

import sys

if __name__ == "__main__":  # not in the children of multiprocessing, which import this again
    here = __file__.rpartition("/")[0] or "."
    if here not in sys.path:
        sys.path.insert(0, here)
    if len(sys.argv) != 2:
        sys.exit("usage: python -I <shim directory>/__main__.py <tool file>")

    from hostler_worker.wire import wire  # first: takes fds 0 and 1 away from all that follows
    from hostler_worker.loop import main

    main(wire, sys.argv[1])
