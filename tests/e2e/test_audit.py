"""The audit log: what was decided is written down before it takes effect, outlives kills, and every change of it shows."""

import json
import os
import unittest

import shared_mode
from harness import config_file, environment, eventually, run, scratch, write_tool
from wire import HELLO, Wire, call, line, request

TOOL = '''
def read(path: str) -> str:
    return "read"

def write(n: int = 1) -> int:
    return n
'''
RULES = '''[tool."a.read"]
path_arguments = ["path"]
forbidden_paths = ["/secret/**"]
[tool."a.write"]
requires_approval = true
'''
CODE = '''
import os
def spoil(folder: str) -> list:
    said = []
    for name in os.listdir(folder):
        try:
            open(os.path.join(folder, name), "a").write("x")
            said.append(name)
        except OSError:
            pass
    return said
'''


class Audits(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "a", TOOL)
        self.state = self.folder / "state"
        self.env = environment(XDG_STATE_HOME=str(self.state), XDG_CONFIG_HOME=str(self.folder / "config"))
        self.log = self.state / "hostler/audit"
        self.config = config_file(self.folder, RULES)
        self.number = 0

    def hostler(self, *words, code=0):
        done = run("--config", str(self.config), "--tools", str(self.tools), *words, env=self.env, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def records(self, *words):
        return json.loads(self.hostler("audit", "list", *words, "--json").stdout)

    def decisions(self, *words):
        return [record for record in self.records(*words) if record["kind"] == "decision"]

    def verify(self, *words, code=0):
        return json.loads(self.hostler("audit", "verify", *words, "--json", code=code).stdout)

    def open(self, **env):
        wire = Wire(self.tools, cwd=self.folder, arguments=("--config", str(self.config)), env={**self.env, **env})
        self.addCleanup(wire.__exit__)
        return wire

    def begun(self, **env):
        wire = self.open(**env)
        wire.open()
        return wire

    def result(self, wire, tool, **arguments):
        self.number += 1
        wire.send(call(self.number, tool, **arguments))
        return wire.answer(self.number)["result"]

    def segment(self):
        return sorted(self.log.glob("*.jsonl"))[-1]

    def test_a_denial_is_a_record_with_rule_line_and_call(self):
        wire = self.begun()
        denied = self.result(wire, "a_read", path="/secret/x")
        self.assertFalse(self.result(wire, "a_read", path="/open/x").get("isError"))
        record, = self.decisions()
        outcome = denied["_meta"]["hostler/outcome"]
        self.assertEqual((record["decision"], record["tool"], record["mode"], record["call"]),
                         ("denied", "a.read", "normal", outcome["call_id"]))
        rule, = record["rules"]
        self.assertEqual((rule["rule"], rule["reason"]), ("forbidden_paths", "Path /secret/x is forbidden"))
        self.assertIn(f"{self.config}:", rule["origin"])
        self.assertEqual((record["attempt"], record["config"]), (1, str(self.config)))
        self.assertRegex(record["arguments"], "^[0-9a-f]{64}$")
        self.assertNotIn("/secret/x", self.segment().read_text().replace(rule["reason"], ""), "arguments are digests")
        self.assertEqual(self.decisions("--call", record["call"][:8]), [record])
        self.assertEqual(self.decisions("--tool", "a.write"), [])
        self.assertIn("forbidden_paths", self.hostler("audit").stdout)
        self.assertEqual((os.stat(self.log).st_mode & 0o777, os.stat(self.segment()).st_mode & 0o777), (0o700, 0o600))
        eventually(lambda: self.verify()["unsigned"] == 0, "a checkpoint")

    def test_who_approved_is_written_down(self):
        wire = self.open()
        wire.send(request(0, "initialize", **{**HELLO, "capabilities": {"elicitation": {}}}) + line(method="notifications/initialized"))
        wire.answer(0)
        for number, action in ((1, "accept"), (2, "decline")):
            wire.send(call(number, "a_write", n=number))
            question = wire.until("elicitation/create")
            wire.send(line(id=question["id"], result={"action": action, "content": {}}))
            wire.answer(number)
        refused, approved = self.decisions()
        self.assertEqual((approved["decision"], refused["decision"]), ("approved", "not_approved"))
        self.assertEqual(approved["by"].split()[:2], ["allowed", "once"])
        self.assertIn("denied by", refused["by"])
        self.assertEqual(approved["rules"][0]["rule"], "requires_approval")
        self.assertEqual(self.decisions("--denied"), [refused])
        self.assertEqual(self.verify()["findings"], [])

    def test_all_decisions_are_written_down_where_that_is_asked_for(self):
        config_file(self.folder, RULES + '[audit]\nlog = "all"\n')
        wire = self.begun()
        self.result(wire, "a_read", path="/open/x")
        record, = self.decisions()
        self.assertEqual((record["decision"], record["tool"], record.get("rules")), ("allowed", "a.read", None))
        # What cannot be written down is not done.
        self.log.rename(self.folder / "moved")
        self.log.write_text("in the way")
        refused = self.result(wire, "a_read", path="/open/x")
        self.assertIn("the audit log cannot be written", refused["content"][0]["text"])
        self.log.unlink()
        (self.folder / "moved").rename(self.log)
        self.assertFalse(self.result(wire, "a_read", path="/open/x").get("isError"))

    def test_only_a_person_switches_it_off(self):
        config_file(self.folder, RULES + '[audit]\nlog = "off"\n')
        self.assertIn("audit.log", self.hostler("list", code=2).stderr)
        own = self.folder / "config/hostler/hostler.toml"
        own.parent.mkdir(parents=True)
        own.write_text('[audit]\nlog = "off"\n')
        config_file(self.folder, RULES)
        self.hostler("call", "--standalone", "a.read", "path=/secret/x", code=4)
        self.assertFalse(self.log.exists())
        config_file(self.folder, RULES + '[audit]\nlog = "denied"\n')
        self.hostler("call", "--standalone", "a.read", "path=/secret/x", code=4)
        self.assertEqual(len(self.decisions()), 1, "a project may ask for more")

    def test_modes_are_written_down(self):
        self.hostler("mode", "lockdown", "--reason", "a key has leaked", "--for", "1h")
        self.hostler("mode", "--clear")
        self.hostler("mode", "--clear")
        cleared, was_set, *_ = [record for record in self.records() if record["kind"] == "mode"]
        self.assertEqual((was_set["mode"], was_set["reason"], was_set["by"]), ("lockdown", "a key has leaked", "hostler mode"))
        self.assertEqual((was_set["counts_for"], cleared.get("mode")), (str(self.config), None))
        self.assertEqual(self.verify()["unsigned"], 0)

    def test_a_change_shows_and_so_does_a_log_that_was_replaced(self):
        for number in range(3):
            self.hostler("call", "--standalone", "a.read", f"path=/secret/{number}", code=4)
        kept = self.folder / "kept.txt"
        kept.write_text(self.hostler("audit", "checkpoint").stdout)
        self.assertEqual(self.verify("--against", str(kept))["findings"], [])
        text = self.segment().read_text()
        self.segment().write_text(text.replace("/secret/1", "/public/1", 1))
        finding, *_ = self.verify(code=1)["findings"]
        self.assertEqual((finding["file"], finding["what"]), (str(self.segment()), "the record before it was changed"))
        spoilt = self.hostler("audit", "checkpoint", code=1)
        self.assertIn("was changed", spoilt.stderr)
        self.assertEqual(set(json.loads(spoilt.stdout)), {"n", "at_ms", "hash"}, "nothing else gets among checkpoints")
        self.segment().write_text(text)
        self.verify()
        self.log.rename(self.folder / "before")
        self.hostler("call", "--standalone", "a.read", "path=/secret/0", code=4)
        self.verify()
        self.assertEqual(len(self.verify("--against", str(kept), code=1)["findings"]), 1)
        kept.write_text("nothing\n")
        self.assertIn("has no checkpoint", self.hostler("audit", "verify", "--against", str(kept), code=2).stderr)

    @unittest.skipIf(shared_mode.IS_ON, "it is the process of the client that dies here")
    def test_no_kill_leaves_a_log_that_does_not_verify(self):
        for edge in ("audit.before-head", "audit.before-head", "audit.before-key"):  # the first record of all, and another
            with self.subTest(edge):
                wire = self.begun(HOSTLER_DIE_AT=edge)
                wire.send(call(50, "a_read", path="/secret/x"))
                eventually(lambda: not wire.process.poll() is None, "it dies")
                self.assertEqual(self.verify()["findings"], [])
        self.hostler("call", "--standalone", "a.read", "path=/secret/y", code=4)
        self.hostler("audit", "checkpoint")
        found = self.verify()
        self.assertEqual((found["findings"], found["unsigned"]), ([], 0))
        # Its denial was written down before it died.
        self.assertEqual(len(self.decisions("--denied")), 3)

    def test_a_walled_tool_cannot_write_to_it(self):
        write_tool(self.tools, "b", CODE)
        config_file(self.folder, RULES + '[tool.b]\nsandbox = "reader"\n')
        wire = self.begun()
        self.result(wire, "a_read", path="/secret/x")
        spoilt = self.result(wire, "b_spoil", folder=str(self.log))
        self.assertEqual(spoilt["structuredContent"]["result"], [])
        self.assertEqual(self.verify()["findings"], [])
        # One without a sandbox can, and that shows.
        write_tool(self.tools, "c", CODE)
        eventually(lambda: not self.result(wire, "c_spoil", folder=str(self.log)).get("isError"), "it is served")
        self.assertNotEqual(self.verify(code=1)["findings"], [])

    def test_what_a_client_sends_is_kept_short_and_without_secrets(self):
        header = '# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# [tool.hostler]\n# secrets = ["API_KEY"]\n# ///\n'
        write_tool(self.tools, "a", TOOL, header)
        wire = self.begun(API_KEY="open-sesame-4711")
        self.assertFalse(self.result(wire, "a_read", path="/open/x").get("isError"))
        self.result(wire, "a_read", path="/secret/open-sesame-4711")
        self.result(wire, "a_read", path="/secret/" + "x" * 2_000_000)
        long, short = self.decisions()
        self.assertIn("[secret API_KEY]", short["rules"][0]["reason"])
        self.assertNotIn("open-sesame", self.segment().read_text())
        self.assertLess(len(json.dumps(long)), 5000)
        self.assertEqual(self.verify()["findings"], [])

    def test_a_rule_that_overrules_an_approval_is_what_is_written_down(self):
        wire = self.open()
        wire.send(request(0, "initialize", **{**HELLO, "capabilities": {"elicitation": {}}}) + line(method="notifications/initialized"))
        wire.answer(0)
        wire.send(call(1, "a_write"))
        question = wire.until("elicitation/create")
        config_file(self.folder, RULES + 'forbidden_in_modes = ["lockdown"]\n[policy]\nmode = "lockdown"\n')
        wire.until("notifications/tools/list_changed")
        wire.send(line(id=question["id"], result={"action": "accept", "content": {}}))
        self.assertIn("LOCKDOWN", wire.answer(1)["result"]["content"][0]["text"])
        record, = self.decisions()
        self.assertEqual((record["decision"], record["mode"], record["rules"][0]["rule"]), ("denied", "lockdown", "forbidden_in_modes"))
        self.assertIn("allowed once", record["by"])

    @unittest.skipIf(shared_mode.IS_ON, "a shared hostler does not end with its client")
    def test_the_last_record_is_signed_when_hostler_ends(self):
        wire = self.begun()
        for number in range(3):
            self.result(wire, "a_read", path=f"/secret/{number}")
        wire.input.close()
        wire.process.wait(20)
        self.assertEqual(self.verify()["unsigned"], 0)

    def test_a_model_that_is_denied_again_and_again_reads_so(self):
        wire = self.begun()
        notes = [self.result(wire, "a_read", path="/secret/x") for _ in range(3)]
        self.assertEqual([len(answer["content"]) for answer in notes], [1, 1, 2])
        self.assertRegex(notes[2]["content"][1]["text"], "denial 3")
        self.assertEqual(notes[2]["_meta"]["hostler/outcome"]["metadata"]["repeated"], 3)


if __name__ == "__main__":
    unittest.main()
