"""Questions of tools to the client: its user, its language model, its folders, in both eras of MCP."""

import json
import unittest

import mcp.types as types

from harness import config_file, connected, scratch, write_tool
from wire import HELLO, INLINE, Wire, line, request

ASKS = r'''
import asyncio, hostler, os, threading, time
from dataclasses import dataclass
from typing import Optional

@dataclass
class Order:
    name: str
    count: int = 1

ran = 0

def order(word: str = "") -> list:
    global ran
    ran += 1
    answer = hostler.elicit("Who orders?", Order, key="order")
    return [answer.action, answer.data and [answer.data.name, answer.data.count], os.getpid(), ran]

def pictured() -> str:
    return hostler.llm("What is it?", system="Be brief.", images=[b"\x89PNG\r\n\x1a\n"], temperature=0.5, max_tokens=7)

def where() -> list[str]:
    return [root.path for root in hostler.roots()]

def together() -> list[str]:
    said = []
    def ask(key): said.append(hostler.elicit("Which?", str, key=key).data)
    threads = [threading.Thread(target=ask, args=(key,)) for key in "ab"]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return sorted(said)

async def later() -> str:
    return (await asyncio.to_thread(hostler.elicit, "Which?", str, key="later")).data

def steps() -> str:
    return hostler.elicit("First?", str, key="first").data + hostler.elicit("Second?", str, key="second").data

def either() -> str:
    try:
        return hostler.elicit("Which?", str).data
    except hostler.NotSupported as error:
        return "no " + error.capability + ", " + hostler.llm("Which?", key="model")

def falls() -> str:
    threading.Timer(0.2, os._exit, (3,)).start()
    return hostler.elicit("Well?").action

def pair(a: int, b: int) -> int:
    hostler.elicit("Add?", key="pair")
    return a + b

def twice() -> list[bool]:
    return [bool(hostler.elicit(f"Delete {what}?", key="confirm")) for what in "AB"]

async def wait_with_neighbour() -> str:
    return (await asyncio.to_thread(hostler.elicit, "Which?", str, key="later")).data

async def nap(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds

@dataclass
class Note:
    title: str
    text: Optional[str]

def optional() -> list:
    note = hostler.elicit("Note?", Note, key="note").data
    return [note.title, note.text]

def patient() -> str:
    try:
        hostler.elicit("Well?", key="well")
    except hostler.HostlerError:
        pass
    return "done without"

def much() -> str:
    hostler.elicit("Much?", key="much")
    return "x" * 1_100_000

def insists() -> str:
    def ask():
        while True:
            try:
                hostler.elicit("Well?")
            except hostler.NotSupported:
                pass
    for _ in range(4): threading.Thread(target=ask, daemon=True).start()
    time.sleep(60)

def pid() -> int:
    return os.getpid()
'''

OUTER = """
import hostler
def outer() -> str:
    return hostler.call("asks.order")[0]
"""

SLOW = """
import time
def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds
"""


def accept(**content):
    return {"action": "accept", "content": content}


class Asks(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "asks", ASKS)
        write_tool(self.tools, "outer", OUTER, header="")
        write_tool(self.tools, "slow", SLOW)


