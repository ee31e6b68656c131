"""Results that are too large for one message: no client's session ends, and nothing is lost where the file says so."""

import json
import time
import unittest

from harness import META, config_file, connected, scratch, write_tool
from wire import INLINE, Wire, request

BODY = '''
import hostler

def text(size: int):
    return "x" * size

def quoted(size: int):
    return {"rows": ['"' * 100] * (size // 102)}

def promised(size: int) -> dict[str, str]:
    return {"text": "x" * size}

def told(size: int) -> str:
    return "x" * size

def mixed(size: int):
    return ["before", hostler.File(b"\\x00" * size, "application/pdf", "a.pdf"), "after", hostler.Image(b"\\x89PNG\\r\\n\\x1a\\n")]

def prints(size: int):
    print("y" * size)
    return "short"

def fails(size: int):
    raise ValueError("z" * size)
'''
LINKS = '# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# [tool.hostler]\n# large = "link"\n# ///\n'
BUFFER = 10 << 20  # what TypeScript clients read in one line


def sized(wire, number, name, /, **arguments):
    """The result of a call, and the length of its line."""
    wire.send(request(number, "tools/call", name=name, arguments=arguments))
    message = wire.answer(number)
    return message["result"], len(json.dumps(message, ensure_ascii=False, separators=(",", ":")))


