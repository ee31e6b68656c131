# /// script
# dependencies = []
# ///
import hostler
from hostler import progres


def draw(path: str):
    if hasattr(hostler, "elicitate"):
        hostler.elicitate("path")
    return hostler.imagee(path)