class WithTheOfficialClient(Asks):
    async def test_both_eras_answer_questions_of_every_kind(self):
        for mode in ("auto", "legacy"):
            with self.subTest(mode):
                await self.ask_everything(mode)

    async def ask_everything(self, mode):
        heard, action = [], "accept"

        async def elicit(_context, params):
            heard.append(params)
            return types.ElicitResult(action=action, content={"name": "Ada", "count": 3} if action == "accept" else None)

        async def sample(_context, params):
            heard.append(params)
            text = types.TextContent(type="text", text="a dot")
            return types.CreateMessageResult(role="assistant", content=text, model="m", stop_reason="endTurn")

        async def roots(_context):
            return types.ListRootsResult(roots=[types.Root(uri="file:///home/me/a%20b")])

        async with connected(self.tools, mode=mode, elicitation_callback=elicit, sampling_callback=sample,
                             list_roots_callback=roots) as hostler:
            for action, data in (("accept", ["Ada", 3]), ("decline", None), ("cancel", None)):
                answer = await hostler.call("asks_order")
                self.assertEqual(answer.value[:2], [action, data])
            self.assertGreater(answer.metadata["asked_ms"], 0)
            self.assertEqual(heard[0].message, "Who orders?")
            self.assertEqual(heard[0].requested_schema["required"], ["name"])
            self.assertEqual(await hostler.value("asks_pictured"), "a dot")
            self.assertEqual((heard[-1].temperature, heard[-1].max_tokens, heard[-1].system_prompt), (0.5, 7, "Be brief."))
            self.assertEqual([message.content.type for message in heard[-1].messages], ["image", "text"])
            self.assertEqual(await hostler.value("asks_where"), ["/home/me/a b"])
            action = "accept"
            self.assertEqual(await hostler.value("outer_outer"), "accept")

    async def test_a_client_that_cannot_be_asked(self):
        async with connected(self.tools, mode="legacy") as hostler:
            answer = await hostler.call("asks_order")
            self.assertEqual(answer.code, "NOT_SUPPORTED")
            self.assertIn("elicitation", answer.message)

    async def test_the_operator_has_the_last_word(self):
        config = config_file(self.folder, "[tool.asks]\nclient_access = false\n")
        async with connected(self.tools, config=config) as hostler:
            answer = await hostler.call("asks_order")
            self.assertEqual(answer.code, "TOOL_ERROR")
            self.assertIn("client_access = false", answer.message)


