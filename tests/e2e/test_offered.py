"""Resources and prompts: functions with a decorator, and files that the operator offers, as clients see them."""

import base64
import contextlib
import json
import select
import shutil
import time
import unittest
from pathlib import Path

from harness import META, PATIENCE, config_file, connected, run, scratch, write_tool
from mcp import MCPError
from wire import INLINE, OPENING, Wire, request

NOTES = '''
import enum
from typing import Literal

import hostler


class Tone(enum.Enum):
    DRY = "dry"
    WARM = "warm"


@hostler.resource("notes://all", title="All notes", mime_type="text/markdown")
def every() -> str:
    """Every note."""
    return "# Notes"


@hostler.resource("notes://{number}", name="note")
def note(number: int) -> dict:
    """One note.

    Args:
        number: Which.
    """
    if number > 9:
        raise KeyError(f"note {number}")
    return {"number": number, "type": type(number).__name__}


@hostler.resource("pages://{+path}", mime_type="image/png")
def page(path: str, scale: Literal[1, 2] = 1) -> bytes:
    return b"\\x89PNG" + path.encode()


@hostler.resource("files://{kind}")
async def some(kind: Literal["csv", "pdf", "both"]):
    csv, pdf = hostler.File(b"a,b", "text/csv"), hostler.File(b"%PDF-1", uri="files://pdf/1")
    return {"csv": csv, "pdf": pdf, "both": [csv, pdf]}[kind]


@hostler.prompt
def review(code: str, tone: Tone = Tone.DRY, depth: int = 1) -> list:
    """Review code.

    Args:
        code: The code.
    """
    return [f"Review in a {tone.value} tone, depth {depth + 0}:", {"role": "assistant", "content": code}]


@hostler.prompt("show", title="Show it")
def _shows():
    return {"role": "user", "content": ["See:", hostler.Image(b"\\x89PNG\\r\\n\\x1a\\n"), hostler.Link("notes://all")]}


@hostler.prompt
def wrong():
    return {"no": "message"}


def call_them() -> list:
    """Both are functions like any other."""
    return [every(), note(3)["number"], page("a").hex(), review("x")[1]["content"]]
'''


