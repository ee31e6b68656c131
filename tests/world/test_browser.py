"""The page for people, in a real browser. Needs Chromium, which `scripts/test world` installs on Debian."""

import json
import os
from pathlib import Path

from browser import Browser
from harness import write_tool
from test_shared import Shared

TOOL = r'''
import sys, time, hostler

def slow(seconds: float = 600.0, word: str = "tick") -> str:
    """Counts aloud."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        print(word, flush=True)
        time.sleep(0.2)
    return "waited"

def mark() -> str:
    """<img src=x onerror="document.title='pwned'">"""
    text = "<img src=x onerror=\"document.title='pwned'\">"
    print(text + "\x1b[31mred\x1b]0;pwned\x07", flush=True)
    return text

def fails(number: int) -> int:
    raise ValueError(f"no <b>{number}</b>")

def loud(megabytes: int = 10) -> int:
    for _ in range(megabytes * 100):
        print("x" * 9_999, flush=True)
    print("the end", flush=True)
    return megabytes

def same(number: int) -> int:
    return number
'''


class InABrowser(Shared):
    def setUp(self):
        super().setUp()
        home = self.folder / "home"
        write_tool(home / "tools", "demo", TOOL)
        self.env |= {"HOME": str(home), "XDG_CONFIG_HOME": str(self.folder / "config")}
        self.wire = self.open()
        self.browser = Browser(self)

    def url(self):
        return json.loads(self.run_hostler("open", "--json").stdout)["url"]

    def visit(self):
        self.browser.open(self.url())
        self.browser.shows("demo.slow", "version ")
        return self.browser

    def press(self, words, within="document"):
        """Presses the button that has this text."""
        found = f"[...{within}.querySelectorAll('button')].find((one) => one.textContent === {json.dumps(words)} && one.offsetParent)"
        script = f"(() => {{ const found = {found}; found?.click(); return !!found; }})()"
        self.assertTrue(self.browser.value(script))

    def call(self, tool, **fields):
        self.press(tool, "document.getElementById('tools')")
        for name, text in fields.items():
            self.browser.value(f"document.querySelector('[data-name={name}]').value = {json.dumps(text)}; 1")
        self.press("Call")

    def take_picture(self):
        """That of the documentation, where `HOSTLER_PICTURE` says."""
        if os.environ.get("HOSTLER_PICTURE"):
            self.call("demo.slow", word="one more line of output")
            self.browser.shows("one more line of output\none more", "busy")
            self.browser.send("Emulation.setDeviceMetricsOverride", width=1280, height=1120, deviceScaleFactor=1, mobile=False)
            self.browser.picture(Path(os.environ["HOSTLER_PICTURE"]))

    def test_a_call_by_the_form_is_seen_and_cancelled(self):
        browser = self.visit()
        self.call("demo.slow", word="heard-soon")
        browser.shows("heard-soon")
        # What is printed is seen soon: on a quiet machine within 0.3 s.
        lines = lambda: browser.value("document.getElementById('call-output').textContent").count("heard-soon")
        now = lines()
        browser.until(lambda: lines() > now + 2, 3)
        browser.shows("demo.py", "busy", "MB")
        self.press("Cancel")
        browser.shows("cancelled")
        self.call("demo.same", number="12345678901234567890")
        browser.shows("12345678901234567890")
        self.call("demo.fails", number="3")
        browser.shows("TOOL_ERROR", "no <b>3</b>", "Traceback")
        self.take_picture()
        self.assertEqual(browser.complaints(), [])

    def test_what_tools_write_is_text(self):
        browser = self.visit()
        self.call("demo.mark")
        browser.shows("onerror", "␛[31mred")
        browser.until(lambda: "pwned" in browser.value("document.getElementById('call-more').textContent"))
        self.assertEqual(browser.value("document.querySelectorAll('img').length"), 0)
        self.assertEqual(browser.value("document.title"), "hostler")
        self.assertEqual(browser.complaints(), [])

    def test_ten_megabytes_are_bounded(self):
        browser = self.visit()
        self.call("demo.loud")
        browser.shows("complete", "characters before these are left out")
        browser.until(lambda: "the end" in browser.value("document.getElementById('call-output').textContent.slice(-100)"))
        self.assertLessEqual(browser.value("document.body.textContent.length"), 600_000)
        self.assertEqual(browser.complaints(), [])

    def test_it_needs_a_ticket_that_is_new(self):
        url = self.url()
        self.browser.open(url)
        self.browser.shows("demo.slow")
        self.assertEqual(self.browser.value("location.hash"), "")
        asked = [one["params"]["request"]["url"] for one in self.browser.events if one.get("method") == "Network.requestWillBeSent"]
        self.assertFalse([one for one in asked if url.partition("=")[2] in one.partition("#")[0]])
        documents = [one for one in self.browser.events if one.get("method") == "Network.requestWillBeSent"
                     and one["params"]["type"] not in ("Fetch", "WebSocket", "Other")]
        self.assertEqual(len(documents), 1, "its first paint needs one request")
        other = Browser(self)
        other.open(url.partition("#")[0])
        other.shows("This page needs a ticket")
        self.assertNotIn("demo.slow", other.text())
        other.open(url)
        other.shows("used before")
        self.assertNotIn("demo.slow", other.text())

    def test_it_stays_with_a_reload_and_says_when_hostler_is_gone(self):
        browser = self.visit()
        browser.send("Page.reload")
        browser.shows("demo.slow", "version ")
        self.run_hostler("stop")
        browser.shows("not reachable")
