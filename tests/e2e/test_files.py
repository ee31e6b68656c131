"""Images and files as results: content for models, places in the result for programs, bytes for pipes."""

import base64
import json
import os
import pty
import subprocess
import unittest

from harness import HOSTLER, ROOT, connected, environment, run, scratch, write_tool

BODY = '''
from typing import Annotated

import hostler

PNG = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(8)


def plot() -> hostler.Image:
    """Draw."""
    return hostler.Image(PNG, name="plot.png")


def report() -> dict:
    """Draw and tell."""
    return {"title": "engine", "number": 2**70, "parts": [hostler.Image(PNG), hostler.File(b"a,b", name="rows of.csv")]}


def sound() -> Annotated[bytes, "audio/wav"]:
    """Whistle."""
    return b"RIFF0000WAVE"


def story() -> list:
    """Tell and show."""
    return [
        "before", hostler.Image(PNG), hostler.Audio(b"RIFF0000WAVE"), "between", hostler.File(b"a,b", "text/csv", uri="rows://1"),
        hostler.File(b"%PDF-1"), hostler.Link("https://a.b/c.png", size=7),
    ]


def told() -> list[str | hostler.Image | hostler.Audio | hostler.File | hostler.Link]:
    """The same, and the annotation says it."""
    return story()


def by_hand() -> dict:
    """An object of the right form needs no help."""
    return {"mime_type": "image/png", "base64": "iVBO"}


def not_one() -> dict:
    """An object of nearly that form is what it is."""
    return {"mime_type": "image/png", "base64": "no base64!"}
'''
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


class Files(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.tools = scratch(self)
        write_tool(self.tools, "art", BODY)

    async def test_a_model_sees_images_and_a_program_where_they_are(self):
        for mode in ("auto", "legacy"):
            async with connected(self.tools, mode=mode) as hostler:
                await hostler.client.list_tools()
                plot = (await hostler.call("art_plot")).result
                self.assertEqual([block.type for block in plot.content], ["image"])
                self.assertEqual((plot.content[0].mime_type, base64.b64decode(plot.content[0].data)), ("image/png", PNG))
                self.assertIsNone(plot.structured_content, "clients that find it show it instead of the image")

                report = (await hostler.call("art_report")).result
                self.assertEqual([block.type for block in report.content], ["text", "image", "resource"])
                resource = report.content[2].resource
                self.assertEqual((resource.mime_type, resource.text), ("text/csv", "a,b"))
                self.assertTrue(str(resource.uri).endswith("/rows%20of.csv"), resource.uri)
                self.assertEqual([part["content"] for part in report.structured_content["parts"]], [1, 2])

                sound = (await hostler.call("art_sound")).result
                self.assertEqual((sound.content[0].type, sound.content[0].mime_type), ("audio", "audio/wav"))

    async def test_a_list_of_texts_images_files_and_links_keeps_its_order(self):
        for mode in ("auto", "legacy"):
            async with connected(self.tools, mode=mode) as hostler:
                listed = await hostler.tools()
                for tool in ("art_told", "art_plot"):
                    self.assertIsNone(listed[tool].output_schema, tool)
                for tool in ("art_story", "art_told"):
                    story = (await hostler.call(tool)).result
                    kinds = [block.type for block in story.content]
                    self.assertEqual(kinds, ["text", "image", "audio", "text", "resource", "resource", "resource_link"], tool)
                    self.assertEqual((story.content[0].text, story.content[3].text), ("before", "between"))
                    csv, pdf, link = story.content[4:]
                    self.assertEqual((csv.resource.text, str(csv.resource.uri)), ("a,b", "rows://1"))
                    self.assertEqual(base64.b64decode(pdf.resource.blob), b"%PDF-1")
                    self.assertEqual((str(link.uri), link.name, link.mime_type, link.size), ("https://a.b/c.png", "c.png", "image/png", 7))
                    if tool == "art_told":
                        self.assertIsNone(story.structured_content)
                    else:  # `-> list` promises a list
                        places = [part.get("content") for part in story.structured_content["result"] if isinstance(part, dict)]
                        self.assertEqual(places, [1, 2, 4, 5, None])

    async def test_any_object_of_the_form_is_a_file_and_no_other(self):
        async with connected(self.tools) as hostler:
            by_hand = (await hostler.call("art_by_hand")).result
            self.assertEqual((by_hand.content[0].type, by_hand.content[0].data), ("image", "iVBO"))
            other = (await hostler.call("art_not_one")).result
            self.assertEqual((len(other.content), other.structured_content["base64"]), (1, "no base64!"))

    def test_a_pipe_gets_the_bytes(self):
        done = subprocess.run([HOSTLER, "call", "--tools", str(self.tools), "art.plot"], env=environment(), cwd=ROOT, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, PNG))
        whole = json.loads(run("call", "--tools", self.tools, "art.plot", "--json").stdout)
        self.assertEqual(base64.b64decode(whole["result"]["base64"]), PNG)
        report = json.loads(run("call", "--tools", self.tools, "art.report").stdout)
        self.assertEqual(base64.b64decode(report["parts"][1]["base64"]), b"a,b")

    def test_a_terminal_gets_a_description(self):
        for tool, words, not_words in (
            ("art.plot", ["plot.png, image/png, 16 bytes", "> plot.png"], b"\x89PNG"),
            ("art.report", ['"base64": "(16 bytes)"', "rows of.csv"], b"iVBO"),
        ):
            host, terminal = pty.openpty()
            self.addCleanup(os.close, host)
            done = subprocess.run([HOSTLER, "call", "--tools", str(self.tools), tool], env=environment(), cwd=ROOT,
                                  stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE)
            os.close(terminal)
            shown = os.read(host, 65536)
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in words:
                self.assertIn(word, shown.decode("utf-8", "replace"))
            self.assertNotIn(not_words, shown)


if __name__ == "__main__":
    unittest.main()
