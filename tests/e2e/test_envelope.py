"""`envelope = "tool_success"`: the same outcomes in the dress that some hosts expect, and schemas that say so."""

import json
import unittest

import jsonschema
from harness import config_file, connected, run, scratch, write_tool
from test_executables import script

WORN = '[mcp]\nenvelope = "tool_success"\n[builtin]\nenable = ["shell"]\nroots = ["."]\n[tool.slow]\ntimeout = "200ms"\n'
CRASHES = "#!/bin/sh\n[ \"$1\" = --schema ] && echo '{}' && exit\nkill -SEGV $$\n"
TOOLS = '''
import time

def add(a: int, b: int) -> int:
    return a + b

def spot() -> dict[str, int]:
    return {"x": 1}

def fail():
    raise ValueError("as it must")
'''


class Worn(unittest.IsolatedAsyncioTestCase):
    def place(self):
        folder = scratch(self)
        write_tool(folder / "tools", "sums", TOOLS)
        write_tool(folder / "tools", "slow", "import time\ndef wait():\n    time.sleep(60)\n")
        script(folder / "tools", "crash", CRASHES)
        return folder / "tools", config_file(folder, WORN)

    async def test_each_outcome_has_one_shape_and_the_schema_promises_it(self):
        tools, config = self.place()
        expected = {
            "sums_add": ({"a": 1, "b": 2}, {"tool_success": True, "result": 3}),
            "sums_spot": ({}, {"tool_success": True, "result": {"x": 1}}),
            "bash": ({"command": "no-such-command 2>&-"}, {"tool_success": True, "result": {"stdout": "", "stderr": "", "exit_code": 127}}),
            "sums_fail": ({}, "TOOL_ERROR"),
            "crash": ({}, "TOOL_CRASHED"),
            "slow_wait": ({}, "TOOL_TIMEOUT"),
        }
        for mode in ("auto", "legacy"):
            async with connected(tools, config=config, mode=mode) as session:
                await session.call("crash")  # listed once it has said what it is
                schemas = {tool.name: tool.output_schema for tool in (await session.client.list_tools(cache_mode="bypass")).tools}
                for name, (arguments, wanted) in expected.items():
                    with self.subTest(name, mode=mode):
                        answer = await session.call(name, **arguments)
                        self.assertEqual(json.loads(answer.text), answer.structured)
                        jsonschema.validate(answer.structured, schemas[name])
                        if isinstance(wanted, dict):
                            self.assertEqual((answer.structured, answer.failed), (wanted, False))
                        else:
                            self.assertEqual((answer.structured["tool_success"], answer.structured["error_code"]), (False, wanted))
                            self.assertEqual((answer.structured["error"], answer.failed), (answer.message, True))
                promised = jsonschema.Draft202012Validator(schemas["sums_add"])
                for wrong in ({"tool_success": True, "result": "x"}, {"result": 3}, {"tool_success": "yes", "result": 3}):
                    self.assertFalse(promised.is_valid(wrong), wrong)
                none = await session.call("nowhere_none")
                self.assertEqual((none.structured["tool_success"], none.structured["error_code"], none.failed), (False, "TOOL_NOT_FOUND", True))

    def test_on_the_command_line(self):
        tools, config = self.place()
        where = ("--envelope", "--tools", tools, "--config", config)
        done = run("call", "sums.add", "a=1", "b=2", *where)
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, {"tool_success": True, "result": 3}))
        failed = run("call", "crash", *where)
        self.assertEqual(failed.returncode, 1)
        said = json.loads(failed.stdout)
        self.assertEqual((said["tool_success"], said["error_code"]), (False, "TOOL_CRASHED"))
        self.assertIn("SIGSEGV", said["error"])


if __name__ == "__main__":
    unittest.main()
