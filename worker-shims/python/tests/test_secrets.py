"""No cut that the shim makes leaves a part of a secret: the host finds whole ones only."""

import base64
import json
from urllib.parse import quote

from harness import ShimTest

KEY = "sk-'ä\"" + "0123456789abcdef" * 3
LINES = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n"
LONGEST = 65536


class Cuts(ShimTest):
    SOURCE = """
        import hostler
        def message(before, form, after): raise ValueError("x" * before + form + "y" * after)
        def number(n: float): return n
    """

    def setUp(self):
        super().setUp()
        self.running = self.worker(self.SOURCE, secrets=["KEY", "LINES", "PIN"])

    def call(self, name, **arguments):
        return self.running.call(name, arguments, secrets={"KEY": KEY, "LINES": LINES, "PIN": "yyy"})["error"]

    def forms(self):
        yield KEY
        yield repr(KEY)[1:-1]
        yield json.dumps(KEY, ensure_ascii=False)[1:-1]
        yield quote(KEY, safe="")
        for before, begin in ((b"", 0), (b"me:", 4), (b"you:", 6), (b"them:", 7)):
            form = base64.urlsafe_b64encode(before + KEY.encode()).decode()[begin:]
            yield form.rstrip("=")[:-1] if form.endswith("=") else form  # the last one holds bits of padding
        yield LINES
        yield LINES.splitlines()[1]

    def whole_or_not_at_all(self, text, form, least=4):
        """None of its beginnings and ends stands in a text, once the whole ones are out."""
        rest = text.replace(form, "")
        for piece in (form[:least], form[-least:]):
            self.assertNotIn(piece, rest, rest[-200:])

    def test_a_long_message(self):
        for form in self.forms():
            for inside in (1, 5, len(form) // 2, len(form) - 1):
                error = self.call("message", before=LONGEST - len("ValueError: ") - inside, form=form, after=5000)
                self.assertTrue(error["message"].endswith("x…"), error["message"][-100:])
                self.assertNotIn(form[:1] + "…", error["message"])

    def test_one_that_ends_at_the_cut_stays_whole(self):
        error = self.call("message", before=LONGEST - len("ValueError: ") - len(KEY), form=KEY, after=5000)
        self.assertTrue(error["message"].endswith(KEY + "…"))

    def test_a_long_traceback(self):
        for inside in (1, 20, len(KEY) - 1):
            error = self.call("message", before=LONGEST, form=KEY, after=LONGEST // 2 - inside - 1)
            traceback = error["data"]["traceback"]
            self.assertIn("\n…\ny", traceback)
            self.assertNotIn(KEY[-1] + "y", traceback.partition("\n…\n")[2])
        for before in range(LONGEST // 2 - 300, LONGEST // 2, 11):
            traceback = self.call("message", before=before, form=KEY, after=LONGEST)["data"]["traceback"]
            self.whole_or_not_at_all(traceback.partition("\n…\n")[0], KEY)

    def test_an_argument_that_is_shown(self):
        for before in range(0, 60, 3):
            error = self.call("number", n="x" * before + KEY)
            shown = json.dumps(KEY, ensure_ascii=False)[1:-1]
            self.whole_or_not_at_all(error["message"], shown)
        self.assertIn("got \"xxx", self.call("number", n="x" * 100)["message"])
