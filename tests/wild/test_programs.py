"""Programs of click and typer in several files, served unchanged: the commands that a file has of others are its tools."""

import json
import shutil
import unittest
from pathlib import Path

from harness import config_file, connected, environment, run, scratch

FILES = Path(__file__).parent / "files" / "program"


class Programs(unittest.IsolatedAsyncioTestCase):
    async def test_commands_of_other_files(self):
        folder = scratch(self) / "tools"
        shutil.copytree(FILES, folder)
        (folder / "requirements.txt").write_text("click==8.5.1\ntyper==0.29.2\n")
        async with connected(folder) as session:
            listed = await session.tools()
            self.assertEqual(set(listed), {"shop_stock_list", "shop_order", "tasks_count", "tasks_users_add", "tasks_set_up"})
            self.assertEqual(listed["shop_stock_list"].description, "List what there is.")
            self.assertEqual(listed["shop_stock_list"].input_schema["required"], ["kind"])
            self.assertEqual(listed["tasks_set_up"].input_schema["properties"]["key"]["description"], "A key.")
            self.assertEqual(await session.value("shop_stock_list", kind="tea", many=2), "stock of nobody\ntea tea")
            self.assertEqual(await session.value("shop_order", item="tea"), "nobody wants tea")
            self.assertEqual(await session.value("tasks_users_add", name="Ann", age=4), "Ann 4")
            self.assertEqual(await session.value("tasks_set_up"), "key none")
            self.assertEqual(await session.value("tasks_set_up", key="a"), "key a")
            self.assertEqual(await session.value("tasks_count"), "4", "the callback above them runs before each")
            wrong = await session.call("tasks_users_add", name="Ann", age=-1)
            self.assertIn(wrong.code, ("INVALID_PARAMS", "TOOL_ERROR"), wrong.text)


class Bases(unittest.IsolatedAsyncioTestCase):
    async def test_a_tool_may_have_its_base_in_another_file(self):
        folder = scratch(self) / "tools"
        shutil.copytree(FILES.parent / "lookup", folder)
        (folder / "requirements.txt").write_text("langchain-core==1.8.3\n")
        async with connected(folder) as session:
            listed = await session.tools()
            self.assertEqual(set(listed), {"look_up_look_up_word"})
            self.assertEqual(listed["look_up_look_up_word"].description, "Looks a word up.")
            self.assertEqual(await session.value("look_up_look_up_word", word="tea"), "a drink")


class Servers(unittest.IsolatedAsyncioTestCase):
    """Servers that a function runs in the end: it waits there, with what it has opened."""

    async def served(self, settings=""):
        folder = scratch(self)
        shutil.copytree(FILES.parent / "low", folder / "tools")
        (folder / "tools" / "requirements.txt").write_text("mcp==1.30.0\nclick==8.5.1\n")
        async with connected(folder / "tools", config=config_file(folder, settings)) as session:
            listed = await session.tools()
            self.assertEqual(set(listed), {"serve_look_up", "serve_state", "shop_sell", "shop_count", "program_repeat", "program_plain"})
            self.assertEqual(listed["serve_look_up"].description, "Looks a key up.")
            self.assertEqual(listed["shop_sell"].input_schema["required"], ["item"])
            for _ in range(2):
                self.assertEqual(await session.value("serve_state"), "None True True", "open, and on the loop that opened it")
            self.assertEqual(await session.value("serve_look_up", key="a"), "at a")
            self.assertEqual((await session.call("serve_look_up")).code, "INVALID_PARAMS")
            self.assertEqual([await session.value("shop_sell", item=item) for item in "ab"], ["a", "a, b"])
            self.assertEqual(await session.value("shop_count"), "a, b, count")
            self.assertEqual(await session.value("program_repeat", count=2), "tea tea tea tea")
            self.assertEqual(await session.value("program_plain"), "tea", "what follows the server has not run")
        done = run("check", "--tools", folder / "tools", "--json", env=environment(), cwd=folder)
        self.assertEqual(json.loads(done.stdout), [], done.stdout)

    async def test_one_after_the_other(self):
        await self.served()

    async def test_several_at_once(self):
        await self.served("".join(f"[tool.{name}]\nconcurrency = 4\n" for name in ("serve", "shop", "program")))