class Rounds(Asks):
    """From 2026-07-28 on, line by line."""

    CAN = {"elicitation": {}, "sampling": {}, "roots": {}}

    def open(self, *arguments):
        wire = Wire(self.tools, arguments=arguments)
        self.addCleanup(wire.__exit__)
        wire.count = 0
        return wire

    def call(self, wire, name, arguments=None, can=None, **more):
        """Sends a call; its number."""
        wire.count += 1
        meta = {**INLINE, "io.modelcontextprotocol/clientCapabilities": self.CAN if can is None else can}
        wire.send(request(wire.count, "tools/call", name=name, arguments=arguments or {}, _meta=meta, **more))
        return wire.count

    def result(self, wire, name, arguments=None, **more):
        return wire.answer(self.call(wire, name, arguments, **more))["result"]

    def value(self, wire, name, arguments=None, **more):
        result = self.result(wire, name, arguments, **more)
        self.assertEqual((result["resultType"], result.get("isError")), ("complete", False), result)
        return result["structuredContent"]["result"]

    def fault(self, result):
        return result["_meta"]["hostler/outcome"]["error"]["code"]

    def refused(self, wire, name, arguments=None, **more):
        error = wire.answer(self.call(wire, name, arguments, **more))["error"]
        self.assertEqual(error["code"], -32602, error)
        return error["message"]

    def asked(self, wire, name, arguments=None, **more):
        """The state and the questions of a call that asks."""
        result = self.result(wire, name, arguments, **more)
        self.assertEqual(result["resultType"], "input_required", result)
        return result["requestState"], result["inputRequests"]

    def test_a_state_belongs_to_its_call_tool_arguments_and_session(self):
        wire, other = self.open(), self.open()
        state, questions = self.asked(wire, "asks_order", {"word": "x"})
        self.assertEqual(questions["order"]["method"], "elicitation/create")
        answers = {"inputResponses": {"order": accept(name="Ada")}}
        self.refused(wire, "asks_order", {"word": "y"}, requestState=state, **answers)
        self.refused(wire, "asks_pid", requestState=state, **answers)
        self.refused(wire, "asks_order", {"word": "x"}, requestState=state + "A", **answers)
        self.refused(wire, "asks_order", {"word": "x"}, requestState="", **answers)
        self.refused(other, "asks_order", {"word": "x"}, requestState=state, **answers)
        more = {"requestState": state, **answers}
        self.assertEqual(self.value(wire, "asks_order", {"word": "x"}, **more)[:2], ["accept", ["Ada", 1]])

    def test_a_repeated_request_gets_the_same_outcome(self):
        wire = self.open()
        state, _ = self.asked(wire, "asks_steps")
        state, _ = self.asked(wire, "asks_steps", requestState=state, inputResponses={"first": accept(value="a")})
        again, questions = self.asked(wire, "asks_steps", requestState=state)  # without answers it asks again
        self.assertEqual(list(questions), ["second"])
        answers = {"requestState": again, "inputResponses": {"second": accept(value="b"), "unknown": accept()}}
        results = [self.result(wire, "asks_steps", **answers) for _ in range(3)]
        self.assertEqual({result["structuredContent"]["result"] for result in results}, {"ab"})
        self.assertEqual(len({result["_meta"]["hostler/outcome"]["call_id"] for result in results}), 1)

    def test_two_requests_wait_for_one_call(self):
        wire = self.open()
        state, _ = self.asked(wire, "asks_order")
        first = self.call(wire, "asks_order", requestState=state)
        second = self.call(wire, "asks_order", requestState=state, inputResponses={"order": accept(name="Ada")})
        answers = [wire.answer(number)["result"]["structuredContent"]["result"] for number in (first, second)]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0][3], 1)

    def test_questions_of_several_threads_go_together(self):
        wire = self.open()
        state, questions = self.asked(wire, "asks_together")
        self.assertEqual(sorted(questions), ["a", "b"])
        state, questions = self.asked(wire, "asks_together", requestState=state, inputResponses={"a": accept(value="1")})
        self.assertEqual(list(questions), ["b"])
        more = {"requestState": state, "inputResponses": {"b": accept(value="2")}}
        self.assertEqual(self.value(wire, "asks_together", **more), ["1", "2"])
        state, questions = self.asked(wire, "asks_later")
        more = {"requestState": state, "inputResponses": {"later": accept(value="3")}}
        self.assertEqual(self.value(wire, "asks_later", **more), "3")

    def test_answers_may_come_before_their_questions(self):
        wire = self.open()
        ahead = {"inputResponses": {"order": accept(name="Ada"), "unknown": accept(x=1)}}
        self.assertEqual(self.value(wire, "asks_order", **ahead)[1], ["Ada", 1])
        self.asked(wire, "asks_order", inputResponses={"wrong": accept(name="Ada")})
        self.assertIn("inputResponses.order", self.refused(wire, "asks_order", inputResponses={"order": 5}))

    def test_what_the_client_lacks(self):
        wire = self.open()
        error = wire.answer(self.call(wire, "asks_order", can={"sampling": {}}))["error"]
        self.assertEqual((error["code"], error["data"]), (-32021, {"requiredCapabilities": {"elicitation": {}}}))
        error = wire.answer(self.call(wire, "asks_order", can={"elicitation": {"url": {}}}))["error"]
        self.assertEqual(error["code"], -32021)
        state, questions = self.asked(wire, "asks_either", can={"sampling": {}})
        self.assertEqual(questions["model"]["method"], "sampling/createMessage")
        said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}
        more = {"can": {"sampling": {}}, "requestState": state, "inputResponses": {"model": said}}
        self.assertEqual(self.value(wire, "asks_either", **more), "no elicitation, yes")

    def test_asking_in_vain_does_not_stop_the_clock(self):
        config = config_file(self.folder, '[tool.asks]\ntimeout = "500ms"\n')
        wire = self.open("--config", str(config))
        self.assertEqual(self.fault(self.result(wire, "asks_insists", can={})), "TOOL_TIMEOUT")

    def test_answers_of_a_wrong_shape(self):
        wire = self.open()
        for answer, part in ((accept(name=5), "/name"), (accept(), "name"), ({"action": "perhaps"}, "accept, decline or cancel")):
            with self.subTest(answer):
                state, _ = self.asked(wire, "asks_order")
                result = self.result(wire, "asks_order", requestState=state, inputResponses={"order": answer})
                self.assertEqual(self.fault(result), "TOOL_ERROR")
                self.assertIn(part, result["content"][0]["text"])

    def test_a_parked_call_is_in_nobodys_way(self):
        config = config_file(self.folder, '[limits]\nmax_concurrent_calls = 1\n[tool.asks]\ntimeout = "300ms"\n')
        wire = self.open("--config", str(config))
        first = self.call(wire, "asks_order")
        behind = [self.call(wire, "asks_pid") for _ in range(3)]
        result = wire.answer(first)["result"]
        pids = {wire.answer(number)["result"]["structuredContent"]["result"] for number in behind}
        # Longer than its time limit, which stands still.
        self.assertEqual(self.value(wire, "slow_sleep", {"seconds": 0.5}), 0.5)
        more = {"requestState": result["requestState"], "inputResponses": {"order": accept(name="Ada")}}
        done = self.result(wire, "asks_order", **more)
        value, metadata = done["structuredContent"]["result"], done["_meta"]["hostler/outcome"]["metadata"]
        self.assertEqual(value[1], ["Ada", 1])
        self.assertNotIn(value[2], pids)
        self.assertGreater(metadata["asked_ms"], 500)
        self.assertLess(metadata["run_ms"], 300)
        # The worker that asked stays; the one that stood in for it leaves.
        self.assertEqual(self.value(wire, "asks_pid"), value[2])

    def test_a_call_that_waits_for_one_that_asks_is_parked_too(self):
        config = config_file(self.folder, '[limits]\nmax_concurrent_calls = 1\n[tool.outer]\ntimeout = "400ms"\n')
        wire = self.open("--config", str(config))
        state, _ = self.asked(wire, "outer_outer")
        self.assertEqual(self.value(wire, "slow_sleep", {"seconds": 0.6}), 0.6)
        more = {"requestState": state, "inputResponses": {"order": accept(name="Ada")}}
        self.assertEqual(self.value(wire, "outer_outer", **more), "accept")

    def test_an_outer_call_takes_no_place_of_those_that_ask(self):
        text = '[limits]\nmax_workers = 4\nmax_concurrent_calls = 1\n[tool.outer]\ntimeout = "400ms"\n'
        wire = self.open("--config", str(config_file(self.folder, text)))
        state, _ = self.asked(wire, "outer_outer")
        self.assertEqual(self.value(wire, "slow_sleep", {"seconds": 0.6}), 0.6)
        more = {"requestState": state, "inputResponses": {"order": accept(name="Ada")}}
        self.assertEqual(self.value(wire, "outer_outer", **more), "accept")

    def test_a_quarter_of_the_workers_may_wait_for_users(self):
        config = config_file(self.folder, "[limits]\nmax_workers = 4\n[tool.asks]\nmax_workers = 2\n")
        wire = self.open("--config", str(config))
        state, _ = self.asked(wire, "asks_order")
        result = self.result(wire, "asks_order", {"word": "second"})
        self.assertEqual(self.fault(result), "BUSY")
        more = {"requestState": state, "inputResponses": {"order": accept(name="Ada")}}
        self.assertEqual(self.value(wire, "asks_order", **more)[0], "accept")
        self.asked(wire, "asks_order", {"word": "third"})

    def test_a_question_that_stays_open_ends(self):
        config = config_file(self.folder, '[tool.asks]\nquestion_timeout = "200ms"\n')
        wire = self.open("--config", str(config))
        state, _ = self.asked(wire, "asks_order")
        self.assertEqual(self.value(wire, "slow_sleep", {"seconds": 0.4}), 0.4)
        late = self.result(wire, "asks_order", requestState=state, inputResponses={"order": accept(name="Ada")})
        self.assertEqual(self.fault(late), "TOOL_TIMEOUT")  # the outcome of that call; it does not run again
        self.assertIsInstance(self.value(wire, "asks_pid"), int)
        state, _ = self.asked(wire, "asks_patient")
        self.assertEqual(self.value(wire, "slow_sleep", {"seconds": 0.4}), 0.4)
        self.assertEqual(self.value(wire, "asks_patient", requestState=state, inputResponses={"well": accept()}), "done without")

    def test_an_outcome_that_is_not_kept_is_said_to_be_gone(self):
        wire = self.open()
        state, _ = self.asked(wire, "asks_much")
        more = {"requestState": state, "inputResponses": {"much": {"action": "accept"}}}
        self.assertEqual(len(self.value(wire, "asks_much", **more)), 1_100_000)
        self.assertIn("has ended", self.refused(wire, "asks_much", **more))

    def test_arguments_that_do_not_fit_do_not_continue_a_call(self):
        wire = self.open()
        state, _ = self.asked(wire, "asks_pair", {"a": 1, "b": 2})
        more = {"requestState": state, "inputResponses": {"pair": {"action": "accept"}}}
        for other in ({"a": "not a number", "zzz": 3}, {"a": 1}, {"a": 1, "b": 2, "c": 3}):
            self.refused(wire, "asks_pair", other, **more)
        self.assertEqual(self.value(wire, "asks_pair", {"a": 1, "b": 2}, **more), 3)

    def test_a_field_that_may_be_left_out(self):
        wire = self.open()
        state, questions = self.asked(wire, "asks_optional")
        self.assertEqual(questions["note"]["params"]["requestedSchema"]["required"], ["title"])
        more = {"requestState": state, "inputResponses": {"note": accept(title="a")}}
        self.assertEqual(self.value(wire, "asks_optional", **more), ["a", None])

    def test_built_in_tools_that_ask_are_parked_too(self):
        text = '[limits]\nmax_concurrent_calls = 1\nmax_workers = 4\n[builtin]\nenable = ["host"]\n'
        wire = self.open("--config", str(config_file(self.folder, text)))
        ask = {"prompt": "Who?"}
        state, questions = self.asked(wire, "hostler_ask_llm", ask, can={"sampling": {}})
        self.assertEqual(self.value(wire, "slow_sleep", {"seconds": 0.1}), 0.1)
        busy = self.result(wire, "hostler_ask_llm", {"prompt": "And?"}, can={"sampling": {}})
        self.assertEqual(self.fault(busy), "BUSY")
        said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Ada"}}
        more = {"can": {"sampling": {}}, "requestState": state, "inputResponses": {next(iter(questions)): said}}
        self.refused(wire, "hostler_ask_llm", {"prompt": "What?"}, **more)
        self.assertIn("Ada", str(self.value(wire, "hostler_ask_llm", ask, **more)))

    def test_a_repeated_answer_does_not_answer_the_next_question(self):
        wire = self.open()
        first, _ = self.asked(wire, "asks_twice")
        answers = {"requestState": first, "inputResponses": {"confirm": {"action": "accept"}}}  # without content: it is empty
        self.asked(wire, "asks_twice", **answers)
        second, _ = self.asked(wire, "asks_twice", **answers)  # the old request again
        more = {"requestState": second, "inputResponses": {"confirm": {"action": "decline"}}}
        self.assertEqual(self.value(wire, "asks_twice", **more), [True, False])

    def test_a_parked_call_outlasts_a_neighbour_that_takes_too_long(self):
        config = config_file(self.folder, '[tool.asks]\nconcurrency = 4\ntimeout = "300ms"\n')
        wire = self.open("--config", str(config))
        state, _ = self.asked(wire, "asks_wait_with_neighbour")
        self.assertEqual(self.fault(self.result(wire, "asks_nap", {"seconds": 5})), "TOOL_TIMEOUT")
        self.assertEqual(self.fault(self.result(wire, "asks_nap", {"seconds": 5})), "TOOL_TIMEOUT")
        more = {"requestState": state, "inputResponses": {"later": accept(value="x")}}
        self.assertEqual(self.value(wire, "asks_wait_with_neighbour", **more), "x")

    def test_a_call_with_two_requests_can_still_be_cancelled(self):
        config = config_file(self.folder, "[limits]\nmax_workers = 4\n")
        wire = self.open("--config", str(config))
        state, _ = self.asked(wire, "asks_order")
        numbers = [self.call(wire, "asks_order", requestState=state) for _ in range(2)]
        answered = {message["id"]: message["result"]["resultType"] for message in (wire.read(), wire.read())}
        self.assertEqual(answered, dict.fromkeys(numbers, "input_required"))
        number = self.call(wire, "asks_order", requestState=state)
        wire.send(line(method="notifications/cancelled", params={"requestId": number}))
        # Its place is free again: a quarter of four is one.
        self.asked(wire, "asks_order", {"word": "next"})

    def test_a_repeated_key_is_asked_the_open_question(self):
        wire = self.open()
        meta = {**INLINE, "io.modelcontextprotocol/clientCapabilities": self.CAN, "hostler/key": "k"}
        for number in (1, 2):
            wire.send(request(number, "tools/call", name="asks_order", arguments={}, _meta=meta))
            result = wire.answer(number)["result"]
            self.assertEqual((result["resultType"], list(result["inputRequests"])), ("input_required", ["order"]))

    def test_what_a_user_typed_is_in_no_fault(self):
        wire = self.open()
        state, _ = self.asked(wire, "asks_order")
        result = self.result(wire, "asks_order", requestState=state, inputResponses={"order": accept(name="Ada", count="hunter2")})
        self.assertNotIn("hunter2", json.dumps(result))
        self.assertIn("/count", result["content"][0]["text"])

    def test_the_order_of_arguments_does_not_matter(self):
        wire = self.open()
        state, _ = self.asked(wire, "asks_pair", {"a": 1, "b": 2})
        more = {"requestState": state, "inputResponses": {"pair": {"action": "accept"}}}
        self.assertEqual(self.value(wire, "asks_pair", {"b": 2, "a": 1}, **more), 3)

    def test_a_worker_that_dies_while_its_call_asks(self):
        wire = self.open()
        state, _ = self.asked(wire, "asks_falls")
        result = self.result(wire, "asks_falls", requestState=state)
        while result["resultType"] == "input_required":  # it was asked again before the worker died
            result = self.result(wire, "asks_falls", requestState=result["requestState"])
        self.assertEqual(self.fault(result), "TOOL_CRASHED")
        self.asked(wire, "asks_order")


