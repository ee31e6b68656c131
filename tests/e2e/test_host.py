"""What tools may ask of hostler: other tools, the catalogue, the configuration, the client's language model."""

import unittest

import mcp.types as types

from harness import HEADER, Progress, config_file, connected, scratch, write_tool

ASKS = '''
import hostler

def upper(text: str) -> str:
    return hostler.call("plainly.shout", text=text)

def names() -> list:
    return [tool["name"] for tool in hostler.tools()]

def settings() -> dict:
    return hostler.host_config()

def think(question: str) -> str:
    return hostler.llm(question, system="Be brief.", max_tokens=7)

def go_on(said: list) -> str:
    return hostler.llm(said)

def round_and_round() -> str:
    return hostler.call("asks.names")

def there_and_back() -> str:
    return hostler.call("between.back")

def think_elsewhere(question: str) -> str:
    return hostler.call("between.think", question=question)

def listen() -> str:
    hostler.progress(1, 2, "the outer one")
    return hostler.call("plainly.talk")

def amiss(tool: str) -> dict:
    try:
        hostler.call(tool)
    except hostler.ToolError as error:
        return {"code": error.code, "message": str(error)}
'''

PLAINLY = '''
import hostler

def nest():
    value = []
    for _ in range(985):
        value = [value]
    return value

def shout(text: str) -> str:
    return text.upper()

def fail():
    raise ValueError("as it must")

def talk() -> str:
    hostler.progress(5, 6, "the inner one")
    hostler.log("the inner one says")
    return "talked"

def asks_too() -> str:
    return hostler.call("plainly.shout", text="x")
'''

BETWEEN = '''
import hostler

def back() -> str:
    return hostler.call("asks.names")

def think(question: str) -> str:
    return hostler.llm(question)
'''


class Host(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "asks", ASKS, header="")
        write_tool(self.tools, "plainly", PLAINLY, header=HEADER)
        write_tool(self.tools, "between", BETWEEN, header="")

    async def test_another_tool_is_called_and_its_fault_comes_with_its_code(self):
        async with connected(self.tools) as hostler:
            self.assertEqual(await hostler.value("asks_upper", text="hi"), "HI")
            amiss = await hostler.value("asks_amiss", tool="plainly.fail")
            self.assertEqual(amiss["code"], "TOOL_ERROR")
            self.assertIn("ValueError: as it must", amiss["message"])
            # Its worker could not read that many levels, and would wait for an answer until its time is over.
            deep = await hostler.value("asks_amiss", tool="plainly.nest")
            self.assertEqual(deep["code"], "INVALID_OUTPUT")
            self.assertIn("nested deeper than about 120 levels", deep["message"])

    async def test_the_catalogue_and_the_configuration_without_anything_private(self):
        config = config_file(self.folder, '[secrets]\nKEY = { file = "/nowhere/at/all" }\n[tool.plainly]\nconfig = { token = "t0k3n" }\n')
        async with connected(self.tools, config=config) as hostler:
            self.assertIn("plainly.shout", await hostler.value("asks_names"))
            settings = await hostler.value("asks_settings")
            self.assertEqual(settings["secrets"], ["KEY"])
            self.assertNotIn("t0k3n", str(settings))
            self.assertNotIn("/nowhere", str(settings))

    async def test_a_cycle_of_calls_is_refused_with_the_cycle_named(self):
        config = config_file(self.folder, '[tool]\ntimeout = "10s"\n')  # one that is not refused waits for itself
        async with connected(self.tools, config=config) as hostler:
            answer = await hostler.call("asks_round_and_round")
            self.assertEqual(answer.code, "TOOL_ERROR")
            self.assertIn("asks.round_and_round → asks.names", answer.message)
            self.assertIn("asks.names", await hostler.value("asks_names"))
            answer = await hostler.call("asks_there_and_back")
            self.assertEqual(answer.code, "TOOL_ERROR")
            self.assertIn("asks.there_and_back → between.back → asks.names", answer.message)

    async def test_of_a_call_within_a_call_its_start_and_its_logs_are_heard_and_its_progress_is_not(self):
        logged = []

        async def hear(params):
            logged.append((params.logger, params.data["message"]))

        async with connected(self.tools, mode="legacy", logging_callback=hear) as hostler:
            await hostler.client.set_logging_level("info")
            progress = Progress()
            answer = await hostler.call("asks_listen", progress=progress)
            self.assertEqual(answer.value, "talked")
        said = [message for _, _, message in progress.notes]
        self.assertIn("plainly is ready", said)
        self.assertIn("the outer one", said)
        self.assertNotIn("the inner one", said)
        self.assertEqual(logged, [("asks_listen", "the inner one says")])

    async def test_a_file_with_a_header_may_ask_only_when_the_operator_says_so(self):
        async with connected(self.tools) as hostler:
            refused = await hostler.call("plainly_asks_too")
            self.assertEqual(refused.code, "TOOL_ERROR")
            self.assertIn("host_access = true", refused.message)
        # Not itself: that would be a cycle. Another file.
        config = config_file(self.folder, "[tool.other]\nhost_access = true\n")
        write_tool(self.tools, "other", 'import hostler\ndef ask() -> str:\n    return hostler.call("plainly.shout", text="x")\n')
        async with connected(self.tools, config=config) as hostler:
            self.assertEqual(await hostler.value("other_ask"), "X")

    async def test_the_language_model_of_the_client_is_lent(self):
        heard = []

        async def sample(_context, params):
            heard.append(params)
            text = types.TextContent(type="text", text="forty-two")
            return types.CreateMessageResult(role="assistant", content=text, model="m", stop_reason="endTurn")

        async with connected(self.tools, mode="legacy", sampling_callback=sample) as hostler:
            self.assertEqual(await hostler.value("asks_think", question="What is it?"), "forty-two")
            said = [{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}, {"role": "user", "content": "Three"}]
            self.assertEqual(await hostler.value("asks_go_on", said=said), "forty-two")
            nothing = await hostler.call("asks_go_on", said=[])
            self.assertIn("the prompt is empty", nothing.text)
            odd = await hostler.call("asks_go_on", said=[{"role": "system", "content": "x"}])
            self.assertIn("expected `user` or `assistant`", odd.text)
            self.assertEqual(await hostler.value("asks_think_elsewhere", question="And there?"), "forty-two")
        self.assertEqual(len(heard), 3)
        self.assertEqual(heard[2].messages[0].content.text, "And there?")
        self.assertEqual([(message.role, message.content.text) for message in heard[1].messages],
                         [("user", "One"), ("assistant", "Two"), ("user", "Three")])
        self.assertEqual(heard[0].messages[0].content.text, "What is it?")
        self.assertEqual((heard[0].system_prompt, heard[0].max_tokens), ("Be brief.", 7))

    async def test_where_no_model_is_lent_the_author_is_told(self):
        async with connected(self.tools, mode="legacy") as hostler:
            answer = await hostler.call("asks_think", question="What is it?")
            self.assertEqual(answer.code, "NOT_SUPPORTED")
            self.assertIn("sampling", answer.message)
