"""Sessions of both eras on the wire: what a request must carry, what any answer holds."""

import json
import os
import unittest

from harness import META, TOOLS, connected, environment, scratch, write_tool
from wire import INLINE, Wire, call, line, request

BIG = 2**80 + 1


def inline(number, name, /, meta=None, **arguments):
    """A call of a session without a handshake."""
    params = {"name": name, "arguments": arguments, "_meta": INLINE if meta is None else meta}
    return request(number, "tools/call", **params)


def cancelled(number):
    return line(method="notifications/cancelled", params={"requestId": number})


def keyed(number, name, /, **arguments):
    return request(number, "tools/call", name=name, arguments=arguments, _meta={"hostler/key": "k"})


class WithHandshake(unittest.TestCase):
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

    def test_what_is_not_offered_is_an_unknown_method(self):
        wire = self.open()
        for number, method in enumerate(("roots/list", "tasks/list", "no/such")):
            wire.send(request(number, method))
            self.assertEqual(wire.answer(number)["error"]["code"], -32601, method)

    def test_an_id_used_again_after_a_cancellation_gets_its_own_answer(self):
        wire = self.open()
        for number in range(1, 6):
            wire.began(number, "slow_nap", seconds=60)
            wire.send(cancelled(number) + call(number, "slow_echo", number=100 + number))
            answer = wire.answer(number)["result"]
            self.assertEqual((answer["isError"], answer["structuredContent"].get("number")), (False, 100 + number))

    def test_a_cancelled_listener_of_a_joined_call_hears_no_more_of_it(self):
        folder = scratch(self)
        write_tool(folder, "steps", "import hostler, time\ndef walk() -> str:\n    for step in range(400):\n"
                                    "        hostler.progress(step)\n        time.sleep(0.005)\n    return 'there'\n")
        wire = self.open(folder)
        for number in (1, 2):
            wire.send(request(number, "tools/call", name="steps_walk", arguments={}, _meta={"hostler/key": "k", "progressToken": number}))
        seen = set()
        while seen != {1, 2}:
            seen.add(wire.until("notifications/progress")["params"]["progressToken"])
        wire.send(cancelled(1))
        self.assertEqual(wire.answer(2)["result"]["structuredContent"]["result"], "there")
        tokens = [note["params"]["progressToken"] for note in wire.notes if note["method"] == "notifications/progress"]
        self.assertNotIn(1, tokens[-100:])
        self.assertIn(2, tokens[-100:])

    def test_null_stands_for_metadata_that_is_left_out_and_batches_are_refused(self):
        wire = self.open()
        wire.send(request(1, "tools/call", name="plain_greet", arguments=None, _meta=None))
        self.assertFalse(wire.answer(1)["result"]["isError"])
        wire.send(b'[{"jsonrpc": "2.0", "id": 2, "method": "ping"}]\n')
        self.assertEqual(wire.answer(None)["error"]["code"], -32600)

    def test_a_key_joins_the_same_running_request_and_no_other(self):
        wire = self.open()
        wire.send(keyed(1, "slow_nap", seconds=60) + keyed(2, "slow.nap", seconds=60) + keyed(3, "slow_nap", seconds=61))
        self.assertEqual(wire.answer(3)["result"]["_meta"][META]["error"]["code"], "INVALID_PARAMS")
        # After its listeners have left, the call is not joined any more, though it still ends.
        wire.send(cancelled(1) + cancelled(2) + keyed(4, "slow_echo", number=4))
        self.assertEqual(wire.answer(4)["result"]["structuredContent"]["number"], 4)

    def test_an_id_that_is_still_running_is_refused(self):
        wire = self.open()
        gate = scratch(self) / "gate"
        os.mkfifo(gate)
        wire.send(call(1, "slow_wait_at", "p", gate=str(gate)))
        while "began" not in (wire.read().get("params") or {}).get("message", ""):
            pass
        wire.send(call(1, "plain_greet"))
        self.assertEqual(wire.answer(1)["error"]["code"], -32600)
        wire.send(line(method="notifications/cancelled", params={"requestId": 1}))
        self.assertEqual(wire.value(2, "plain_greet"), "good morning, you")

    def test_long_arguments(self):
        wire = self.open()
        self.assertEqual(wire.value(1, "plain_greet", name="x" * 3_000_000), "good morning, " + "x" * 3_000_000)
        self.assertEqual(wire.value(2, "plain_greet"), "good morning, you")


