"""`hostler mode`: a mode that a person sets is in force at once, outlives hostler, ends by itself, and no tool sets it."""

import json
import os
import subprocess
import unittest

from harness import config_file, environment, eventually, run, scratch, write_tool
from test_control import Lines
from wire import Wire, call, request

CHANGED = "notifications/tools/list_changed"
TOOL = "def look() -> str:\n    return 'seen'\n\ndef change() -> str:\n    return 'done'\n"
RULES = '[tool."a.change"]\nallowed_modes = ["NORMAL", "recovery"]\n'
SETS = '''
import os, subprocess
def set_it(hostler: str, config: str) -> list:
    """Sets the mode."""
    command = [hostler, "--config", config, "mode", "NORMAL"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HOSTLER")}
    done = [subprocess.run(command, capture_output=True, text=True, env=env) for env in (None, plain)]
    asked = '{"jsonrpc": "2.0", "id": 1, "method": "mode.set", "params": {"mode": "normal"}}\\n'
    serve = [hostler, "--config", config, "serve", "--rpc"]
    served = [subprocess.run(serve, input=asked, capture_output=True, text=True, env=env) for env in (None, plain)]
    return [[one.returncode, one.stderr] for one in done] + [[2 * ("may not set the mode" in one.stdout), one.stdout] for one in served]
'''


