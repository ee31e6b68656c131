"""A package whose function starts its server."""

from . import server
from .settings import Settings


def main():
    server.run(Settings("store"))


__all__ = ["main", "server"]
