"""Tool files as people write them for frameworks, served unchanged: with the frameworks' real packages. What they need is said by the
operator. `scripts/test wild` runs this."""

import asyncio
import json
import unittest
from pathlib import Path

import mcp.types as types

from harness import config_file, connected, environment, run, scratch

FILES = Path(__file__).parent / "files"
SETTINGS = '[tool.{pack}]\ndependencies = {needs}\nrequires-python = ">=3.10"\nstartup_timeout = "2m"\ntimeout = "4m"\n' \
           '[tool.{pack}.config]\nuser = "ada"\nunit = "F"\n'


async def fill_in(_context, params):
    """A user who fills in every form."""
    return types.ElicitResult(action="accept", content={"street": "Main 1", "express": True})


class Frameworks(unittest.IsolatedAsyncioTestCase):
    maxDiff = None

    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        self.tools.mkdir()

    def given(self, pack, *needs):
        """The file of this name, and what it needs."""
        (self.tools / f"{pack}.py").write_bytes((FILES / f"{pack}.py").read_bytes())
        settings = SETTINGS.format(pack=pack, needs=json.dumps(needs)) if needs else f'[tool.{pack}]\nconfig = {{ unit = "F" }}\n'
        self.config = config_file(self.folder, settings)

    def connected(self, **options):
        return connected(self.tools, config=self.config, elicitation_callback=fill_in, **options)

    async def served(self, pack, *needs, names, **values):
        """Serves the file, asserts its tools, and what each of these calls gives."""
        self.given(pack, *needs)
        async with self.connected() as session:
            self.assertEqual(set(await session.tools()), {f"{pack}_{name}" for name in names})
            for name, (arguments, expected) in values.items():
                with self.subTest(name):
                    answer = await session.call(f"{pack}_{name}", **arguments)
                    self.assertEqual(answer.value, expected, answer.text)
        done = run("check", "--tools", self.tools, "--config", self.config, "--json", env=environment(), cwd=self.folder)
        self.assertEqual(json.loads(done.stdout), [], done.stdout)

    async def mcp_server(self, pack, needs, tools):
        self.given(pack, needs)
        async with self.connected(verbose=True) as session:
            listed = await session.tools()
            self.assertEqual(set(listed), {f"{pack}_{name}" for name in tools})
            self.assertEqual(listed[f"{pack}_find_order"].description, "Looks an order up.")
            self.assertEqual(set(listed[f"{pack}_find_order"].input_schema["properties"]), {"order"})
            if "in_stock" in tools:
                self.assertEqual(await session.value(f"{pack}_in_stock", item="tea"), 3, "the lifespan has begun")
                self.assertIs(await session.value(f"{pack}_careful"), True)
            self.assertTrue((await session.value(f"{pack}_total", prices=[1, 2.5])).startswith("3.50"))
            self.assertEqual(await session.value(f"{pack}_find_order", order="a1"), "open")
            self.assertEqual(await session.value(f"{pack}_deliver"), "Main 1 True")
            image = (await session.call(f"{pack}_label")).result.content[0]
            self.assertEqual((image.type, image.mime_type), ("image", "image/png"))
            self.assertIn("looking for a1", session.said())
            resource = await session.client.read_resource("orders://7")
            self.assertEqual(resource.contents[0].text, "order 7")
            prompt = await session.client.get_prompt(f"{pack}_complaint", {"about": "tea"})
            self.assertEqual(prompt.messages[0].content.text, "Complain about tea.")
            if "translate" in tools:
                fault = (await session.call(f"{pack}_translate")).text
                self.assertIn("no `translate`; it has: ", fault)
                self.assertEqual(await session.value(f"{pack}_taxed", price=4), 5, "made once for each call")
            else:
                self.assertIn("no stock", (await session.call(f"{pack}_refused")).text)

    FASTMCP = ("total", "find_order", "deliver", "taxed", "in_stock", "careful", "label", "translate")
    SDK = ("total", "find_order", "deliver", "label", "refused")

    async def test_fastmcp_2(self):
        await self.mcp_server("fastmcp_server", "fastmcp==2.14.7", self.FASTMCP)

    async def test_fastmcp_3(self):
        await self.mcp_server("fastmcp_server", "fastmcp==3.4.11", self.FASTMCP)

    async def test_fastmcp_4(self):
        await self.mcp_server("fastmcp_server", "fastmcp==4.2.3", self.FASTMCP)

    async def test_sdk_1(self):
        await self.mcp_server("sdk_server", "mcp==1.30.0", self.SDK)

    async def test_sdk_2(self):
        await self.mcp_server("sdk_server", "mcp==2.3.0", self.SDK)

    async def test_fastmcp_is_given_its_tools(self):
        for needs in ("fastmcp==2.14.7", "fastmcp==4.2.3"):
            with self.subTest(needs):
                await self.served("fastmcp_further", needs, names=("double", "report", "plain"), double=({"value": 4}, 8),
                                  report=({"word": "x"}, "x True"), plain=({}, "Context"))

    async def test_functions_make_the_tools(self):
        for needs in ("mcp==1.30.0", "mcp==2.3.0", "fastmcp==2.14.7", "fastmcp==4.2.3"):
            with self.subTest(needs):
                await self.served("made_tools", needs, names=("order", "in_stock", "times", "note", "upper", "profile"),
                                  profile=({"name": "Al"}, {"name": "Al", "age": 3}), upper=({"text": "a"}, "A"), times=({"a": 3}, 6), in_stock=({}, 3),
                                  order=({"item": "tea", "day": "2026-01-02"}, 1), note=({"text": "b"}, ["first", "b"]))

    async def test_decorators_of_the_author_are_part_of_a_tool(self):
        for needs in ("mcp==1.30.0", "mcp==2.3.0", "fastmcp==3.4.11", "fastmcp==4.2.3"):
            with self.subTest(needs):
                await self.served("guarded_tools", needs, names=("drop", "fetch", "price", "prices_of"), fetch=({"page": 7}, 7),
                                  price=({"key": "coffee"}, "nothing"), prices_of=({"first": "tea", "second": "x"}, ["2", "nothing"]))
                async with self.connected() as session:
                    dropped = await session.call("guarded_tools_drop", name="users")
                    self.assertEqual((dropped.code, "no token" in dropped.text), ("TOOL_ERROR", True), dropped.text)

    async def test_a_folder_says_what_its_files_need(self):
        (self.tools / "ask.py").write_text("import six\n\n\ndef version() -> str:\n    return six.__version__\n")
        (self.tools / "plain.py").write_text("def one() -> int:\n    return 1\n")
        (self.tools / "requirements.txt").write_text("six==1.16.0  # as long as it is tested\n")
        self.config = config_file(self.folder, "")
        async with self.connected() as session:
            self.assertEqual(await session.value("ask_version"), "1.16.0")
            (self.tools / "requirements.txt").write_text("six==1.17.0\n")
            self.assertEqual(await session.value("ask_version"), "1.17.0", "a change of it is one of the file")
            (self.tools / "requirements.txt").unlink()
            (self.tools / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["six==1.16.0"]\n')
            self.assertEqual(await session.value("ask_version"), "1.16.0")
            self.assertEqual(await session.value("plain_one"), 1)
        listed = json.loads(run("list", "--tools", self.tools, "--config", self.config, "--json", env=environment(), cwd=self.folder).stdout)
        self.assertEqual({tool["name"]: tool["kind"] for tool in listed}, {"ask.version": "python", "plain.one": "internal"})

    async def test_classes_give_their_methods(self):
        for needs in ("mcp==1.30.0", "mcp==2.3.0", "fastmcp==2.14.7", "fastmcp==4.2.3"):
            with self.subTest(needs):
                await self.served("bound_tools", needs, names=("manage_stacks", "count", "echo", "look_up", "size"),
                                  size=({"n": 3}, "3 KB"), manage_stacks=({"name": "a"}, "a 2 False"), echo=({"text": "x"}, "x"), look_up=({"user": "u"}, ["u", "Events"]))
                async with self.connected() as session:
                    self.assertEqual(await session.value("bound_tools_count"), 0)
                    await session.value("bound_tools_manage_stacks", name="a")
                    self.assertEqual(await session.value("bound_tools_count"), 1, "of one instance")

    async def test_camel(self):
        await self.served("camel_tools", "camel-ai==0.2.90", "mcp<2", names=("say",), say=({"text": "a", "times": 2}, "a a 1"))

    async def test_crewai(self):
        await self.served("crew_tools", "crewai==1.15.30", names=("Word_counter", "shout", "Look_up", "day"),
                          Word_counter=({"text": "a bb ccc", "minimum": 2}, 2), shout=({"text": "hi"}, "HI"),
                          Look_up=({"key": "k", "others": ["l"]}, "value of k, l (2)"), day=({"number": 1}, "Tuesday"))

    async def test_sdk_2_low_level(self):
        await self.served("low_level_given", "mcp==2.3.0", names=("add_note", "fail"), add_note=({"text": "a"}, "1 add-note"))
        async with self.connected() as session:
            self.assertEqual([await session.value("low_level_given_add_note", text="a") for _ in range(2)], ["1 add-note", "2 add-note"])
            self.assertIn("it failed", (await session.call("low_level_given_fail")).text)

    async def test_sdk_2_low_level_made_by_functions(self):
        await self.served("low_level_nested", "mcp==2.3.0", names=("keep_note", "count"), keep_note=({"text": "a"}, "keep-note: a"))
        async with self.connected() as session:
            said = [await session.value("low_level_nested_keep_note", text=text) for text in "ab"]
            self.assertEqual(said, ["keep-note: a", "keep-note: a, b"])
            self.assertEqual([await session.value("low_level_nested_count") for _ in range(2)], ["2", "4"])

    async def test_sdk_low_level(self):
        await self.served("low_level", "mcp==1.30.0", names=("add_note", "remove_note", "find"),
                          add_note=({"text": "a b", "size": "a"}, "1 a"), find=({"words": ["a"]}, "a b"))
        async with self.connected(verbose=True) as session:
            self.assertIn("there are no notes", (await session.call("low_level_remove_note")).text)
            add = (await session.tools())["low_level_add_note"]
            self.assertEqual(add.description, "Adds a note, and counts them.")
            self.assertEqual(add.input_schema["properties"]["text"], {"type": "string", "description": "The text of the note, "})
            self.assertTrue(add.annotations.idempotent_hint)
            self.assertEqual([await session.value("low_level_add_note", text=text) for text in ("a", "ab")], ["1 None", "2 None"])
            self.assertIn("2 notes", session.said())
            self.assertEqual((await session.call("low_level_find", words=[])).code, "INVALID_PARAMS")
            self.assertEqual(await session.value("low_level_find", words=["a"]), ["a", "ab"])
            self.assertIn("nothing to remove with remove-note", (await session.call("low_level_remove_note")).text)

    async def test_claude(self):
        await self.served("claude_tools", "claude-agent-sdk==0.2.189", names=("add", "find", "divide"), add=({"a": 1, "b": 2.5}, "3.5"),
                          find=({"query": "x", "limit": 2}, ["x", "2"]), divide=({"by": 4}, "3"))
        async with self.connected() as session:
            listed = await session.tools()
            self.assertEqual(listed["claude_tools_add"].input_schema["required"], ["a", "b"])
            self.assertEqual(listed["claude_tools_find"].input_schema["properties"]["query"], {"type": "string", "description": "What to look for."})
            self.assertIn("by zero", (await session.call("claude_tools_divide", by=0)).text)
            self.assertEqual((await session.call("claude_tools_divide", by=-1)).code, "INVALID_PARAMS")

    async def test_semantic_kernel(self):
        await self.served("kernel_plugin", "semantic-kernel==1.36.0", names=("get_state", "change"),
                          get_state=({"name": "porch"}, False), change=({"name": "porch"}, "porch True"))

    async def test_langchain(self):
        for needs in ("langchain-core==0.3.86", "langchain-core==1.8.3"):
            with self.subTest(needs):
                await self.served(
                    "langchain_tools", needs, names=("multiply", "search_tool", "largest", "whose", "greet", "measured", "keep", "Adder", "weather", "browse", "shout"),
                    multiply=({"a": 3, "b": 4}, 12), search_tool=({"query": "x"}, ["x 0", "x 1", "x 2"]),
                    whose=({"item": "tea"}, "tea is ada's, 32, ada"), greet=({"name": "Bo"}, "Hello, Bo!"),
                    measured=({"text": "four"}, "4 characters"), keep=({"text": "a"}, "kept a"), Adder=({"a": 1, "b": 2}, 3), weather=({"query": "Oslo", "limit": 2}, "Oslo: sun sun"))
                async with self.connected() as session:
                    answer = await session.call("langchain_tools_keep", text="nothing")
                    self.assertEqual((answer.failed, "kept nothing" in answer.text), (True, True), answer.text)
                    self.assertEqual(await session.value("langchain_tools_largest", sides=6), 6)
                    self.assertEqual(await session.value("langchain_tools_browse", url="x"), "page x")
                    self.assertEqual(await session.value("langchain_tools_shout", text="a"), "A!")
                    self.assertEqual((await session.call("langchain_tools_largest", sides=1)).code, "INVALID_PARAMS")

    async def test_openai_agents(self):
        for needs in ("openai-agents==0.7.0", "openai-agents==0.24.0"):
            with self.subTest(needs):
                await self.served(
                    "agents_tools", needs, names=("weather", "fetch_data", "fails"),
                    weather=({"place": {"lat": 1.5, "long": 2}}, "sunny at 1.5"), fetch_data=({"path": "a"}, "ada:/a"))
                async with self.connected() as session:
                    fault = await session.call("agents_tools_fails", word="zebra")
                    self.assertIn("ValueError: zebra", fault.text, "the tool's own fault, not what the framework makes of it")

    async def test_smolagents(self):
        await self.served(
            "smolagents_tools", "smolagents==1.26.0", names=("most_liked", "model_downloads"),
            most_liked=({"task": "speech"}, "1 for speech"), model_downloads=({"model": "m", "days": 3}, "m 3 True"))

    async def test_agno(self):
        for needs in ("agno==2.9.0", "agno==3.1.10"):
            with self.subTest(needs):
                await self.served(
                    "agno_tools", needs, names=("top_stories", "remember", "count", "divide", "round_up", "who"), count=({}, 1), round_up=({"a": 1.2}, 2),
                    who=({"greeting": "hi"}, "hi None True"),
                    top_stories=({}, [0, 1]), remember=({"item": "a"}, ["a"]), divide=({"a": 2, "b": 3}, 0.67))
                async with self.connected() as session:
                    self.assertEqual([await session.value("agno_tools_count") for _ in range(2)], [1, 2], "the session keeps it")

    async def test_adk(self):
        await self.served("adk_agent", "google-adk==2.13.0", names=("roll", "spend", "whose", "ask"), ask=({"amount": 2}, "asked for 2"), roll=({"sides": 6}, [6]),
                          whose=({"account": 7}, "7 is ada's, 1"))
        async with self.connected() as session:
            self.assertEqual((await session.tools())["adk_agent_roll"].input_schema["required"], ["sides"])
            missing = await session.call("adk_agent_spend", amount=1)
            self.assertEqual((missing.code, "state" in missing.text), ("TOOL_ERROR", True), missing.text)

    async def test_a_module_of_strands_describes_its_tool(self):
        await self.served("strands_spec", "strands-agents==1.62.0", names=("convert",), convert=({"metres": 2, "to": "feet"}, "6.56 feet"))
        async with self.connected() as session:
            self.assertIn("not negative", (await session.call("strands_spec_convert", metres=-1)).text)
            self.assertEqual((await session.call("strands_spec_convert", to="feet")).code, "INVALID_PARAMS")

    async def test_strands(self):
        await self.served(
            "strands_tools", "strands-agents==1.62.0", names=("letters", "whoami", "keep", "pages", "query", "drop", "alone", "paint", "stamp"), alone=({"word": "a"}, "a True"), keep=({"text": "a"}, "kept a"),
            letters=({"word": "strawberry", "letter": "r"}, 3), whoami=({"greeting": "hi"}, "hi True"),
            query=({"sql": "select"}, {"dsn": "memory", "sql": "select"}))
        async with self.connected() as session:
            for answer in (await session.call("strands_tools_keep", text="nothing"), await session.call("strands_tools_drop", text="a")):
                self.assertEqual((answer.failed, "there is nothing" in answer.text), (True, True), answer.text)
            self.assertEqual(await session.value("strands_tools_pages"), {"content": [{"text": "x"}], "next_page": "abc"})
            self.assertEqual(await session.value("strands_tools_paint", colour="red"), "red paint")
            self.assertEqual(await session.value("strands_tools_stamp", text="a"), "x a")
            self.assertEqual((await session.call("strands_tools_paint", colour="x")).code, "INVALID_PARAMS")

    async def test_autogen(self):
        await self.served("autogen_tools", "autogen-core==0.7.5", names=("stock_price",), stock_price=({"ticker": "ABC"}, 3.0))

    async def test_llamaindex(self):
        await self.served("llamaindex_tools", "llama-index-core==0.14.25", names=("times", "add", "read"),
                          times=({"a": 2, "b": 4}, 8), add=({"text": "a"}, 1), read=({}, ["a"]))

    async def test_pydantic_ai(self):
        await self.served("pydantic_ai_tools", "pydantic-ai-slim==2.68.0", names=("roll", "player", "said", "coin", "flip", "turn"),
                          said=({}, 7), coin=({}, "tails"), flip=({}, "heads"), turn=({"side": "a"}, "a"), roll=({"sides": 1}, 1), player=({"greeting": "hi"}, "hi ada"))

    async def test_click(self):
        await self.served(
            "click_tools", "click==8.5.1", names=("greet", "word_count", "leaves", "reset", "forms", "store_keep"),
            greet=({"name": "Ada", "count": 2, "shout": True, "tags": ["x", "--y"]}, "ADA x --y\nADA x --y"),
            word_count=({"words": ["a", "-b"], "limit": 3, "form": "loud", "unit": "--"}, "2 --!"),
            store_keep=({"path": "-p", "unit": "kg", "limit": 4}, "-p all kg 4 1"),
            reset=({"password": "naïve", "yes": True}, "naïve"))
        async with self.connected() as session:
            listed = await session.tools()
            self.assertEqual(listed["click_tools_greet"].input_schema["required"], ["name"])
            self.assertEqual(listed["click_tools_greet"].input_schema["properties"]["count"],
                             {"type": "integer", "minimum": 1, "maximum": 5, "description": "How often.", "default": 1})
            self.assertIn("more than 1 words", (await session.call("click_tools_word_count", words=["a", "b"], limit=1)).text)
            self.assertIn("exit status 3: leaving", (await session.call("click_tools_leaves")).text)
            self.assertIn("form", (await session.call("click_tools_word_count", words=[], limit=1, from_="x")).text)
            usual = dict(out="-", pair=(0, 0), case="lower", color=True, point=(), name="nobody", first=None, second=None)
            for given in ({}, {"out": "x", "pair": [1, 2], "color": False, "point": [["a", 1]], "second": "b"}, {"case": "upper", "first": "--out"},
                          {"point": [], "name": "--"}):
                expected = {**usual, **given}
                expected.update(pair=tuple(expected["pair"]), point=tuple(map(tuple, expected["point"])))
                self.assertEqual(await session.value("click_tools_forms", **given), f"{sorted(expected.items())}\nlater", given)
            for wrong in ({"pair": [1]}, {"pair": [1, 2, 3]}, {"case": "title"}, {"output": "x"}):
                self.assertEqual((await session.call("click_tools_forms", **wrong)).code, "INVALID_PARAMS", wrong)
            self.assertEqual(set(listed["click_tools_reset"].input_schema["required"]), {"password", "yes"})
            keep = listed["click_tools_store_keep"].input_schema
            self.assertEqual((list(keep["properties"]), keep["required"]), (["key", "path", "unit", "limit"], ["path"]))
            self.assertEqual(await session.value("click_tools_store_keep", path="p"), "p all words 1 1", "each call has an object of its own")
            self.assertEqual((await session.call("click_tools_store_keep")).code, "INVALID_PARAMS")
            await self.described_by_click(session)

    async def described_by_click(self, session):
        """What a decorator that hostler cannot read adds to a command is in its schema after the first call."""
        async with asyncio.timeout(60):
            while "form" not in (schema := (await session.tools())["click_tools_word_count"].input_schema)["properties"]:
                await asyncio.sleep(0.02)
        self.assertEqual(schema["properties"]["form"], {"type": "string", "enum": ["plain", "loud"], "default": "plain"})
        self.assertEqual((schema["required"], schema["additionalProperties"]), (["limit"], False))
        self.assertEqual(schema["properties"]["unit"], {"type": "string", "default": "words", "description": "What is counted."})
        self.assertEqual(schema["properties"]["words"], {"type": "array", "items": {"type": "string"}})
        self.assertEqual((await session.call("click_tools_word_count", words=[], limit=1, form="high")).code, "INVALID_PARAMS")

    async def test_typer(self):
        await self.served(
            "typer_tools", "typer==0.29.2", names=("order", "cancel_order", "users_add"),
            order=({"item": "tea", "amount": 3, "size": "large", "gift": True, "note": "now"}, "3 large tea as a gift: now"),
            cancel_order=({"number": 7}, "cancelled 7"),
            users_add=({"name": "Ada", "admin": True, "shop": "the market"}, "add Ada of the market, who may do all"))
        async with self.connected() as session:
            self.assertEqual(await session.value("typer_tools_order", item="tea"), "2 small tea")
            self.assertEqual(await session.value("typer_tools_users_add", name="Ada"), "add Ada of corner shop")
            add = (await session.tools())["typer_tools_users_add"].input_schema
            self.assertEqual((list(add["properties"]), add["required"]), (["name", "admin", "shop"], ["name"]))
            self.assertIn("exit status 2", (await session.call("typer_tools_cancel_order", number=-1)).text)

    async def test_typer_run(self):
        await self.served("typer_run", "typer==0.29.2", names=("main",), main=({"name": "Ada", "polite": False, "times": 2}, "Hello Ada\nHello Ada"))

    async def test_open_webui(self):
        """Its needs stand in its own frontmatter, and its settings are its valves."""
        await self.served("webui_tools", names=("temperature", "forecast", "report", "refuse", "page"),
                          report=({"city": "Oslo"}, "Oslo: sun"), page=({"city": "Oslo"}, ["<b>Oslo</b>", "shown"]),
                          temperature=({"city": "Oslo"}, "20 F in Oslo"), forecast=({"city": "Oslo"}, "Oslo for user: sun"))
        async with self.connected() as session:
            self.assertIn("no such city", (await session.call("webui_tools_refuse")).text)


if __name__ == "__main__":
    unittest.main()