class Modes(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "a", TOOL)
        self.config = config_file(self.folder, RULES)
        self.env = environment(XDG_STATE_HOME=str(self.folder / "state"))
        self.number = 0

    def hostler(self, *words, code=0, **options):
        options = {"env": self.env, "cwd": self.folder, **options}
        done = run("--config", str(self.config), "--tools", str(self.tools), *words, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def mode(self, *words):
        return json.loads(self.hostler("mode", *words, "--json").stdout)

    def open(self):
        wire = Wire(self.tools, cwd=self.folder, arguments=("--config", str(self.config)), env=self.env)
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def names(self, wire):
        self.number += 1
        wire.send(request(self.number, "tools/list"))
        return [tool["name"] for tool in wire.answer(self.number)["result"]["tools"]]

    def outcome(self, wire, tool):
        self.number += 1
        wire.send(call(self.number, tool))
        result = wire.answer(self.number)["result"]
        return result["_meta"]["hostler/outcome"]["error"]["message"] if result.get("isError") else "allowed"

    def test_a_mode_is_in_force_at_once_and_clients_hear_of_it(self):
        wire = self.open()
        self.assertEqual((self.names(wire), self.outcome(wire, "a_change")), (["a_change", "a_look"], "allowed"))
        self.mode("Lockdown", "--reason", "a key has leaked")
        wire.until(CHANGED)
        self.assertEqual(self.names(wire), ["a_look"])
        self.assertIn("Tool not allowed in LOCKDOWN mode", self.outcome(wire, "a_change"))
        self.assertEqual(self.outcome(wire, "a_look"), "allowed")
        self.mode("RECOVERY")
        wire.until(CHANGED)
        self.assertEqual((self.names(wire), self.outcome(wire, "a_change")), (["a_change", "a_look"], "allowed"))

    def test_it_outlives_hostler_and_counts_for_its_project_alone(self):
        self.assertEqual(self.mode()["mode"], "normal")
        set_to = self.mode("lockdown", "--reason", "why")
        self.assertEqual((set_to["mode"], set_to["origin"], set_to["reason"]), ("lockdown", "`hostler mode`", "why"))
        self.assertEqual(set_to["otherwise"], {"mode": "normal", "origin": "default"})
        self.assertEqual(self.names(self.open()), ["a_look"])
        self.assertEqual(self.hostler("call", "a.change", code=4).stdout, "")
        shown = json.loads(self.hostler("policy", "--json").stdout)
        self.assertEqual(shown["mode"], {"value": "lockdown", "origin": "`hostler mode`"})
        self.assertEqual(json.loads(run("mode", "--json", env=self.env, cwd=scratch(self)).stdout)["mode"], "normal")
        below = self.folder / "below"
        below.mkdir()
        (self.folder / "link.toml").symlink_to(self.config)
        linked = run("--config", "../link.toml", "mode", "--json", env=self.env, cwd=below)
        self.assertEqual(json.loads(linked.stdout)["mode"], "lockdown", "by whatever name the file goes")
        self.assertEqual(self.mode("--clear")["mode"], "normal")
        self.assertEqual(self.names(self.open()), ["a_change", "a_look"])

    def test_an_own_mode_has_the_rules_of_the_one_it_is_like(self):
        config_file(self.folder, RULES + '[tool."a.look"]\nforbidden_in_modes = ["freeze"]\n[policy.modes]\nfreeze = "lockdown"\nquiet = "normal"\n')
        wire, control = self.open(), self.rpc()
        found = self.mode("Freeze", "--reason", "quarter end")
        self.assertEqual((found["mode"], found["like"], found["modes"][-2:]), ("freeze", "lockdown", ["freeze", "quiet"]))
        wire.until(CHANGED)
        self.assertEqual(self.names(wire), [], "one is not for LOCKDOWN, the other one not for FREEZE")
        self.assertIn("Tool not allowed in FREEZE mode", self.outcome(wire, "a_look"))
        self.assertEqual(self.hostler("list", "--mode", "freeze").stdout, "")
        self.assertEqual([row["name"] for row in json.loads(self.hostler("list", "--mode", "Quiet", "--json").stdout)], ["a.change", "a.look"])
        self.assertIn("no mode `quit`", self.hostler("list", "--mode", "quit", code=2).stderr)
        self.assertEqual(control.ask("tools.list", {"mode": "quit"}).data["code"], "INVALID_PARAMS")
        self.assertIn("did you mean", self.hostler("mode", "frieze", code=2).stderr)
        self.assertIn("denied in FREEZE mode", self.hostler("policy", "explain", "a.look").stdout)
        self.assertEqual(control.value("mode.set", {"mode": "QUIET"})["like"], "normal")
        wire.until(CHANGED)
        self.assertEqual(self.names(wire), ["a_change", "a_look"])

    def test_an_own_mode_that_is_gone_is_not_forgotten(self):
        config_file(self.folder, RULES + '[policy.modes]\nfreeze = "lockdown"\n')
        self.mode("freeze")
        wire = self.open()
        self.assertEqual(self.names(wire), ["a_look"])
        config_file(self.folder, RULES)
        self.assertIn("hostler mode --clear", self.hostler("list", code=2).stderr)
        self.assertIn("FREEZE", self.outcome(wire, "a_change"), "the last rules stay")
        self.mode("--clear")
        wire.until(CHANGED)
        self.assertEqual(self.outcome(wire, "a_change"), "allowed")

    def test_a_mode_counts_while_the_files_cannot_be_used(self):
        wire, control = self.open(), self.rpc()
        control.value("mode.get")
        self.assertEqual(self.outcome(wire, "a_change"), "allowed")
        self.config.write_text("[policy\n")
        self.hostler("mode", "lockdown", code=2)
        wire.until(CHANGED)
        self.assertIn("LOCKDOWN", self.outcome(wire, "a_change"))
        control.ask("mode.set", {"mode": "recovery"})
        wire.until(CHANGED)
        self.assertEqual(self.outcome(wire, "a_change"), "allowed", "programs set one, too")
        control.ask("mode.set", {"mode": "lockdown"})
        wire.until(CHANGED)
        config_file(self.folder, RULES)
        eventually(lambda: "LOCKDOWN" in self.outcome(wire, "a_change"), "it stays")
        self.mode("--clear")
        wire.until(CHANGED)
        self.assertEqual(self.outcome(wire, "a_change"), "allowed")

    def test_it_ends_when_its_time_is_over(self):
        wire = self.open()
        self.mode("degraded", "--for", "5s")
        wire.until(CHANGED)
        self.assertEqual(self.names(wire), ["a_look"])
        wire.until(CHANGED)
        self.assertEqual((self.names(wire), self.mode()["mode"]), (["a_change", "a_look"], "normal"))

    def test_a_mode_that_cannot_be_read_is_not_forgotten(self):
        self.mode("lockdown")
        wire = self.open()
        file, = (self.folder / "state/hostler/modes").iterdir()
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
        file.write_text("{")
        wire.send(call(77, "a_change"))
        self.assertTrue(wire.answer(77)["result"]["isError"], "the last one stays")
        self.assertIn("hostler mode --clear", self.hostler("list", code=2).stderr)
        self.assertEqual(self.mode("--clear")["mode"], "normal")
        eventually(lambda: self.outcome(wire, "a_change") == "allowed", "it is cleared")

    def test_no_tool_sets_it(self):
        write_tool(self.tools, "b", SETS)
        self.mode("lockdown")
        wire = self.open()
        wire.send(call(5, "b_set_it", hostler=os.environ["HOSTLER_BIN"], config=str(self.config)))
        for status, said in wire.answer(5)["result"]["structuredContent"]["result"]:
            self.assertEqual(status, 2, said)
        self.assertEqual(self.mode()["mode"], "lockdown")

    def test_programs_set_it_and_hear_of_it(self):
        wire, control = self.open(), self.rpc()
        heard = control.value("events.subscribe", {"kinds": ["mode_changed"]})
        found = control.value("mode.get")
        self.assertEqual((found["mode"], found["counts_for"]), ("normal", str(self.config.resolve())))
        found = control.value("mode.set", {"mode": "lockdown", "seconds": 3600, "reason": "a key has leaked"})
        self.assertEqual((found["mode"], found["reason"], found["otherwise"]["mode"]), ("lockdown", "a key has leaked", "normal"))
        self.assertAlmostEqual(found["until_ms"] - found["since_ms"], 3_600_000)
        wire.until(CHANGED)
        self.assertEqual((self.names(wire), self.mode()["reason"]), (["a_look"], "a key has leaked"))
        event = self.event(control)
        self.assertEqual((event["mode"], event["before"], event["reason"]), ("lockdown", "normal", "a key has leaked"))
        self.assertEqual(control.value("mode.get")["mode"], "lockdown")
        self.assertEqual(control.value("mode.clear")["mode"], "normal")
        self.assertEqual(self.event(control)["before"], "lockdown")
        wire.until(CHANGED)
        self.assertEqual(self.outcome(wire, "a_change"), "allowed")
        self.assertTrue(heard)
        for params in ({"mode": "locked"}, {}, {"mode": "normal", "minutes": 1}, {"mode": "normal", "seconds": -1}):
            self.assertEqual(control.ask("mode.set", params).data["code"], "INVALID_PARAMS", params)

    def test_scarce_memory_degrades_and_that_ends_by_itself(self):
        automatic = '[policy.automatic]\nafter = "1s"\ndegraded = {{ memory = "{}" }}\n'.format
        wire = self.open()
        self.assertEqual(self.names(wire), ["a_change", "a_look"])
        config_file(self.folder, RULES + automatic("1%"))
        wire.until(CHANGED)
        self.assertEqual(self.names(wire), ["a_look"])
        found = self.mode()
        self.assertEqual((found["mode"], found["origin"]), ("degraded", "`[policy.automatic]`"))
        self.assertIn("of the memory is in use", found["reason"])
        config_file(self.folder, RULES + automatic("100%"))
        wire.until(CHANGED)
        self.assertEqual((self.names(wire), self.mode()["mode"]), (["a_change", "a_look"], "normal"))

    def test_only_a_person_ends_an_alert(self):
        rules = '[tool."a.change"]\nallowed_modes = ["recovery"]\n[tool."a.look"]\nforbidden_in_modes = ["alert"]\n'
        config_file(self.folder, rules + '[policy.automatic]\nafter = "200ms"\nalert = { denied = 3 }\n')
        wire = self.open()
        self.assertEqual(self.outcome(wire, "a_look"), "allowed")
        eventually(lambda: self.outcome(wire, "a_change") != "allowed" and self.mode()["mode"] == "alert", "it is reached")
        self.assertRegex(self.mode()["reason"], "[0-9]+ calls were denied in 10 minutes")
        eventually(lambda: "ALERT mode" in self.outcome(wire, "a_look"), "it is in force")
        wire.__exit__()
        again = self.open()
        self.assertIn("ALERT mode", self.outcome(again, "a_look"), "over a restart")
        self.assertEqual(self.mode("--clear")["mode"], "normal")
        eventually(lambda: self.outcome(again, "a_look") == "allowed", "a person has ended it")

    def test_thresholds_without_a_meaning_are_refused(self):
        for text, words in (("degraded = {}\nrecovery = {}", "unknown key `recovery`"), ('degraded = { disk = "0%" }', "share"),
                            ("degraded = { disk = 95 }", "share"), ('alert = { denied = 0 }', "positive"), ('degraded = { dsk = "9%" }', "did you mean"),
                            ('after = "0s"', "`after`")):
            config_file(self.folder, f"[policy.automatic]\n{text}\n")
            self.assertIn(words, self.hostler("list", code=2).stderr, text)

    def rpc(self):
        process = subprocess.Popen(
            [os.environ["HOSTLER_BIN"], "--config", self.config, "--tools", self.tools, "serve", "--rpc"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.folder, env=self.env, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 20)
        self.addCleanup(process.stdin.close)
        return Lines(process.stdout, process.stdin)

    def event(self, control):
        """The next event that the subscription brings."""
        while not control.others:
            message = control.next()
            control.others.extend([message] if "method" in message else [])
        event = control.others.pop(0)["params"]["result"]
        return event

    def test_what_is_no_mode_or_no_time_is_refused(self):
        for words in (["locked"], ["lockdown", "--for", "0s"], ["--for", "1h"], ["--clear", "normal"]):
            self.hostler("mode", *words, code=2)
        self.assertFalse((self.folder / "state/hostler/modes").exists())


if __name__ == "__main__":
    unittest.main()
