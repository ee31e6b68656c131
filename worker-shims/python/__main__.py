"""Entry of the Python worker shim: ``python -I <this file> <tool file> [<source> [<argument>…]]``.

The source is a file that holds the text to run in place of what the tool file holds by now. The arguments are the command line of
the file's program.

The directory in place of this file works too, 6 ms slower: Python then imports runpy.
"""

import sys

if __name__ in ("__main__", "__mp_main__"):
    here = __file__.rpartition("/")[0] or "."
    if here not in sys.path:
        sys.path.insert(0, here)

if __name__ == "__mp_main__":  # a child of multiprocessing, which runs this again
    from hostler_worker import children

    children.install()

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -I <shim directory>/__main__.py <tool file> [<source> [<argument>…]]")

    from hostler_worker.wire import wire  # first: takes fds 0 and 1 away from all that follows
    from hostler_worker.loop import main

    main(wire, *sys.argv[1:])
