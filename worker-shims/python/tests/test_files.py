"""Images and files in results."""

import base64

from harness import ShimTest

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def unpacked(found):
    return {**found, "base64": base64.b64decode(found["base64"])}


class Files(ShimTest):
    def one(self, source):
        return self.worker(source).call("f")

    def test_bytes_with_a_type(self):
        answer = self.one("import hostler\ndef f(): return [hostler.File(b'a,b', 'text/csv', 'x.csv'), hostler.File(b'a', name='y.json'), "
                          "hostler.File(b'%PDF-1.7'), hostler.File(b'?')]\n")
        self.assertEqual([unpacked(found) for found in answer["result"]], [
            {"mime_type": "text/csv", "base64": b"a,b", "name": "x.csv"},
            {"mime_type": "application/json", "base64": b"a", "name": "y.json"},
            {"mime_type": "application/pdf", "base64": b"%PDF-1.7"},
            {"mime_type": "application/octet-stream", "base64": b"?"},
        ])

    def test_a_path_is_read_at_once(self):
        answer = self.one(
            "import hostler, os, tempfile\nfrom pathlib import Path\n"
            "def f():\n    path = Path(tempfile.mkdtemp()) / 'note.txt'\n    path.write_text('steam')\n"
            "    found = hostler.File(path)\n    os.unlink(path)\n    return {'deep': [found]}\n")
        self.assertEqual(unpacked(answer["result"]["deep"][0]), {"mime_type": "text/plain", "base64": b"steam", "name": "note.txt"})

    def test_images_are_told_by_their_first_bytes(self):
        beginnings = {PNG: "image/png", b"\xff\xd8\xff\xe0": "image/jpeg", b"RIFF1234WEBPVP8 ": "image/webp", b"<svg/>": "image/svg+xml"}
        source = "import base64, hostler\ndef f(data: bytes, name: str = None): return hostler.Image(data, name=name)\n"
        worker = self.worker(source)
        for data, kind in beginnings.items():
            self.assertEqual(worker.call("f", {"data": base64.b64encode(data).decode()})["result"]["mime_type"], kind)
        named = worker.call("f", {"data": base64.b64encode(b"\xff\xd8\xff").decode(), "name": "wrong.png"})
        self.assertEqual(named["result"]["mime_type"], "image/jpeg")
        self.fault(worker.call("f", {"data": "aGk="}), -32000, "ValueError", "mime_type='image/")

    def test_a_hint_says_what_bytes_are(self):
        for future in ("", "from __future__ import annotations\n"):
            answer = self.one(future + "from typing import Annotated\nasync def f() -> Annotated[bytes, 'a picture', 'image/png']: return b'x'\n")
            self.assertEqual(unpacked(answer["result"]), {"mime_type": "image/png", "base64": b"x"})
        self.assertEqual(self.one("def f() -> bytes: return b'hi'\n")["result"], "aGk=")

    def test_a_hint_is_read_though_others_cannot_be(self):
        before = "from typing import TYPE_CHECKING, Annotated\nif TYPE_CHECKING:\n    from nowhere import Ghost\n"
        for future, ghost in (("from __future__ import annotations\n", "Ghost"), ("", "'Ghost'")):
            answer = self.one(future + before + "def f(x: %s = None) -> Annotated[bytes, 'image/png']: return b'x'\n" % ghost)
            self.assertEqual(unpacked(answer["result"]), {"mime_type": "image/png", "base64": b"x"})
        wrapped = (
            "import functools\ndef wrap(f):\n    @functools.wraps(f)\n    def inner(): return f()\n    return inner\n"
            "@wrap\ndef f() -> 'Annotated[bytes, \"image/png\"]': return b'x'\n")
        self.assertEqual(unpacked(self.one(before + wrapped)["result"]), {"mime_type": "image/png", "base64": b"x"})
        self.assertEqual(self.one(before + "def f() -> 'Ghost': return b'hi'\n")["result"], "aGk=")

    def test_what_libraries_draw(self):
        fakes = (
            "import sys, types\n"
            "image, figure, pyplot = (types.ModuleType(name) for name in ('PIL.Image', 'matplotlib.figure', 'matplotlib.pyplot'))\n"
            "closed = []\npyplot.close = closed.append\n"
            "class Image:\n"
            "    def __init__(self, format, mode='RGB'): self.format, self.mode = format, mode\n"
            "    def getbands(self): return ('R', 'G', 'B')\n"
            "    def convert(self, mode): return Image(None, mode)\n"
            "    def save(self, buffer, format):\n"
            "        if format == 'JPEG' and self.mode == 'RGBA' or format == 'PNG' and self.mode == 'CMYK': raise OSError(self.mode)\n"
            "        buffer.write(f'{format} {self.mode}'.encode())\n"
            "class Figure:\n"
            "    def savefig(self, buffer, format): buffer.write(format.encode())\n"
            "image.Image, figure.Figure = Image, Figure\n"
            "sys.modules.update({'PIL.Image': image, 'matplotlib.figure': figure, 'matplotlib.pyplot': pyplot})\n"
            "import hostler\n")
        answer = self.one(fakes + "def f():\n"
                          "    drawn = [Image('JPEG'), Image('JPEG', 'RGBA'), Image(None, 'CMYK'), Figure(), hostler.Image(Figure(), name='x')]\n"
                          "    return drawn\n")
        self.assertEqual([(found["mime_type"], base64.b64decode(found["base64"])) for found in answer["result"]], [
            ("image/jpeg", b"JPEG RGB"), ("image/png", b"PNG RGBA"), ("image/png", b"PNG RGB"), ("image/png", b"png"), ("image/png", b"png")])
        self.assertEqual(answer["result"][4]["name"], "x")
        worker = self.worker(fakes + "def f(): return Figure()\ndef g(): return len(closed)\n")
        worker.call("f")
        self.assertEqual(worker.call("g")["result"], 1)

    def test_hostler_has_no_other_names(self):
        self.fault(self.one("import hostler\ndef f(): return hostler.Flie\n"), -32000, "no attribute 'Flie'")
