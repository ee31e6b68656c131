"""Rates: how often tools may be called, over restarts, in several processes, for a category, for all tools and for one session."""

import json
import unittest

from harness import config_file, environment, eventually, run, scratch, write_tool
from wire import Wire, call

TOOL = "def number(n: int = 1) -> int:\n    return n\n\ndef fails() -> int:\n    raise ValueError('no')\n"

HEADER = """# /// script
# requires-python = ">=3.9"
# dependencies = []
# [tool.hostler]
# rate_limit_per_hour = {}
# ///
"""


class Rates(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "a", TOOL)
        write_tool(self.tools, "b", TOOL)
        self.env = environment(XDG_STATE_HOME=str(self.folder / "state"))
        self.number = 0

    def configure(self, text):
        self.config = config_file(self.folder, text)

    def words(self, *words):
        return ("--config", str(self.config), "--tools", str(self.tools), *words)

    def open(self):
        wire = Wire(self.tools, cwd=self.folder, arguments=("--config", str(self.config)), env=self.env)
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def outcome(self, wire, tool, **arguments):
        """The error of a call; `None` if it has none."""
        self.number += 1
        wire.send(call(self.number, tool, **arguments))
        result = wire.answer(self.number)["result"]
        return result["_meta"]["hostler/outcome"]["error"] if result.get("isError") else None

    def code(self, wire, tool, **arguments):
        error = self.outcome(wire, tool, **arguments)
        return error and error["code"]

    def codes(self, wire, *tools):
        return [self.code(wire, tool) for tool in tools]

    def test_a_rate_is_exact_and_says_when_to_come_back(self):
        self.configure("[tool.a]\nrate_limit_per_minute = 3\n")
        wire = self.open()
        self.assertEqual(self.codes(wire, "a_number", "a_number", "a_number"), [None] * 3)
        error = self.outcome(wire, "a_number")
        self.assertEqual(error["code"], "RATE_LIMITED")
        self.assertTrue(error["message"].startswith("Rate limit exceeded"), error)
        self.assertTrue(error["retryable"])
        self.assertTrue(0 < error["details"]["retry_after_ms"] <= 60_000, error)
        self.assertEqual(self.codes(wire, "b_number", "a_fails"), [None, "TOOL_ERROR"], "others are counted apart")

    def test_what_was_allowed_counts_however_it_ended_and_what_was_denied_does_not(self):
        self.configure('[tool."a.fails"]\nrate_limit_per_hour = 2\n[tool.b]\nrate_limit_per_hour = 2\n'
                       '[tool."b.number"]\nhost_arguments = ["n"]\nallowed_hosts = ["1"]\n')
        wire = self.open()
        self.assertEqual(self.codes(wire, "a_fails", "a_fails", "a_fails"), ["TOOL_ERROR", "TOOL_ERROR", "RATE_LIMITED"])
        for _ in range(4):
            self.assertEqual(self.code(wire, "b_number", n="x"), "INVALID_PARAMS")

    def test_it_outlives_the_process_and_binds_all_of_a_person(self):
        self.configure('[journal]\nenabled = false\n[tool.a]\njournal = "off"\nrate_limit_per_hour = 4\n')
        first, second = self.open(), self.open()
        self.assertEqual(self.codes(first, "a_number"), [None])
        self.assertEqual(self.codes(second, "a_number", "a_number"), [None, None])
        first.process.kill()
        run_one = lambda: run(*self.words("call", "a_number", "--standalone"), env=self.env, cwd=self.folder)
        self.assertEqual(run_one().returncode, 0)
        refused = run_one()
        self.assertEqual(refused.returncode, 6, refused.stderr)
        self.assertIn("Rate limit exceeded", refused.stderr)
        self.assertEqual(self.codes(second, "a_number"), ["RATE_LIMITED"])
        self.assertEqual(self.codes(self.open(), "a_number"), ["RATE_LIMITED"])
        explained = run(*self.words("policy", "explain", "a.number", "--json"), env=self.env, cwd=self.folder)
        decision = json.loads(explained.stdout)
        self.assertEqual((decision["decision"], [rule["rule"] for rule in decision["because"]]), ("denied", ["rate_limit_per_hour"]))

    def test_many_processes_at_once_make_exactly_as_many_calls_as_they_may(self):
        self.configure("[tool.a]\nrate_limit_per_hour = 20\n")
        wires = [self.open() for _ in range(4)]
        for wire in wires:
            self.codes(wire, "b_number")
            for number in range(1000, 1015):
                wire.send(call(number, "a_number"))
        answers = [wire.answer(number)["result"] for wire in wires for number in range(1000, 1015)]
        self.assertEqual(sum(not answer.get("isError") for answer in answers), 20)

    def test_categories_and_all_tools_are_counted_together(self):
        self.configure('[policy]\nrate_limit_per_hour = 6\n[category.slow]\nrate_limit_per_hour = 3\n'
                       '[tool."a.number"]\ncategory = "slow"\n[tool.b]\ncategory = "slow"\nrate_limit_per_hour = 2\n')
        wire = self.open()
        self.assertEqual(self.codes(wire, "b_number", "b_number", "b_number"), [None, None, "RATE_LIMITED"])
        self.assertEqual(self.codes(wire, "a_number", "a_number"), [None, "RATE_LIMITED"], "three of the category")
        self.assertEqual([self.code(wire, "a_fails") for _ in range(4)], ["TOOL_ERROR"] * 3 + ["RATE_LIMITED"], "six of all")
        shown = json.loads(run(*self.words("policy", "--json"), env=self.env, cwd=self.folder).stdout)
        self.assertEqual([(rate["of"], rate["value"]) for rate in shown["rates"]], [("all tools", 6), ("category slow", 3)])

    def test_a_session_has_its_own_count(self):
        self.configure("[tool]\nsession_budget_calls = 2\n")
        first = self.open()
        self.assertEqual(self.codes(first, "a_number", "a_number", "a_number", "b_number"), [None, None, "RATE_LIMITED", None])
        self.assertNotIn("retry_after_ms", self.outcome(first, "a_number").get("details", {}), "there is no such time")
        self.assertEqual(self.codes(self.open(), "a_number"), [None])

    def test_seconds_that_calls_ran_are_a_budget_also_if_they_failed(self):
        write_tool(self.tools, "slow", "import time\n\ndef wait(seconds: float) -> int:\n    time.sleep(seconds)\n    return 1\n\n"
                                       "def fail(seconds: float) -> int:\n    time.sleep(seconds)\n    raise ValueError('no')\n")
        self.configure('[policy]\nsession_budget_seconds = 1\n[tool."slow.fail"]\nbudget_seconds_per_day = 1\n')
        first = self.open()
        self.assertEqual([self.code(first, "slow_wait", seconds=seconds) for seconds in (0.6, 0.6, 0)], [None, None, "RATE_LIMITED"])
        self.assertIn("1 second for calls of all tools in one session", self.outcome(first, "a_number")["message"])
        second = self.open()
        self.assertEqual([self.code(second, "slow_fail", seconds=seconds) for seconds in (1.1, 0)], ["TOOL_ERROR", "RATE_LIMITED"])
        error = self.outcome(self.open(), "slow_fail", seconds=0)
        self.assertIn("1 second for calls of slow.fail in a day", error["message"])
        self.assertTrue(86_000_000 < error["details"]["retry_after_ms"] <= 86_400_000, error)

    def test_a_model_that_goes_round_in_circles_is_told_so(self):
        self.configure('[policy]\nloop_guard = 3\n[tool.b]\nloop_guard = 2\n')
        wire = self.open()

        def notes(tool, **arguments):
            self.number += 1
            wire.send(call(self.number, tool, **arguments))
            result = wire.answer(self.number)["result"]
            noted = [block["text"] for block in result["content"] if block["text"].startswith("Note from hostler")]
            repeated = result["_meta"]["hostler/outcome"]["metadata"].get("repeated")
            self.assertEqual(bool(noted), repeated is not None)
            return repeated

        self.assertEqual([notes("a_number", n=1) for _ in range(4)], [None, None, 3, 4])
        self.assertEqual([notes("a_number", n=2), notes("a_number", n=1), notes("b_number"), notes("b_number")], [None, None, None, 2])
        self.assertEqual([notes("a_fails") for _ in range(3)], [None, None, 3], "failures, too")
        self.assertEqual([notes("a_number", n="x") for _ in range(3)], [None, None, 3], "and calls that are not made")
        wire = self.open()
        self.assertIsNone(notes("a_number", n="x"), "another session")

    def test_another_name_for_the_same_file_is_no_other_count(self):
        self.configure('[policy]\nrate_limit_per_minute = 3\n[tool.a]\nrate_limit_per_hour = 1\n')
        (self.folder / "other").symlink_to(self.tools)
        (self.folder / "link.toml").symlink_to(self.config)
        (self.folder / "below").mkdir()

        def call_one(tool, tools, config="hostler.toml", folder="."):
            return run("--config", config, "--tools", tools, "call", tool, "--standalone", env=self.env, cwd=self.folder / folder).returncode

        self.assertEqual([call_one("a.number", tools) for tools in ("tools", "other", "./tools")], [0, 6, 6])
        self.assertEqual(call_one("a.number", "../tools", "../hostler.toml", "below"), 6)
        self.assertEqual([call_one("b.number", "tools", config) for config in ("hostler.toml", "link.toml", "link.toml")], [0, 0, 6])

    def test_a_persons_own_rate_counts_in_all_projects_together(self):
        own = self.folder / "config/hostler/hostler.toml"
        own.parent.mkdir(parents=True)
        own.write_text("[policy]\nrate_limit_per_hour = 2\n")
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        codes = []
        for name in ("one", "two", "three"):
            (self.folder / name).mkdir()
            (self.folder / name / "hostler.toml").write_text("" if name == "one" else "[policy]\nrate_limit_per_minute = 100\n")
            done = run("--tools", str(self.tools), "call", "a.number", "--standalone", env=self.env, cwd=self.folder / name)
            codes.append(done.returncode)
        self.assertEqual(codes, [0, 0, 6])

    def test_an_edit_is_in_force_and_forgets_no_call(self):
        self.configure("[tool.a]\nrate_limit_per_hour = 2\n")
        wire = self.open()
        self.assertEqual(self.codes(wire, "a_number", "a_number", "a_number"), [None, None, "RATE_LIMITED"])
        self.configure("[tool.a]\nrate_limit_per_hour = 200\n")
        eventually(lambda: self.code(wire, "a_number") is None, "the higher limit is in force")
        self.configure("[tool.a]\nrate_limit_per_hour = 3\n")
        eventually(lambda: self.code(wire, "a_number") == "RATE_LIMITED", "the lower limit is in force")

    def test_a_header_cannot_lift_what_the_operator_sets(self):
        write_tool(self.tools, "c", TOOL, header=HEADER.format(1000))
        write_tool(self.tools, "d", TOOL, header=HEADER.format(1))
        self.configure("[tool.c]\nrate_limit_per_hour = 1\n")
        wire = self.open()
        self.assertEqual(self.codes(wire, "c_number", "c_number"), [None, "RATE_LIMITED"])
        self.assertEqual(self.codes(wire, "d_number", "d_number"), [None, "RATE_LIMITED"], "it may restrict itself")


if __name__ == "__main__":
    unittest.main()
