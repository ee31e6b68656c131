# /// script
# dependencies = []
# ///
import hostler

BASE = "notes://"


@hostler.resource(BASE + "{id}")
def note(id: str) -> str:
    return id


@hostler.resource("notes://{name}/text")
def text(id: str) -> str:
    return id