class Requests(Asks):
    """Until 2025-11-25, line by line: hostler sends requests."""

    def open(self, *arguments):
        wire = Wire(self.tools, arguments=arguments)
        self.addCleanup(wire.__exit__)
        can = {"elicitation": {}}
        wire.send(request(0, "initialize", **{**HELLO, "capabilities": can}) + line(method="notifications/initialized"))
        wire.answer(0)
        return wire

    def test_a_cancelled_call_withdraws_its_question(self):
        wire = self.open()
        wire.send(request(1, "tools/call", name="asks_pid", arguments={}))
        pid = wire.answer(1)["result"]["structuredContent"]["result"]
        wire.send(request(2, "tools/call", name="asks_order", arguments={}))
        asked = wire.until("elicitation/create")
        wire.send(line(method="notifications/cancelled", params={"requestId": 2}))
        self.assertEqual(wire.until("notifications/cancelled")["params"]["requestId"], asked["id"])
        wire.send(line(id=asked["id"], result=accept(name="late")))
        wire.send(request(3, "tools/call", name="asks_pid", arguments={}))
        self.assertEqual(wire.answer(3)["result"]["structuredContent"]["result"], pid)

    def test_a_question_that_stays_open_ends_the_call(self):
        config = config_file(self.folder, '[tool.asks]\nquestion_timeout = "200ms"\n')
        wire = self.open("--config", str(config))
        wire.send(request(1, "tools/call", name="asks_order", arguments={}, _meta={"progressToken": 7}))
        result = wire.answer(1)["result"]
        self.assertEqual(result["_meta"]["hostler/outcome"]["error"]["code"], "TOOL_TIMEOUT")
        heard = [note["params"].get("message") for note in wire.notes if note["method"] == "notifications/progress"]
        self.assertIn("asks.order waits for the user", heard)
        self.assertEqual(wire.until("elicitation/create")["params"]["message"], "Who orders?")

    def test_a_client_that_refuses(self):
        wire = self.open()
        wire.send(request(1, "tools/call", name="asks_order", arguments={}))
        asked = wire.until("elicitation/create")
        wire.send(line(id=asked["id"], error={"code": -1, "message": "not now"}))
        result = wire.answer(1)["result"]
        self.assertEqual(result["_meta"]["hostler/outcome"]["error"]["code"], "TOOL_ERROR")
        self.assertIn("not now", result["content"][0]["text"])
