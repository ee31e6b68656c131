"""The official client against the examples, by either way of negotiation: every function, with real arguments."""

import base64
import hashlib
import json
import os
import unittest

from harness import DATA, EXAMPLES, HOSTLER, MCPError, Progress, config_file, connected, environment, scratch

KEY = "a signing key of more than thirty-two bytes"
SQL = (
    "SELECT c.country, count(*) AS n, round(sum(o.amount),2) AS total "
    "FROM orders o JOIN cities c USING (city) GROUP BY 1 ORDER BY total DESC"
)


def data(name):
    return str(DATA / name)


class Examples:
    """Run twice: once for each way of negotiation."""

    mode = "auto"
    revision = ""

    def connect(self, **options):
        config = config_file(scratch(self), '[tool.signing.config]\nissuer = "https://example.org"\n')
        return connected(EXAMPLES, config=config, mode=self.mode, env=environment(SIGNING_KEY=KEY), **options)

    async def test_the_list_is_the_same_each_time_and_in_each_process(self):
        lists = []
        for _ in range(2):
            async with self.connect() as hostler:
                self.assertEqual(hostler.client.protocol_version, self.revision)
                self.assertEqual(hostler.client.server_info.name, "hostler")
                for _ in range(2):
                    listed = await hostler.client.list_tools(cache_mode="bypass")
                    self.assertIsNone(listed.next_cursor, "many clients never ask for a second page")
                    lists.append(json.dumps([tool.model_dump(mode="json") for tool in listed.tools]))
        self.assertEqual(len(set(lists)), 1)
        tools = json.loads(lists[0])
        self.assertEqual([tool["name"] for tool in tools], sorted(tool["name"] for tool in tools))
        self.assertEqual(len(tools), 33)
        for tool in tools:
            self.assertRegex(tool["name"], r"^[a-zA-Z0-9_-]{1,64}$")
            self.assertEqual(tool["input_schema"]["type"], "object")
            self.assertTrue(tool["description"], tool["name"])

    async def test_annotations_say_what_the_author_said(self):
        async with self.connect() as hostler:
            tools = await hostler.tools()
        pure, idempotent, once = (tools[name].annotations for name in ("text_slug", "images_save_thumbnail", "digest_folder"))
        self.assertEqual((pure.read_only_hint, pure.idempotent_hint, pure.destructive_hint), (True, True, False))
        self.assertEqual((idempotent.read_only_hint, idempotent.idempotent_hint), (False, True))
        self.assertEqual((once.read_only_hint, once.idempotent_hint), (False, False))

    async def test_text_structure_and_outcome_of_a_result(self):
        async with self.connect() as hostler:
            plain = await hostler.call("text_slug", text="Über uns!")
            self.assertEqual((plain.text, plain.structured), ("uber-uns", {"result": "uber-uns"}))
            table = await hostler.call("text_statistics", text="One. Two.")
            self.assertEqual(table.structured["words"], 2)
            self.assertEqual(json.loads(table.text), table.structured)
            listed = await hostler.call("units_compatible", unit="litre")
            self.assertEqual(json.loads(listed.text), listed.structured["result"])
            self.assertEqual(set(table.outcome), {"call_id", "tool", "success", "latency_ms", "metadata"})
            self.assertEqual((table.outcome["tool"], table.outcome["success"]), ("text.statistics", True))
            self.assertNotEqual(plain.outcome["call_id"], table.outcome["call_id"])
            self.assertTrue(plain.metadata["cold"])
            self.assertEqual((table.metadata["cold"], table.metadata["attempt"]), (False, 1))
            self.assertEqual(plain.worker, table.worker)
            self.assertGreater(table.outcome["latency_ms"], table.metadata["run_ms"])

    async def test_either_name_of_a_tool_is_understood(self):
        async with self.connect() as hostler:
            self.assertEqual(await hostler.value("text.slug", text="A b"), "a-b")
            self.assertEqual(await hostler.value("text_slug", text="A b"), "a-b")

    async def test_web_pages(self):
        async with self.connect() as hostler:
            text = await hostler.value("webpage_text", path=data("article.html"))
            self.assertTrue(text.startswith("# Banking a Fire\nA cold boiler needs six hours"), text)
            self.assertNotIn("Imprint", text)
            links = await hostler.value("webpage_links", path=data("article.html"), base="https://example.org/")
            self.assertEqual(links[0], {"text": "Home", "url": "https://example.org/"})
            self.assertIn({"text": "the handbook", "url": "https://example.org/steam/handbook"}, links)
            head = await hostler.value("webpage_head", path=data("article.html"))
            self.assertEqual((head["title"], head["language"], len(head["headings"])), ("Banking a Fire", "en", 3))

    async def test_sheets(self):
        async with self.connect() as hostler:
            summary = await hostler.value("sheets_summary", path=data("engines.xlsx"))
            self.assertEqual((summary[0]["sheet"], summary[0]["rows"]), ("Engines", 5))
            tonnes = next(column for column in summary[0]["columns"] if column["name"] == "tonnes")
            self.assertEqual((tonnes["min"], tonnes["max"], tonnes["sum"]), (34.8, 98.5, 354.0))
            rows = await hostler.value("sheets_rows", path=data("engines.xlsx"), offset=2, limit=1)
            expected = {"number": 407, "class": "Mogul", "built": "1908-03-02T00:00:00", "tonnes": 61, "in steam": True}
            self.assertEqual(rows, [expected])
            wrong = await hostler.call("sheets_rows", path=data("engines.xlsx"), sheet="Cole")
            self.assertEqual(wrong.code, "TOOL_ERROR")
            self.assertIn("no sheet 'Cole'; the workbook has Engines", wrong.message)

    async def test_tables(self):
        async with self.connect() as hostler:
            answer = await hostler.value("tables_query", sql=SQL, files=[data("orders.csv"), data("cities.csv")])
            self.assertEqual(answer["columns"], ["country", "n", "total"])
            self.assertEqual((answer["rows"][0], answer["more"]), (["AT", 27, 100594.0], False))
            about = await hostler.value("tables_describe", file=data("orders.csv"))
            self.assertEqual((about["rows"], about["columns"]["date"]), (120, "DATE"))
            self.assertEqual(about["head"][0]["date"], "2026-01-01")

    async def test_images(self):
        target = scratch(self) / "small.webp"
        async with self.connect() as hostler:
            info = await hostler.value("images_info", path=data("engine.png"))
            self.assertEqual((info["width"], info["height"], info["format"], info["bytes"]), (480, 320, "PNG", 2063))
            seen = (await hostler.call("images_thumbnail", path=data("engine.png"), size=16, format="webp")).result
            image, = seen.content
            self.assertEqual((image.type, image.mime_type), ("image", "image/webp"))
            small = base64.b64decode(image.data)
            self.assertIsNone(seen.structured_content)
            self.assertEqual((small[:4], small[8:12]), (b"RIFF", b"WEBP"))
            saved = await hostler.value("images_save_thumbnail", path=data("engine.png"), to=str(target), size=16, format="webp")
            self.assertEqual((saved, target.read_bytes()), (str(target), small))
            again = await hostler.value("images_info", path=saved)
            self.assertEqual((again["width"], again["height"]), (16, 11))

    async def test_pdf(self):
        progress = Progress()
        async with self.connect() as hostler:
            text = await hostler.call("pdf_text", path=data("rules.pdf"), progress=progress)
            self.assertEqual(len(text.value.split("\f")), 2)
            self.assertIn("1. An engine in steam is never left alone.", text.value)
            own = [(done, total) for done, total, _ in progress.notes if total is not None]
            self.assertEqual(own, [(1, 2), (2, 2)])
            found = await hostler.value("pdf_find", path=data("rules.pdf"), words="FIRE")
            self.assertEqual(found, [{"page": 1, "line": "2. Look at the water before you look at the fire."}])
            info = await hostler.value("pdf_info", path=data("rules.pdf"))
            self.assertEqual((info["pages"], info["title"], info["created"]), (2, "Yard Rules", "2026-01-31T12:00:00+00:00"))

    async def test_units(self):
        async with self.connect() as hostler:
            there = await hostler.value("units_convert", value=26.2, unit="mile", to="km")
            self.assertAlmostEqual(there["value"], 42.1648128)
            self.assertEqual((there["unit"], there["text"]), ("km", "42.1648 km"))
            speed = await hostler.value("units_evaluate", expression="100 km / (50 min)", to="km/h")
            self.assertAlmostEqual(speed["value"], 120)
            self.assertIn("stere", await hostler.value("units_compatible", unit="litre"))

    async def test_markdown(self):
        async with self.connect() as hostler:
            html = await hostler.value("markdown_html", text="# Steam\n\n- coal\n- water")
            self.assertIn('<h1 id="steam">Steam</h1>', html)
            page = await hostler.value("markdown_render", path=data("notes.md"))
            self.assertIn("<title>Roundhouse notes</title>", page)
            self.assertIn("<table>", page)
            outline = await hostler.value("markdown_outline", path=data("notes.md"))
            self.assertEqual([child["anchor"] for child in outline[0]["children"]], ["handing-over", "coal"])

    async def test_checksums_in_an_event_loop(self):
        folder = scratch(self)
        for name, text in (("a", "same"), ("b", "same"), ("c", "else")):
            (folder / name).write_text(text)
        async with self.connect() as hostler:
            sums = await hostler.value("checksums_of_files", files=[str(folder / "a"), str(folder / "c")], algorithm="md5")
            expected = {str(folder / name): hashlib.md5(text).hexdigest() for name, text in (("a", b"same"), ("c", b"else"))}
            self.assertEqual(sums, expected)
            twins = await hostler.value("checksums_duplicates", folder=str(folder))
            self.assertEqual(twins, [[str(folder / "a"), str(folder / "b")]])

    async def test_signing_with_a_secret_and_a_setting(self):
        async with self.connect() as hostler:
            token = await hostler.value("signing_sign", subject="engine 407", claims={"fires": 2}, lifetime=60)
            checked = await hostler.value("signing_verify", token=token)
            self.assertTrue(checked["valid"])
            claims = checked["claims"]
            self.assertEqual((claims["sub"], claims["iss"], claims["fires"]), ("engine 407", "https://example.org", 2))
            self.assertEqual(claims["exp"] - claims["iat"], 60)
            forged = await hostler.value("signing_verify", token=token[:-4] + "AAAA")
            self.assertFalse(forged["valid"])

    async def test_code(self):
        folder = scratch(self)
        (folder / "sums.py").write_text("import os\n\n\ndef add(a: int, b: int) -> str:\n    return a + b\n")
        (folder / "test_sums.py").write_text("from sums import add\n\n\ndef test_add():\n    assert add(1, 2) == 4\n")
        async with self.connect() as hostler:
            linted = await hostler.value("code_run_linter", path=str(folder / "sums.py"))
            self.assertIn(("sums.py", 1, "F401"), {(found["file"], found["line"], found["rule"]) for found in linted["problems"]})
            typed = await hostler.value("code_run_linter", path=str(folder / "sums.py"), checker="mypy")
            self.assertEqual([(found["line"], found["rule"]) for found in typed["problems"]], [(5, "return-value")])
            tested = await hostler.value("code_run_tests", path=str(folder))
            self.assertEqual((tested["passed"], tested["exit_code"]), (False, 1))
            self.assertIn("assert 3 == 4", tested["output"])
            (folder / "test_sums.py").write_text("def test_nothing():\n    pass\n")
            self.assertTrue((await hostler.value("code_run_tests", path=str(folder)))["passed"])

    async def test_text(self):
        async with self.connect() as hostler:
            counted = await hostler.value("text_file_statistics", path=data("log.txt"))
            self.assertEqual((counted["lines"], counted["common"]["engine"]), (3, 2))
            self.assertEqual(await hostler.value("text_rename", identifier="parseHTMLPage", case="snake"), "parse_html_page")
            self.assertEqual(await hostler.value("text_wrap", text="one two three", width=7, align="right"), "one two\n  three")
            compared = await hostler.value("text_compare", old="a\nb", new="a\nc")
            self.assertEqual((compared["same"], compared["diff"].splitlines()[-2:]), (False, ["-b", "+c"]))

    async def test_a_tool_that_calls_other_tools(self):
        async with self.connect() as hostler:
            readers = await hostler.value("digest_readers")
            self.assertEqual(readers[".pdf"], "pdf.info")
            digest = await hostler.value("digest_folder", path=str(DATA))
            about = {entry["file"]: entry for entry in digest["files"]}
            self.assertEqual(set(about), {path.name for path in DATA.iterdir()})
            self.assertEqual(about["rules.pdf"]["about"]["title"], "Yard Rules")
            self.assertEqual(about["orders.csv"]["about"]["rows"], 120)
            self.assertEqual([name for name, entry in about.items() if "error" in entry], [])


