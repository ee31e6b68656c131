"""What is kept of tool files between runs: a second start reads nothing, and serves nothing that is no longer so."""

import os
import time
import unittest

from harness import HEADER, PATIENCE, environment, scratch, write_tool
from wire import Wire, request

TICK = 3.2  # seconds after which a change is sure to show: younger files are not kept


def tool(word):
    return f'def greet(name: str) -> str:\n    """Say {word}."""\n    return name\n'


class Catalogue(unittest.TestCase):
    def setUp(self):
        self.cache, self.tools = scratch(self), scratch(self)

    def listed(self):
        """What a start of its own lists."""
        with Wire(self.tools, env=environment(XDG_CACHE_HOME=self.cache)) as wire:
            wire.open()
            wire.send(request(1, "tools/list"))
            tools = wire.answer(1)["result"]["tools"]
            wire.end_input()
            wire.ended(PATIENCE)
            return tools

    def kept(self):
        """The file in which the catalogue is kept, and which one it is: a clock may stand still for longer than a start takes."""
        found = [path for path in (self.cache / "hostler" / "catalogue").glob("?" * 24)]
        self.assertLessEqual(len(found), 1)
        return (found[0], found[0].stat().st_mtime_ns, found[0].stat().st_ino) if found else None

    def written(self, before=None):
        """When it was written anew. That happens beside the serving, and a run that is over at once leaves it to the next."""
        for _ in range(20):
            if (now := self.kept()) not in (None, before):
                return now
            self.listed()
        raise AssertionError("nothing is kept")

    def descriptions(self):
        return [tool["description"] for tool in self.listed()]

    def test_a_second_start_serves_the_same_and_sees_an_edit_made_between(self):
        for number in range(20):
            write_tool(self.tools, f"tool_{number}", tool(f"word {number:02}"))
        write_tool(self.tools, "broken", "def (\n")
        time.sleep(TICK)
        first = self.listed()
        self.assertEqual(len(first), 20)
        written = self.written()
        self.assertEqual(self.listed(), first)
        self.assertEqual(self.kept(), written, "nothing was read anew")

        edited = self.tools / "tool_0.py"
        stat = edited.stat()
        edited.write_text(HEADER + tool("word !!"))
        os.utime(edited, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.assertEqual(edited.stat().st_size, stat.st_size)
        (self.tools / "tool_1.py").unlink()
        (self.tools / "tool_2.py").rename(self.tools / "tool_x.py")
        listed = {tool["name"]: tool["description"] for tool in self.listed()}
        self.assertEqual(len(listed), 19)
        self.assertEqual((listed["tool_0_greet"], listed["tool_x_greet"]), ("Say word !!.", "Say word 02."))
        self.assertFalse({"tool_1_greet", "tool_2_greet"} & set(listed))

    def test_what_is_damaged_is_replaced(self):
        write_tool(self.tools, "tool", tool("one"))
        time.sleep(TICK)
        self.assertEqual(self.descriptions(), ["Say one."])
        path, *_ = self.written()
        whole = path.read_bytes()
        for damage in (b"", whole[: len(whole) // 2], whole.replace(b"Say one", b"Say two"), b"\xff\0" * 5000):
            path.write_bytes(damage)
            before = self.kept()
            self.assertEqual(self.descriptions(), ["Say one."])
            self.written(before)
            self.assertEqual(path.read_bytes(), whole)

    def test_edits_in_quick_succession_are_all_seen(self):
        path = self.tools / "tool.py"
        for number in range(5):
            path.write_text(HEADER + tool(f"word {number}"))
            self.assertEqual(self.descriptions(), [f"Say word {number}."])

    def test_a_cache_that_cannot_be_written_is_done_without(self):
        write_tool(self.tools, "tool", tool("one"))
        time.sleep(TICK)
        (self.cache / "hostler").write_text("no folder")
        self.assertEqual(self.descriptions(), ["Say one."])
        self.assertEqual(self.descriptions(), ["Say one."])


if __name__ == "__main__":
    unittest.main()
