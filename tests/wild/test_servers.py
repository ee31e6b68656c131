"""Servers of several files, served unchanged: tools that a neighbour defines are those of the file that imports it."""

import json
import shutil
import unittest
from pathlib import Path

from harness import connected, environment, run, scratch

FILES = Path(__file__).parent / "files"


class Several(unittest.IsolatedAsyncioTestCase):
    maxDiff = None

    def given(self, name, needs):
        """A folder of a project, whose top says what it needs."""
        project = scratch(self) / "project"
        folder = project / "src" / "tools"
        shutil.copytree(FILES / name, folder)
        (project / "requirements.txt").write_text(needs + "\n")
        return folder

    def checked(self, folder):
        done = run("check", "--tools", folder, "--json", env=environment(), cwd=folder)
        return [(Path(one["file"]).name, one["rule"]) for one in json.loads(done.stdout)]

    async def test_helpers_are_given_the_server(self):
        for needs in ("mcp==1.30.0", "mcp==2.3.0", "fastmcp==2.14.7", "fastmcp==4.2.3"):
            with self.subTest(needs):
                folder = self.given("shop", needs)
                async with connected(folder) as session:
                    listed = await session.tools()
                    self.assertEqual(set(listed), {"shop_opening", "shop_price_of", "shop_place", "shop_placed"})
                    self.assertEqual(listed["shop_price_of"].description, "What it costs.")
                    self.assertEqual(set(listed["shop_price_of"].input_schema["properties"]), {"item", "many"})
                    self.assertEqual(await session.value("shop_placed"), [], "its file is not imported before")
                    self.assertEqual(await session.value("shop_opening"), "always")
                    self.assertEqual(await session.value("shop_price_of", item="tea", many=2), 3.0)
                    self.assertEqual(await session.value("shop_place", order={"item": "tea", "many": 2}), 2)
                    self.assertEqual(await session.value("shop_placed"), ["tea"], "they share what their files share")
                    wrong = await session.call("shop_place", order={"many": 2})
                    self.assertEqual(wrong.code, "INVALID_PARAMS", wrong.text)
                    known = (await session.tools())["shop_place"].input_schema["$defs"]["Order"]
                    self.assertEqual((known["required"], known["properties"]["item"]["description"]), (["item"], "What."))
                self.assertEqual(self.checked(folder), [("shop.py", "name")], "one name is taken")

    async def test_tools_of_mounted_servers_have_the_names_of_fastmcp(self):
        for needs in ("fastmcp==2.14.7", "fastmcp==3.4.11", "fastmcp==4.2.3"):
            with self.subTest(needs):
                folder = self.given("mounted", "")
                # With a header, its helpers are its own.
                main = folder / "main.py"
                main.write_text(f'# /// script\n# dependencies = ["{needs}"]\n# ///\n' + main.read_text())
                async with connected(folder) as session:
                    listed = await session.tools()
                    theirs = await session.value("main_names")
                    self.assertEqual({f"main_{name}" for name in theirs}, set(listed))
                    self.assertEqual(len(theirs), 5, theirs)
                    self.assertEqual(listed["main_weather_find"].description, "Finds weather.")
                    self.assertEqual(await session.value("main_here_find", text="tea"), "local tea")
                    self.assertEqual(await session.value("main_weather_find", text="tea"), "weather of tea")
                    self.assertEqual(await session.value("main_my_shop_find", text="tea"), "goods like tea")
                    self.assertEqual(await session.value("main_polite_greet", name="you"), "hello you")
                self.assertEqual(self.checked(folder), [])

    async def test_what_neighbours_define_is_known_before_the_first_call(self):
        folder = self.given("parcels", "mcp==1.30.0")
        async with connected(folder) as session:
            send, weigh = [(await session.tools())[name].input_schema for name in ("server_send", "server_weigh")]
            self.assertEqual((send["required"], weigh["required"]), (["parcel", "to"], ["parcel"]))
            self.assertEqual(send["properties"]["to"], {"type": "string", "minLength": 3, "description": "The address."})
            self.assertEqual(send["$defs"]["Speed"]["enum"], ["slow", "fast"])
            self.assertEqual(send["properties"]["speed"]["default"], "slow")
            counted = {"type": "integer", "minimum": 1, "maximum": 100, "default": 2, "description": "How many."}
            self.assertEqual(weigh["properties"]["rounds"], counted)
            self.assertEqual(weigh["properties"]["unit"]["default"], "kg")
            wrong = await session.call("server_send", parcel={"weight": 1})
            self.assertEqual((wrong.code, "to" in wrong.text), ("INVALID_PARAMS", True), wrong.text)
            sent = await session.value("server_send", parcel={"weight": 1}, to="here")
            self.assertEqual(sent["label"], "here slow 10")
            self.assertEqual(await session.value("server_weigh", parcel={"weight": 1.5}), 3.0)
            # A type of a package that a neighbour mentions.
            self.assertNotIn("Icon", send["$defs"])
            after = [(await session.tools())[name].input_schema for name in ("server_send", "server_weigh")]
            self.assertIn("src", after[0]["$defs"]["Icon"]["properties"])
            self.assertEqual((after[0]["required"], after[0]["properties"]), (send["required"], send["properties"]))
            self.assertEqual(after[1]["properties"], weigh["properties"])

    def test_a_program_reads_the_command_line_that_the_operator_sets(self):
        folder = scratch(self) / "tools"
        shutil.copytree(FILES / "lines", folder)
        config = folder.parent / "hostler.toml"
        for tool in ("by_click.where", "by_argparse.where", "by_typer.where"):
            config.write_text("")
            call = lambda: json.loads(run("call", tool, "--json", "--tools", folder, "--config", config, env=environment(), cwd=folder).stdout)
            fault = call()["error"]
            self.assertEqual((fault["code"], "`args = [" in fault["message"]), ("TOOL_ERROR", True), fault)
            config.write_text('[tool.by_click]\nargs = ["--root", "/data", "more"]\n'
                              '[tool.by_argparse]\nargs = ["--root", "/data"]\n[tool.by_typer]\nargs = ["--root", "/data"]\n')
            self.assertEqual(call().get("result"), "/data")

    def test_what_is_not_served_is_listed(self):
        folder = scratch(self) / "tools"
        shutil.copytree(FILES / "marked", folder)
        makes = "from mcp.server.fastmcp import FastMCP\nfrom parts import register\nmcp = FastMCP('x')\n"
        (folder / "lost.py").write_text(makes)
        (folder / "parts.py").write_text("def register(mcp, client):\n    @mcp.tool()\n    def f(): ...\n\ndef more(mcp, client):\n    @mcp.tool()\n    def g(): ...\n")
        listed = json.loads(run("list", "--tools", folder, "--json", env=environment()).stdout)
        self.assertEqual([one["name"] for one in listed], ["clock.hour", "lost", "main.keep"])
        self.assertEqual(listed[1]["status"], "not served")
        self.assertIn("parts.py, line 1: the tools that `register` makes", listed[1]["reason"])
        shown = json.loads(run("show", "main.keep", "--tools", folder, "--json", env=environment()).stdout)
        self.assertEqual((Path(shown["origin"]).name, shown["line"]), ("notes.py", 7))

    async def test_functions_are_called_with_what_they_need(self):
        for needs in ("mcp==1.30.0", "fastmcp==2.14.7"):
            with self.subTest(needs):
                folder = self.given("given", needs)
                if needs.startswith("fastmcp"):
                    for path in folder.rglob("*.py"):
                        path.write_text(path.read_text().replace("mcp.server.fastmcp", "fastmcp"))
                async with connected(folder) as session:
                    listed = await session.tools()
                    names = {"given_find_name", "given_add", "top_page", "late_server_find_name", "imported_look", "imported_look_again"}
                    self.assertEqual(set(listed), names)
                    self.assertEqual(set(listed["given_find_name"].input_schema["properties"]), {"name"})
                    self.assertEqual(await session.value("given_find_name", name="Ann"), "of build: Ann")
                    self.assertEqual(await session.value("given_add", a=2), "of build: Ann, 3", "it is called once, for all of them")
                    self.assertEqual(await session.value("top_page", number=7), "of the top: 7")
                    self.assertEqual(await session.value("late_server_find_name", name="Bo"), "late: Bo", "its server is not run")
                    self.assertEqual((listed["imported_look"].description, set(listed["imported_look"].input_schema["properties"])), ("Look for it.", {"what"}))
                    self.assertEqual(await session.value("imported_look", what="tea"), 1)
                    self.assertEqual(await session.value("imported_look_again", times=2), ["tea", "tea"])
                self.assertEqual(self.checked(folder), [("late_server.py", "inner-tools")], "it does not call all of them")

    async def test_what_the_program_makes_is_served(self):
        folder = self.given("started", "mcp==1.30.0")
        (folder / "hostler.toml").write_text('[tool.shelf]\nargs = ["--root", "/other"]\n')
        async with connected(folder, config=folder / "hostler.toml") as session:
            listed = await session.tools()
            self.assertEqual(set(listed), {"shelf_count_books", "shelf_look", "shelf_place"})
            self.assertEqual((listed["shelf_count_books"].description, listed["shelf_look"].title), ("Counts the books.", "Look"))
            self.assertEqual(set(listed["shelf_place"].input_schema["properties"]), {"name"})
            self.assertEqual(await session.value("shelf_count_books"), 2)
            self.assertIs(await session.value("shelf_look", name="emma"), True)
            self.assertEqual(await session.value("shelf_place", name="emma"), "/other/emma")
        self.assertEqual(self.checked(folder), [])
        async with connected(folder / "store") as session:
            self.assertEqual(set(await session.tools()), {"store_stock"})
            self.assertEqual(await session.value("store_stock", item="tea"), "store: tea")

    async def test_a_call_says_what_was_not_made(self):
        folder = self.given("given", "mcp==1.30.0")
        tools = folder / "tools" / "__init__.py"
        tools.write_text(tools.read_text().replace("    Numbers(client)", "    if client is None:\n        Numbers(client)"))
        client = folder / "client.py"
        client.write_text(client.read_text().replace("self.name, self.asked", "if name in OFF:\n            raise OSError(name)\n        self.name, self.asked") + "\nOFF = []\n")
        async with connected(folder) as session:
            failed = await session.call("given_add", a=2)
            self.assertEqual(failed.code, "TOOL_ERROR", failed.text)
            self.assertIn("`build` did not call `Numbers.add_to`", failed.text)
            self.assertEqual(await session.value("given_find_name", name="Ann"), "of build: Ann")
            client.write_text(client.read_text().replace("OFF = []", "OFF = ['of build']"))
            failed = await session.call("given_find_name", name="Ann")
            self.assertIn("OSError: of build", failed.text)
            client.write_text(client.read_text().replace("OFF = ['of build']", "OFF = []"))
            self.assertEqual(await session.value("given_find_name", name="Ann"), "of build: Ann")

    async def test_helpers_use_the_server_of_a_neighbour(self):
        folder = self.given("marked", "mcp==1.30.0")
        async with connected(folder) as session:
            self.assertEqual(set(await session.tools()), {"main_keep", "clock_hour"})
            self.assertEqual(await session.value("main_keep", text="a"), 1)
            self.assertEqual(await session.value("clock_hour", text="12:30"), 12)
            notes = folder / "tools" / "notes.py"
            notes.write_text(notes.read_text().replace("return len(_notes)", "return -len(_notes)"))
            self.assertEqual(await session.value("main_keep", text="a"), -1, "an edit of a helper counts")
        self.assertEqual(self.checked(folder), [])