class Modern(Examples, unittest.IsolatedAsyncioTestCase):
    """The client of today: `server/discover` first."""

    mode = "auto"
    revision = "2026-07-28"

    async def test_a_pinned_revision_needs_no_question(self):
        async with connected(EXAMPLES, mode="2026-07-28") as hostler:
            self.assertEqual(await hostler.value("text_slug", text="A b"), "a-b")


class Legacy(Examples, unittest.IsolatedAsyncioTestCase):
    """The client of yesterday: `initialize`."""

    mode = "legacy"
    revision = "2025-11-25"

    async def test_ping(self):
        async with connected(EXAMPLES, mode="legacy") as hostler:
            await hostler.client.send_ping()


class Unknown(unittest.IsolatedAsyncioTestCase):
    async def test_an_unknown_tool_is_an_error_of_the_protocol_with_near_names(self):
        for mode in ("auto", "legacy"):
            async with connected(EXAMPLES, mode=mode) as hostler:
                with self.assertRaises(MCPError) as raised:
                    await hostler.call("text_slugg", text="x")
                self.assertEqual(raised.exception.error.code, -32602)
                self.assertIn("there is no tool text_slugg; did you mean text.slug?", raised.exception.error.message)
                self.assertEqual(raised.exception.error.data["code"], "TOOL_NOT_FOUND")
                self.assertIn("text.slug", raised.exception.error.data["details"]["near"])
                self.assertEqual(await hostler.value("text_slug", text="x"), "x")


class Binary(unittest.TestCase):
    def test_the_program_under_test_is_there(self):
        self.assertTrue(os.access(HOSTLER, os.X_OK), HOSTLER)


if __name__ == "__main__":
    unittest.main()