class Large(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "big", BODY)
        write_tool(self.tools, "links", BODY, LINKS)
        # A lower limit than the default, because a debug build takes its time for large texts.
        self.small = config_file(self.folder, '[mcp]\nmax_result = "2MiB"\n')

    def test_a_text_that_fits_once_is_sent_once(self):
        with Wire(self.tools) as wire:
            wire.open()
            small, _ = sized(wire, 1, "big_text", size=1000)
            self.assertEqual((len(small["content"][0]["text"]), len(small["structuredContent"]["result"])), (1000, 1000))
            large, length = sized(wire, 2, "big_text", size=6_000_000)
            self.assertLess(length, BUFFER)
            self.assertEqual((len(large["content"][0]["text"]), "structuredContent" in large), (6_000_000, False))
            for number, tool in ((3, "big_promised"), (4, "big_told")):
                promised, length = sized(wire, number, tool, size=6_000_000)
                self.assertLess(length, BUFFER)
                value, = promised["structuredContent"].values()
                self.assertEqual(len(value), 6_000_000)
                self.assertLess(len(promised["content"][0]["text"]), 200, "the text says where the result is")

    def test_what_does_not_fit_is_a_fault_or_links(self):
        with Wire(self.tools) as wire:
            wire.open()
            failed, length = sized(wire, 1, "big_text", size=9_500_000)
            self.assertEqual(failed["_meta"][META]["error"]["code"], "INVALID_OUTPUT", "with the default limit")
        with Wire(self.tools, arguments=("--config", str(self.small))) as wire:
            wire.open()
            for number, tool in enumerate(("big_text", "big_promised", "big_mixed"), 1):
                failed, length = sized(wire, number, tool, size=2_100_000)
                error = failed["_meta"][META]["error"]
                self.assertEqual((failed["isError"], error["code"]), (True, "INVALID_OUTPUT"), tool)
                self.assertLess(length, 5000)
            escaped, length = sized(wire, 10, "big_quoted", size=1_000_000)  # each quote takes three characters more
            self.assertEqual(escaped["_meta"][META]["error"]["code"], "INVALID_OUTPUT")
            wire.send(request(11, "tools/list"))
            schemas = {tool["name"]: "outputSchema" in tool for tool in wire.answer(11)["result"]["tools"]}
            self.assertEqual((schemas["big_told"], schemas["links_told"]), (True, False))
            self.assertFalse(list((self.folder).rglob(".hostler-result*")))

    def test_links_are_read_by_their_session_alone(self):
        arguments = ("--config", str(self.small))
        with Wire(self.tools, arguments=arguments) as wire, Wire(self.tools, arguments=arguments) as other:
            wire.open(), other.open()
            result, length = sized(wire, 1, "links_text", size=7_000_000)
            self.assertLess(length, 10_000)
            said, *links = result["content"]
            self.assertEqual((said["type"], {link["type"] for link in links}), ("text", {"resource_link"}))
            self.assertEqual((len(links), "structuredContent" in result, result["isError"]), (4, False, False))
            whole = 0
            for number, link in enumerate(links, 2):
                wire.send(request(number, "resources/read", uri=link["uri"]))
                message = wire.answer(number)
                self.assertLess(len(json.dumps(message)), 2 << 20)
                content, = message["result"]["contents"]
                self.assertEqual((content["uri"], content["mimeType"]), (link["uri"], "text/plain"))
                self.assertEqual(content["text"], "x" * link["size"])
                whole += link["size"]
            self.assertEqual(whole, 7_000_000)
            other.send(request(2, "resources/read", uri=links[0]["uri"]))
            error = other.answer(2)["error"]
            self.assertEqual((error["code"], error["data"]["uri"]), (-32002, links[0]["uri"]))
            other.send(request(3, "resources/read", uri=links[0]["uri"], _meta=INLINE))
            self.assertEqual(other.answer(3)["error"]["code"], -32602)

    def test_others_are_answered_while_a_result_is_stored(self):
        with Wire(self.tools) as wire:
            wire.open()
            self.assertEqual(wire.value(1, "big_text", size=3), "xxx")
            sized(wire, 2, "links_text", size=3)
            wire.send(request(3, "tools/call", name="links_text", arguments={"size": 40_000_000}))
            number, began, longest = 10, time.monotonic(), 0
            while not any(note.get("id") == 3 for note in wire.notes):
                number, before = number + 1, time.monotonic()
                wire.send(request(number, "ping"))
                wire.answer(number)
                longest = max(longest, time.monotonic() - before)
            whole = time.monotonic() - began
            links = next(note for note in wire.notes if note.get("id") == 3)["result"]["content"][1:]
            self.assertEqual(sum(link["size"] for link in links), 40_000_000)
            # Storing takes most of the time; on the main thread a ping waited for all of it.
            self.assertLess(longest, whole / 2)

    async def test_the_official_client_reads_links_in_both_eras(self):
        for mode in ("auto", "legacy"):
            async with connected(self.tools, mode=mode, config=self.small) as hostler:
                mixed = (await hostler.call("links_mixed", size=2_000_000)).result
                kinds = [block.type for block in mixed.content]
                self.assertEqual(kinds, ["text", "resource_link", "resource_link", "text", "image"])
                self.assertEqual((mixed.content[0].text, mixed.content[3].text), ("before", "after"))
                blobs = [(await hostler.client.read_resource(str(block.uri))).contents[0].blob for block in mixed.content[1:3]]
                self.assertEqual(sum(len(blob) * 3 // 4 - blob.count("=") for blob in blobs), 2_000_000)
                self.assertEqual(mixed.content[1].mime_type, "application/pdf")

    def test_a_list_that_is_too_long_for_a_client_comes_in_pages(self):
        many = "".join(f'def f{number:03}(x: str) -> str:\n    """{"x" * 500}"""\n    return x\n' for number in range(300))
        folder = scratch(self)
        write_tool(folder / "tools", "many", many)
        config = config_file(folder, '[mcp]\nmax_result = "64KB"\n')
        wire = Wire(folder / "tools", arguments=("--config", str(config)))
        self.addCleanup(wire.__exit__)
        wire.open()
        names, params, number = [], {}, 0
        while True:
            number += 1
            wire.send(request(number, "tools/list", **params))
            answer = wire.answer(number)
            self.assertLessEqual(len(json.dumps(answer, separators=(",", ":"))), 64_000)
            names += [tool["name"] for tool in answer["result"]["tools"]]
            if "nextCursor" not in answer["result"]:
                break
            params = {"cursor": answer["result"]["nextCursor"]}
        self.assertGreater(number, 2)
        self.assertEqual(names, [f"many_f{number:03}" for number in range(300)])

    def test_the_limit_is_the_operators(self):
        config = config_file(self.folder, '[mcp]\nmax_result = "70KB"\n[limits]\nmax_output = "10MB"\n[tool.big]\nlarge = "link"\n')
        with Wire(self.tools, arguments=("--config", str(config))) as wire:
            wire.open()
            result, _ = sized(wire, 1, "big_text", size=100_000)
            self.assertEqual([block["type"] for block in result["content"]], ["text", "resource_link", "resource_link"])
            printed, length = sized(wire, 2, "big_prints", size=1_000_000)
            self.assertEqual(printed["content"][0]["text"], "short", "the output is cut before the result is")
            self.assertLess(length, 70_000)
            failed, length = sized(wire, 3, "big_fails", size=1_000_000)
            self.assertEqual((failed["isError"], failed["_meta"][META]["error"]["code"]), (True, "TOOL_ERROR"))
            self.assertLess(length, 70_000)


if __name__ == "__main__":
    unittest.main()
