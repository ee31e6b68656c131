"""The express lane: calls of open sessions that rmcp never sees, and everything beside them that it must."""

import json
import unittest

from harness import TOOLS, scratch, write_tool
from wire import Wire, call, request

BIG = 2**80 + 1


class Lane(unittest.TestCase):
    def open(self, folder=TOOLS):
        wire = Wire(folder)
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def result(self, wire, message, number):
        wire.send(message)
        return wire.answer(number)["result"]

    def test_integers_of_any_length_are_exact(self):
        folder = scratch(self)
        body = f"def number() -> int:\n    return {BIG}\n\ndef inside() -> dict:\n    return {{'n': [{BIG}]}}\n"
        write_tool(folder, "big", body)
        wire = self.open(folder)
        number = self.result(wire, call(1, "big_number"), 1)
        self.assertEqual((number["structuredContent"], number["content"][0]["text"]), ({"result": BIG}, str(BIG)))
        self.assertEqual(self.result(wire, call(2, "big_inside"), 2)["structuredContent"], {"n": [BIG]})

    def test_ids_of_both_kinds_and_any_order_of_keys(self):
        wire = self.open()
        params = {"name": "plain_greet", "arguments": {}}
        for message in (
            {"method": "tools/call", "params": params, "jsonrpc": "2.0", "id": "text"},
            {"id": 12, "params": params, "jsonrpc": "2.0", "method": "tools/call"},
            {"jsonrpc": "2.0", "id": 13, "method": "tools/call", "params": {**params, "_meta": {"progressToken": "p"}}},
        ):
            result = self.result(wire, json.dumps(message).encode() + b"\r\n", message["id"])
            self.assertEqual(result["structuredContent"], {"result": "good morning, you"})

    def test_what_looks_different_is_answered_all_the_same(self):
        wire = self.open()
        wire.send(request(1, "tools/call", name=7))
        self.assertEqual(wire.answer(1)["error"]["code"], -32602)
        wire.send(request(2, "tools/call", name="plain_greet", something="new"))
        self.assertFalse(wire.answer(2)["result"]["isError"])
        wire.send(request(3, "tools/list"))
        self.assertIn("plain_greet", [tool["name"] for tool in wire.answer(3)["result"]["tools"]])

    def test_arguments_longer_than_the_lane_holds_back(self):
        wire = self.open()
        self.assertEqual(wire.value(1, "plain_greet", name="x" * 3_000_000), "good morning, " + "x" * 3_000_000)
        self.assertEqual(wire.value(2, "plain_greet"), "good morning, you")


if __name__ == "__main__":
    unittest.main()