class WithoutHandshake(unittest.IsolatedAsyncioTestCase):
    """Sessions of 2026-07-28, which begin with any request that says who asks."""

    def open(self, folder=TOOLS):
        wire = Wire(folder)
        self.addCleanup(wire.__exit__)
        wire.send(request(0, "tools/list", _meta=INLINE))
        self.assertEqual(wire.answer(0)["result"]["resultType"], "complete")
        return wire

    async def test_the_official_client_gets_exact_integers(self):
        folder = scratch(self)
        write_tool(folder, "big", f"def number() -> int:\n    return {BIG}\n")
        for mode in ("auto", "2026-07-28", "legacy"):
            async with connected(folder, mode=mode) as hostler:
                await hostler.client.list_tools()
                answer = await hostler.call("big_number")
                self.assertEqual(answer.result.structured_content, {"result": BIG}, mode)

    def test_both_eras_list_the_same_tools(self):
        wire = self.open()
        wire.send(request(1, "tools/list", _meta=INLINE))
        modern = wire.answer(1)["result"]
        legacy = Wire(TOOLS)
        self.addCleanup(legacy.__exit__)
        legacy.open()
        legacy.send(request(1, "tools/list"))
        listed = legacy.answer(1)["result"]
        self.assertEqual(list(listed), ["tools"])
        self.assertEqual(modern, {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **listed})
        self.assertGreater(len(listed["tools"]), 10)

    def test_a_request_that_lacks_what_it_must_carry_is_refused(self):
        wire = self.open()
        version, capabilities = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"
        for number, missing in enumerate((version, capabilities)):
            wire.send(inline(number, "plain_greet", meta={key: value for key, value in INLINE.items() if key != missing}))
            error = wire.answer(number)["error"]
            self.assertEqual(error["code"], -32602)
            self.assertIn(missing, error["message"])
        wire.send(inline(2, "plain_greet", meta={**INLINE, version: "2031-01-01"}))
        self.assertIn("2026-07-28", json.dumps(wire.answer(2)["error"]))
        wire.send(inline(3, "plain_greet"))
        self.assertFalse(wire.answer(3)["result"]["isError"])

    def test_a_subscription_does_not_take_the_id_of_a_running_call(self):
        with Wire() as wire:
            wire.send(inline(1, "slow_nap", meta={**INLINE, "progressToken": 1}, seconds=60))
            wire.until("notifications/progress")
            wire.send(request(1, "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=INLINE))
            self.assertEqual(wire.answer(1)["error"]["code"], -32600)

    def test_methods_of_older_revisions_are_gone(self):
        wire = self.open()
        for number, method in enumerate(("ping", "logging/setLevel")):
            wire.send(request(number, method, _meta=INLINE, level="info"))
            self.assertEqual(wire.answer(number)["error"]["code"], -32601, method)

    def test_calls_hear_progress_and_can_be_withdrawn(self):
        wire = self.open()
        gate = scratch(self) / "gate"
        os.mkfifo(gate)
        wire.send(inline(1, "slow_wait_at", meta={**INLINE, "progressToken": "p"}, gate=str(gate)))
        while "began" not in (note := wire.read())["params"]["message"]:
            pass
        self.assertEqual(note["params"]["progressToken"], "p")
        wire.send(line(method="notifications/cancelled", params={"requestId": 1, "reason": "changed my mind"}))
        wire.send(inline(2, "slow_echo", number=5))
        message = wire.read()
        while "method" in message:
            message = wire.read()
        self.assertEqual((message["id"], message["result"]["structuredContent"]["number"]), (2, 5))


class WhoEndedIt(unittest.TestCase):
    """A call without a result is in the log, with who ended it, even if its answer is not read."""

    def logged(self, end):
        gate = scratch(self) / "gate"
        os.mkfifo(gate)
        with Wire(TOOLS, env=environment(HOSTLER_LOG="info")) as wire:
            wire.open()
            wire.send(call(1, "slow_wait_at", "p", gate=str(gate)))
            while "began" not in (wire.read().get("params") or {}).get("message", ""):
                pass
            end(wire)
            wire.ended(1.5)
            lines = [text for text in wire.stderr().splitlines() if "slow.wait_at" in text and "call cancelled" in text]
        self.assertEqual(len(lines), 1, "it is recorded once")
        return lines[0]

    def test_the_client_cancels_it(self):
        def cancel(wire):
            wire.send(line(method="notifications/cancelled", params={"requestId": 1, "reason": "changed my mind"}))
            wire.value(2, "plain_greet")
            wire.end_input()

        self.assertIn("changed my mind", self.logged(cancel))

    def test_the_client_is_gone(self):
        self.assertIn("client is gone", self.logged(Wire.end_input))


if __name__ == "__main__":
    unittest.main()