class Offered(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "notes", NOTES)

    async def test_both_eras_list_and_read_resources(self):
        for mode in ("auto", "legacy"):
            async with connected(self.tools, mode=mode) as hostler:
                client = hostler.client
                listed = (await client.list_resources()).resources
                self.assertEqual([(str(one.uri), one.name, one.title, one.description, one.mime_type) for one in listed],
                                 [("notes://all", "every", "All notes", "Every note.", "text/markdown")])
                templates = (await client.list_resource_templates()).resource_templates
                self.assertEqual([(one.uri_template, one.name, one.mime_type) for one in templates],
                                 [("notes://{number}", "note", None), ("pages://{+path}", "page", "image/png"), ("files://{kind}", "some", None)])
                self.assertEqual(sorted(await hostler.tools()), ["notes_call_them"])

                async def read(uri):
                    return (await client.read_resource(uri)).contents

                whole, = await read("notes://all")
                self.assertEqual((str(whole.uri), whole.text, whole.mime_type), ("notes://all", "# Notes", "text/markdown"))
                note, = await read("notes://7")
                self.assertEqual((json.loads(note.text), note.mime_type), ({"number": 7, "type": "int"}, "application/json"))
                page, = await read("pages://a%20b/c.png")
                self.assertEqual((base64.b64decode(page.blob), page.mime_type), (b"\x89PNGa b/c.png", "image/png"))
                csv, pdf = await read("files://both")
                self.assertEqual((csv.text, str(csv.uri), base64.b64decode(pdf.blob), str(pdf.uri)), ("a,b", "files://both", b"%PDF-1", "files://pdf/1"))
                self.assertEqual(await hostler.value("notes_call_them"), ["# Notes", 3, b"\x89PNGa".hex(), "x"])

    async def test_both_eras_list_and_get_prompts(self):
        for mode in ("auto", "legacy"):
            async with connected(self.tools, mode=mode) as hostler:
                listed = {one.name: one for one in (await hostler.client.list_prompts()).prompts}
                self.assertEqual(sorted(listed), ["notes_review", "notes_wrong", "show"])
                review = listed["notes_review"]
                self.assertEqual([(one.name, one.required, one.description) for one in review.arguments],
                                 [("code", True, "The code."), ("tone", False, None), ("depth", False, None)])
                self.assertEqual((review.description, listed["show"].title, listed["show"].arguments), ("Review code.", "Show it", None))
                got = await hostler.client.get_prompt("notes_review", {"code": "a = 1", "tone": "warm", "depth": "2"})
                self.assertEqual(got.description, "Review code.")
                self.assertEqual([(one.role, one.content.text) for one in got.messages],
                                 [("user", "Review in a warm tone, depth 2:"), ("assistant", "a = 1")])
                shown = (await hostler.client.get_prompt("show")).messages
                self.assertEqual([one.content.type for one in shown], ["text", "image", "resource_link"])

    async def test_arguments_are_completed(self):
        for mode in ("auto", "legacy"):
            async with connected(self.tools, mode=mode) as hostler:
                from mcp.types import PromptReference, ResourceTemplateReference

                prompt = PromptReference(type="ref/prompt", name="notes_review")
                template = ResourceTemplateReference(type="ref/resource", uri="files://{kind}")
                for reference, name, written, expected in (
                    (prompt, "tone", "", ["dry", "warm"]), (prompt, "tone", "W", ["warm"]), (prompt, "code", "", []),
                    (template, "kind", "", ["csv", "pdf", "both"]), (template, "kind", "p", ["pdf"]),
                ):
                    completion = (await hostler.client.complete(reference, {"name": name, "value": written})).completion
                    self.assertEqual((completion.values, completion.total, completion.has_more), (expected, len(expected), False))
                with self.assertRaises(MCPError) as refused:
                    await hostler.client.complete(PromptReference(type="ref/prompt", name="none"), {"name": "a", "value": ""})
                self.assertEqual(refused.exception.error.code, -32602)

    def wire(self, *settings):
        config = config_file(self.folder, "".join(settings))
        return Wire(self.tools, arguments=("--config", str(config)))

    def asked(self, wire, method, /, **params):
        self.number = getattr(self, "number", 0) + 1
        wire.send(request(self.number, method, **params))
        return wire.answer(self.number)

    def test_what_may_go_wrong(self):
        """Each row in both eras: the request, the code of its error in each, and words of it."""
        rows = {
            "an unknown resource": ("resources/read", {"uri": "nothing://here"}, (-32002, -32602), "no such resource"),
            "an address of hostler's own": ("resources/read", {"uri": "hostler://calls/x/result/0"}, (-32002, -32602), "no such resource"),
            "a value of a wrong type": ("resources/read", {"uri": "notes://seven"}, (-32602, -32602), "expected integer"),
            "a value that leads out of a folder": ("resources/read", {"uri": "notes://..%2F..%2Fetc"}, (-32602, -32602), "`number`"),
            "a path that leads out of a folder": ("resources/read", {"uri": "pages://a/../../b"}, (-32602, -32602), "`..`"),
            "a path from the root": ("resources/read", {"uri": "pages://%2Fetc/passwd"}, (-32602, -32602), "begins with a slash"),
            "a control character": ("resources/read", {"uri": "pages://a%00b"}, (-32602, -32602), "control character"),
            "a function that raises": ("resources/read", {"uri": "notes://10"}, (-32603, -32603), "KeyError"),
            "no address": ("resources/read", {}, (-32602, -32602), "uri"),
            "an unknown prompt": ("prompts/get", {"name": "none"}, (-32602, -32602), "no prompt"),
            "a prompt without its arguments": ("prompts/get", {"name": "notes_review"}, (-32602, -32602), "missing argument `code`"),
            "an argument that it does not have": ("prompts/get", {"name": "show", "arguments": {"x": "1"}}, (-32602, -32602), "unknown argument `x`"),
            "a value that it does not take": ("prompts/get", {"name": "notes_review", "arguments": {"code": "", "tone": "rude"}}, (-32602, -32602), "dry"),
            "a result that is no prompt": ("prompts/get", {"name": "notes_wrong"}, (-32603, -32603), "no prompt"),
            "a tool as a prompt": ("prompts/get", {"name": "notes_call_them"}, (-32602, -32602), "no prompt"),
            "a cursor of another list": ("resources/list", {"cursor": "x"}, (-32602, -32602), "cursor"),
            "a method that is not offered": ("tasks/list", {}, (-32601, -32601), "tasks/list"),
        }
        with self.wire() as legacy, self.wire() as modern:
            legacy.open()
            for name, (method, params, codes, words) in rows.items():
                for wire, meta, code in ((legacy, {}, codes[0]), (modern, {"_meta": INLINE}, codes[1])):
                    with self.subTest(name, code=code):
                        error = self.asked(wire, method, **params, **meta)["error"]
                        self.assertEqual(error["code"], code, error)
                        self.assertIn(words, error["message"])
                        if "uri" in params and method == "resources/read":
                            self.assertEqual(error["data"]["uri"], params["uri"])
            called = self.asked(legacy, "tools/call", name="notes_review", arguments={"code": ""})["error"]
            self.assertEqual(called["code"], -32602, "a prompt is no tool")
            self.assertEqual(self.asked(legacy, "resources/read", uri="notes://all")["result"]["contents"][0]["text"], "# Notes")

    def test_lists_and_contents_say_how_long_they_may_be_kept_since_2026_07_28(self):
        with self.wire() as wire:
            for method, params, kept in (
                ("resources/list", {}, True), ("resources/templates/list", {}, True), ("prompts/list", {}, True),
                ("resources/read", {"uri": "notes://all"}, True), ("prompts/get", {"name": "show"}, False),
                ("completion/complete", {"ref": {"type": "ref/prompt", "name": "show"}, "argument": {"name": "a", "value": ""}}, False),
            ):
                result = self.asked(wire, method, **params, _meta=INLINE)["result"]
                self.assertEqual(result["resultType"], "complete")
                self.assertEqual((result.get("ttlMs"), result.get("cacheScope")), (0, "private") if kept else (None, None), method)

    def test_files_of_the_operator(self):
        docs = self.folder / "docs"
        (docs / "deep").mkdir(parents=True)
        (docs / "a.md").write_text("# A")
        (docs / "deep" / "raw.bin").write_bytes(b"\xff\xfe")
        (self.folder / "secret.md").write_text("secret")
        (docs / "link.md").symlink_to(self.folder / "secret.md")
        (docs / "out.md").symlink_to("/etc/passwd")
        (docs / "inside.md").symlink_to("a.md")
        with self.wire('[mcp]\nresources = ["docs/**"]\nmax_result = "64KB"\n') as wire:
            wire.open()
            listed = [one["uri"] for one in self.asked(wire, "resources/list")["result"]["resources"]]
            files = [f"hostler://files/docs/{path}" for path in ("a.md", "deep/raw.bin", "inside.md")]
            self.assertEqual(listed, ["notes://all", *files])
            read = self.asked(wire, "resources/read", uri=files[0])["result"]["contents"]
            self.assertEqual(read, [{"uri": files[0], "mimeType": "text/markdown", "text": "# A"}])
            for path in ("docs/out.md", "docs/link.md", "secret.md", "docs/../secret.md", "docs/%2e%2e/secret.md", "hostler.toml"):
                error = self.asked(wire, "resources/read", uri=f"hostler://files/{path}")["error"]
                self.assertEqual(error["code"], -32002, path)
            (docs / "large.md").write_text("x" * 70_000)
            error = self.asked(wire, "resources/read", uri="hostler://files/docs/large.md")["error"]
            self.assertEqual(error["code"], -32603)
            self.assertIn("max_result", error["message"])
            (docs / "a.md").unlink()  # between the list and the read
            self.assertEqual(self.asked(wire, "resources/read", uri=files[0])["error"]["code"], -32002)

    def test_configuration_and_secrets_are_never_offered(self):
        (self.folder / "keys").mkdir()
        (self.folder / "keys" / "api.key").write_text("hunter2")
        (self.folder / "readme.md").touch()
        own = self.folder / "settings.toml"
        own.write_text('[mcp]\nresources = ["**"]\n[secrets]\nAPI_KEY = { file = "keys/api.key" }\n')
        with Wire(self.tools, arguments=("--config", str(own))) as wire:
            wire.open()
            listed = [one["uri"] for one in self.asked(wire, "resources/list")["result"]["resources"]]
            self.assertEqual(listed, ["notes://all", "hostler://files/readme.md", "hostler://files/tools/notes.py"])
            for path in ("settings.toml", "keys/api.key"):
                self.assertEqual(self.asked(wire, "resources/read", uri=f"hostler://files/{path}")["error"]["code"], -32002, path)

    def test_a_file_that_is_deleted_and_written_while_it_is_read(self):
        docs = self.folder / "docs"
        docs.mkdir()
        path, whole = docs / "a.txt", "x" * 40_000
        with self.wire('[mcp]\nresources = ["docs/*"]\n') as wire:
            wire.open()
            for number in range(1, 201):
                wire.send(request(number, "resources/read", uri="hostler://files/docs/a.txt"))
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
                if number % 3:
                    fresh = self.folder / "fresh"
                    fresh.write_text(whole)
                    fresh.rename(path)
                answer = wire.answer(number)
                if "result" in answer:
                    self.assertEqual(answer["result"]["contents"][0]["text"], whole, "whole, or not at all")
                else:
                    self.assertEqual(answer["error"]["code"], -32002)

    def test_ten_thousand_resources_are_listed_in_one_page_and_in_pages_beyond_a_line(self):
        docs = self.folder / "docs"
        for number in range(10_000):
            if number % 100 == 0:
                (docs / f"{number // 100:03}").mkdir(parents=True)
            (docs / f"{number // 100:03}" / f"{number:05}.md").touch()
        with self.wire('[mcp]\nresources = ["docs/**"]\n') as wire:
            wire.open()
            result = self.asked(wire, "resources/list")["result"]
            self.assertEqual((len(result["resources"]), "nextCursor" in result), (10_001, False))
            self.assertEqual(self.asked(wire, "resources/read", uri=result["resources"][-1]["uri"])["result"]["contents"][0]["text"], "")
        with self.wire('[mcp]\nresources = ["docs/**"]\nmax_result = "256KB"\n') as wire:
            wire.open()
            seen, cursor = [], {}
            while True:
                result = self.asked(wire, "resources/list", **cursor)["result"]
                self.assertLess(len(json.dumps(result, separators=(",", ":"))), 256_000)
                seen += [one["uri"] for one in result["resources"]]
                if "nextCursor" not in result:
                    break
                cursor = {"cursor": result["nextCursor"]}
            self.assertEqual((len(seen), len(set(seen))), (10_001, 10_001))

    def test_a_result_of_200_megabytes(self):
        """More than any worker may say, in all three shapes."""
        body = "import hostler\ndef tool(): return 'x' * 200_000_000\n@hostler.resource('big://r')\ndef r(): return 'x' * 200_000_000\n" \
               "@hostler.prompt\ndef p(): return 'x' * 200_000_000\n@hostler.resource('big://s')\ndef s(): return 'x' * 11_000_000\n"
        write_tool(self.tools, "big", body, "")
        with self.wire('[tool]\nlarge = "link"\n') as wire:
            wire.open()
            called = self.asked(wire, "tools/call", name="big_tool", arguments={})["result"]
            self.assertEqual((called["isError"], called["_meta"][META]["error"]["code"]), (True, "INVALID_OUTPUT"))
            for method, params in (("resources/read", {"uri": "big://r"}), ("prompts/get", {"name": "big_p"}), ("resources/read", {"uri": "big://s"})):
                error = self.asked(wire, method, **params)["error"]
                self.assertEqual((error["code"], error["data"]["code"]), (-32603, "INVALID_OUTPUT"), params)
            self.assertEqual(self.asked(wire, "resources/read", uri="notes://all")["result"]["contents"][0]["text"], "# Notes")

    def test_a_file_that_was_just_saved_is_what_is_read(self):
        body = "import hostler\n@hostler.resource('fresh://{%s}')\ndef r(%s: str): return '%s'\n@hostler.prompt\ndef p(%s: bool): return '%s'\n"
        with self.wire() as wire:
            wire.open()
            for name in ("first", "second", "third", "fourth"):
                write_tool(self.tools, "fresh", body % ((name,) * 5))
                reference = {"type": "ref/resource", "uri": "fresh://{%s}" % name}
                completed = self.asked(wire, "completion/complete", ref=reference, argument={"name": name, "value": ""})
                self.assertEqual(completed["result"]["completion"]["values"], [])
                write_tool(self.tools, "fresh", body % ((f"{name}_again",) * 5))
                read = self.asked(wire, "resources/read", uri="fresh://x")
                self.assertEqual(read["result"]["contents"][0]["text"], f"{name}_again")
                write_tool(self.tools, "fresh", body % ((name,) * 5))
                got = self.asked(wire, "prompts/get", name="fresh_p", arguments={name: "true"})
                self.assertEqual(got["result"]["messages"][0]["content"]["text"], name)

    def test_what_the_client_cannot_be_asked_is_named_since_2026_07_28(self):
        body = "import hostler\n@hostler.resource('asks://x')\ndef r(): return str(hostler.elicit('Sure?'))\n@hostler.prompt\ndef p(): return hostler.llm('x')\n"
        write_tool(self.tools, "asks", body)
        with self.wire() as legacy, self.wire() as modern:
            legacy.open()
            for method, params, capability in (("resources/read", {"uri": "asks://x"}, "elicitation"), ("prompts/get", {"name": "asks_p"}, "sampling")):
                error = self.asked(modern, method, **params, _meta=INLINE)["error"]
                self.assertEqual((error["code"], error["data"]), (-32021, {"requiredCapabilities": {capability: {}}}))
                error = self.asked(legacy, method, **params)["error"]
                self.assertEqual((error["code"], error["data"]["code"]), (-32603, "NOT_SUPPORTED"))

    def test_an_argument_of_null_is_left_out(self):
        body = "import hostler\nfrom typing import Optional\n@hostler.prompt\ndef p(a: str, b: str = 'usual', c: Optional[str] = None, d: int = 7): return repr((a, b, c, d))\n"
        write_tool(self.tools, "null", body)
        with self.wire() as wire:
            wire.open()
            got = self.asked(wire, "prompts/get", name="null_p", arguments={"a": "x", "b": None, "c": None, "d": None})
            self.assertEqual(got["result"]["messages"][0]["content"]["text"], "('x', 'usual', None, 7)")
            refused = self.asked(wire, "prompts/get", name="null_p", arguments={"a": None})["error"]
            self.assertEqual((refused["code"], refused["data"]["code"]), (-32602, "INVALID_PARAMS"))

    def test_lists_change_with_files(self):
        with self.wire() as wire:
            opened = wire.open()["result"]["capabilities"]
            self.assertEqual((opened["resources"], opened["prompts"], opened["completions"]), ({"listChanged": True, "subscribe": True}, {"listChanged": True}, {}))
            for method in ("tools/list", "resources/list", "prompts/list"):
                self.asked(wire, method)
            write_tool(self.tools, "later", "import hostler\n@hostler.resource('later://x')\ndef x(): return 'x'\n")
            wire.until("notifications/resources/list_changed")
            self.assertIn("later://x", [one["uri"] for one in self.asked(wire, "resources/list")["result"]["resources"]])
            write_tool(self.tools, "later", "import hostler\n@hostler.prompt\ndef x(): return 'x'\n")
            wire.until("notifications/prompts/list_changed")
            wire.until("notifications/resources/list_changed")
            self.assertEqual([note["method"] for note in wire.notes], [], "the tools stayed the same")
        with self.wire() as wire:
            wire.send(request(1, "subscriptions/listen", notifications={"promptsListChanged": True, "toolsListChanged": True}, _meta=INLINE))
            agreed = wire.until("notifications/subscriptions/acknowledged")["params"]["notifications"]
            self.assertEqual(agreed, {"promptsListChanged": True, "toolsListChanged": True})
            (self.tools / "later.py").unlink()
            wire.until("notifications/prompts/list_changed")

    def test_the_list_of_files_changes(self):
        docs = self.folder / "docs"
        docs.mkdir()
        (docs / "a.md").write_text("one")
        listed = "notifications/resources/list_changed"
        with self.wire('[mcp]\nresources = ["docs/**"]\n') as wire:
            wire.open()
            self.asked(wire, "resources/list")
            (docs / "a.md").write_text("the same list")
            (docs / "b.md").touch()
            wire.until(listed)
            self.assertEqual(len(self.asked(wire, "resources/list")["result"]["resources"]), 3)
            (docs / "b.md").unlink()
            wire.until(listed)
            self.assertNotIn(listed, [note.get("method") for note in wire.notes])
        with self.wire('[mcp]\nresources = ["docs/**"]\n') as wire:
            for number, filter in enumerate(({"toolsListChanged": True}, {"resourcesListChanged": True}), 1001):
                wire.send(request(number, "subscriptions/listen", notifications=filter, _meta=INLINE))
                wire.until("notifications/subscriptions/acknowledged")
            self.asked(wire, "resources/list", _meta=INLINE)
            (docs / "c.md").touch()
            self.assertEqual(wire.until(listed)["params"], {"_meta": {"io.modelcontextprotocol/subscriptionId": 1002}})
            (docs / "d.md").touch()
            wire.until(listed)
            self.assertNotIn(listed, [note.get("method") for note in wire.notes], "who did not ask hears nothing")

    def test_subscriptions_to_single_resources(self):
        docs = self.folder / "docs"
        docs.mkdir()
        (docs / "a.md").write_text("one")
        config = config_file(self.folder, '[mcp]\nresources = ["docs/**"]\n')
        file, function, absent = "hostler://files/docs/a.md", "notes://all", "hostler://files/docs/b.md"
        with Wire(self.tools, arguments=("--config", str(config))) as wire:
            wire.send(OPENING)
            wire.answer(0)
            for number, uri in enumerate((file, function), 1):
                wire.send(request(number, "resources/subscribe", uri=uri))
                self.assertEqual(wire.answer(number)["result"], {})
            wire.send(request(3, "resources/subscribe", uri=absent))
            self.assertEqual(wire.answer(3)["error"]["code"], -32002)
            (docs / "a.md").write_text("another")
            self.assertEqual(wire.until("notifications/resources/updated")["params"], {"uri": file})
            write_tool(self.tools, "notes", NOTES.replace("# Notes", "# More"))
            self.assertEqual(wire.until("notifications/resources/updated")["params"], {"uri": function})
            wire.send(request(4, "resources/unsubscribe", uri=file))
            self.assertEqual(wire.answer(4)["result"], {})
            (docs / "a.md").write_text("unheard")
            write_tool(self.tools, "notes", NOTES)
            self.assertEqual(wire.until("notifications/resources/updated")["params"], {"uri": function})
        with Wire(self.tools, arguments=("--config", str(config))) as wire:
            wire.send(request(1, "subscriptions/listen", notifications={"resourceSubscriptions": [file]}, _meta=INLINE))
            self.assertEqual(wire.until("notifications/subscriptions/acknowledged")["params"]["notifications"],
                             {"resourceSubscriptions": [file]})
            (docs / "a.md").write_text("once more")
            params = wire.until("notifications/resources/updated")["params"]
            self.assertEqual((params["uri"], params["_meta"]), (file, {"io.modelcontextprotocol/subscriptionId": 1}))

    def subscribed(self, wire, number, uri):
        wire.send(request(number, "resources/subscribe", uri=uri))
        self.assertEqual(wire.answer(number)["result"], {})

    def test_a_subscription_that_is_withdrawn_at_once(self):
        docs = self.folder / "docs"
        docs.mkdir()
        first, second = "hostler://files/docs/a.md", "hostler://files/docs/b.md"
        for name in ("a.md", "b.md"):
            (docs / name).write_text("one")
        with self.wire('[mcp]\nresources = ["docs/**"]\n') as wire:
            wire.open()
            wire.send(request(1, "resources/subscribe", uri=first) + request(2, "resources/unsubscribe", uri=first))
            self.assertEqual(wire.answer(2)["result"], {})
            self.subscribed(wire, 3, second)
            for name in ("a.md", "b.md"):
                (docs / name).write_text("another")
            self.assertEqual(wire.until("notifications/resources/updated")["params"], {"uri": second})
            self.subscribed(wire, 4, first)
            (docs / "a.md").write_text("once more")
            self.assertEqual(wire.until("notifications/resources/updated")["params"], {"uri": first})

    def test_a_client_that_does_not_read_hears_once_of_all_changes_of_a_resource(self):
        docs = Path("docs", *["x" * 240] * 10)  # long addresses, so that a pipe is soon full
        (self.folder / docs).mkdir(parents=True)
        files = [docs / f"{number:03}.md" for number in range(100)]

        def change(text):
            for path in files:
                (self.folder / path).write_text(text)

        change("one")
        with self.wire('[mcp]\nresources = ["docs/**"]\n') as wire:
            wire.open()
            for number, path in enumerate(files, 1):
                self.subscribed(wire, number, f"hostler://files/{path}")
            change("another")
            self.assertTrue(select.select([wire.output], [], [], PATIENCE)[0])
            for text in ("a third", "the fourth"):
                time.sleep(1.2)  # two looks, which are not to add anything
                change(text)
            self.asked(wire, "ping")
            heard = [note for note in wire.notes if note.get("method") == "notifications/resources/updated"]
            self.assertLessEqual(len(heard), len(files))
            wire.notes.clear()
            for _ in files:
                wire.until("notifications/resources/updated")

    def test_they_are_listed_and_shown_on_the_command_line(self):
        shown = run("list", "--tools", self.tools)
        for word in ("notes.every", "notes://all", "notes.review", "prompt", "notes.call_them"):
            self.assertIn(word, shown.stdout)
        self.assertIn("notes://{number}", run("show", "notes.note", "--tools", self.tools).stdout)


if __name__ == "__main__":
    unittest.main()
