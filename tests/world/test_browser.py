"""The page for people, in a real browser. Needs Chromium, which `scripts/test world` installs on Debian."""

import json
import os
from pathlib import Path

from browser import Browser
from harness import write_tool
from test_shared import Shared
from wire import call

TOOL = r'''
import sys, time, hostler
from dataclasses import dataclass
from enum import Enum

class Unit(Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"

@dataclass
class Booking:
    nights: int
    breakfast: bool = True

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

def said(text: str, note: str | None = None, unit: Unit = Unit.METRIC, part: float = 1.0) -> list:
    return [text, note, unit.value, part]

def book(hotel: str) -> str:
    answer = hostler.elicit(f"Book {hotel}?", Booking)
    return f"{answer.action} {answer.data}"

def quick(count: int) -> None:
    return None
'''


class InABrowser(Shared):
    def setUp(self):
        super().setUp()
        home = self.folder / "home"
        for folder in (home / "tools", self.tools):
            write_tool(folder, "demo", TOOL)
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
        self.browser.until(lambda: self.browser.value(script))

    def type(self, field, text):
        """As a keyboard or a clipboard does it."""
        focus = f"(() => {{ const found = [...document.querySelectorAll('[data-name={field}]')].at(-1); found?.focus(); return !!found; }})()"
        self.browser.until(lambda: self.browser.value(focus))
        self.browser.send("Input.insertText", text=text)

    def in_view(self, id):
        box = f"document.getElementById('{id}').getBoundingClientRect()"
        return self.browser.value(f"{box}.top >= 0 && {box}.top < innerHeight")

    def call(self, tool, **fields):
        self.press(tool, "document.getElementById('tools')")
        for name, text in fields.items():
            self.type(name, text)
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

    def test_the_form_sends_what_was_typed(self):
        browser = self.visit()
        text = "line one\nline two\n\tindented"
        self.call("demo.said", text=text, note="plain", part="0.50")
        browser.shows("complete")
        result = lambda: browser.value("document.getElementById('call-more').querySelector('pre')?.textContent ?? 'null'")
        browser.until(lambda: json.loads(result()) == [text, "plain", "metric", 0.5])
        self.assertTrue(self.in_view("call-name"), "the call is seen at once")
        self.press("demo.said", "document.getElementById('tools')")
        self.assertTrue(self.in_view("tool-name"))
        self.type("text", "x")
        browser.value("document.querySelector('[data-name=unit]').value = '\"imperial\"'; 1")
        self.type("part", "1,5")
        self.press("Call")
        browser.shows("part: this is not a number")
        self.press("As JSON")
        browser.value("document.getElementById('raw').value = '{\"text\": \"\", \"note\": \"\"}'; 1")
        self.press("Call")
        browser.until(lambda: json.loads(result()) == ["", "", "metric", 1.0])
        self.assertIn("1.0", result(), "numbers stay as they are written")
        self.assertEqual(browser.complaints(), [])

    def test_a_tool_asks_the_person_at_the_page(self):
        browser = self.visit()
        self.call("demo.book", hotel="Ritz")
        browser.shows("demo.book asks", "Book Ritz?")
        self.type("nights", "3")
        browser.value("document.querySelector('.question [data-name=breakfast]').value = 'false'; 1")
        self.press("Answer")
        browser.shows("accept Booking(nights=3, breakfast=False)")
        self.call("demo.book", hotel="Savoy")
        browser.shows("Book Savoy?")
        self.press("Decline")
        browser.shows("decline None")
        self.call("demo.book", hotel="Astor")
        browser.shows("Book Astor?")
        self.press("Cancel", "document.getElementById('running')")
        browser.shows("cancelled")
        browser.until(lambda: "Book Astor?" not in browser.text())
        self.assertEqual(browser.complaints(), [])

    def test_what_runs_is_what_hostler_says(self):
        browser = self.visit()
        rows = lambda list: browser.value(f"document.getElementById('{list}').children.length")
        self.wire.send(call(100, "demo_slow", seconds=1, word="a"))
        browser.until(lambda: rows("running") == 1)
        # Events are lost from here on.
        browser.value("globalThis.kept = happened, happened = () => {}, 1")
        self.wire.answer(100)
        for number in range(200, 203):
            self.wire.send(call(number, "demo_quick", count=number))
            self.wire.answer(number)
        browser.until(lambda: rows("running") == 0, 10)
        browser.value("happened = kept, happened({event: 'lost', count: 7}), 1")
        browser.until(lambda: browser.value("document.querySelectorAll('#ended .fact.good').length") == 4)
        self.assertEqual(browser.complaints(), [])

    def test_a_second_address_takes_the_place_of_the_first(self):
        browser = self.visit()
        before = browser.value("generation")
        for _ in range(3):
            browser.value(f"location.hash = {json.dumps(self.url().partition('#')[2])}; 1")
            browser.until(lambda: browser.value("location.hash") == "")
        # Not the connection of an address before the last.
        browser.until(lambda: browser.value(f"generation >= {before + 3} && !!socket"))
        self.call("demo.slow", seconds="0.9", word="once")
        browser.shows("complete", "waited")
        self.assertLessEqual(browser.value("document.getElementById('call-output').textContent").count("once"), 6)
        browser.value("location.hash = 'ticket=old'; 1")
        browser.shows("used before", "connected")
        browser.send("Page.reload")
        browser.shows("demo.slow", "version ")

    def test_a_token_is_traded_for_a_key(self):
        browser = self.browser
        browser.open(self.url().partition("#")[0])

        def enter(token):
            browser.shows("This page needs a ticket")
            browser.value("document.getElementById('token').focus(); 1")
            browser.send("Input.insertText", text=token)
            self.press("Connect")

        token = {scope: self.run_hostler("token", scope).stdout.strip() for scope in ("call", "operate")}
        for wrong, words in (("ключ", "this is not a token"), ("x" * 64, "this token is not valid"),
                             (token["call"], "the page needs the token")):
            enter(wrong)
            browser.shows(words)
        enter(token["operate"])
        browser.shows("demo.slow", "version ")
        kept = browser.value("Object.values(sessionStorage)")
        self.assertTrue(kept and token["operate"] not in kept, "only a key of this hostler is kept")

    def test_it_fits_a_phone(self):
        browser = self.visit()
        write_tool(self.folder / "home" / "tools", "wide", f'def see(a: str) -> str:\n    """{"x" * 2000}"""\n    return "y" * 3000\n')
        browser.shows("wide.see")
        browser.send("Emulation.setDeviceMetricsOverride", width=380, height=800, deviceScaleFactor=1, mobile=True)
        self.call("wide.see", a="b")
        browser.shows("yyyy")
        self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), 380)
        self.assertTrue(self.in_view("call-name"))

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
        self.call("demo.slow")
        browser.shows("busy")
        self.run_hostler("stop")
        browser.shows("not reachable", "run `hostler open`")
        browser.until(lambda: not browser.value("document.getElementById('call-facts').textContent").startswith("running"))
