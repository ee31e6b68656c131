"""The page for people, without a browser: its document, its ticket and its key."""

import base64
import hashlib
import json
import re
from urllib.parse import urlsplit

from harness import run
from test_http import Rpc, Site
from test_shared import Shared


class Page(Shared):
    def setUp(self):
        super().setUp()
        self.open()

    def ticket(self):
        """A server, and a ticket for it."""
        opened = json.loads(self.run_hostler("open", "--json").stdout)
        url = urlsplit(opened["url"])
        self.assertEqual((url.scheme, url.hostname, url.path, url.query, opened["valid_s"]), ("http", "127.0.0.1", "/", "", 60))
        return Site(url.port, self.env), re.fullmatch("ticket=([0-9a-f]{64})", url.fragment)[1]

    def key(self):
        site, ticket = self.ticket()
        answer = site.send("POST", "/page/key", ticket)
        self.assertEqual(answer.status, 200)
        return site, answer.json["key"]

    def test_a_ticket_gives_one_key(self):
        site, ticket = self.ticket()
        self.assertEqual(site.send("POST", "/page/key", ticket).status, 200)
        for wrong in (ticket, "", "0" * 64, "x" * 1000, "\xff", site.tokens["operate"]):
            answer = site.send("POST", "/page/key", wrong.encode("latin-1"))
            self.assertEqual((answer.status, answer.code), (403, "INVALID_TICKET"), wrong)
        self.assertEqual(site.send("POST", "/page/key", "x" * 5000).status, 413)
        self.assertEqual(site.send("GET", "/page/key").status, 405)
        self.assertEqual(site.send("POST", "/page/key", ticket, Host="evil.example").code, "FOREIGN_HOST")
        self.assertEqual(site.send("POST", "/page/key", ticket, Origin="http://evil.example").code, "FOREIGN_ORIGIN")

    def test_the_key_operates_and_a_ticket_does_not(self):
        site, key = self.key()
        site.tokens["page"], (_, site.tokens["ticket"]) = key, self.ticket()
        self.assertGreater(site.value("status", scope="page")["pid"], 0)
        with site.socket(scope="page") as link:
            self.assertTrue(Rpc(link).value("health")["accepting"])
            self.assertIn("url", Rpc(link).value("page.open", id=2))
        self.assertEqual(site.send("POST", "/rpc", "{}", "ticket").status, 401)

    def test_page_open_needs_the_scope_operate(self):
        site, _ = self.ticket()
        for scope in ("observe", "call"):
            self.assertEqual(site.post("page.open", scope=scope)["error"]["data"]["code"], "FORBIDDEN")

    def test_the_document_runs_nothing_but_its_own(self):
        site, _ = self.ticket()
        page = site.send("GET", "/")
        self.assertEqual((page.status, page.headers["content-type"]), (200, "text/html; charset=utf-8"))
        policy, text = page.headers["content-security-policy"], page.body.decode()
        for name in ("script", "style"):
            (inline,) = re.findall(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
            self.assertIn(f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'", policy)
        for word in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"):
            self.assertIn(word, policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual((page.headers["cache-control"], page.headers["referrer-policy"]), ("no-store", "no-referrer"))
        # Its first paint needs no other request, and no text of others becomes markup.
        self.assertEqual(re.findall(r"""(?:src|href)=["'](?!data:)""", text), [])
        self.assertNotRegex(text, r"innerHTML|insertAdjacentHTML|document\.write|\beval\b")

    def test_without_a_shared_hostler_there_is_none(self):
        self.run_hostler("stop")
        self.assertEqual(run("open", env=self.env).returncode, 3)
