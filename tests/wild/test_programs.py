"""Programs of click and typer in several files, served unchanged: the commands that a file has of others are its tools."""

import shutil
import unittest
from pathlib import Path

from harness import connected, scratch

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
