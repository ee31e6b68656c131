"""`hostler check`: its findings, its JSON, and that it runs nothing."""

import json
import unittest

from harness import EXAMPLES, ROOT, config_file, environment, run, scratch, write_tool

PLANTED = ROOT / "tests" / "check"


class Check(unittest.TestCase):
    def test_a_folder_of_planted_mistakes(self):
        done = run("check", PLANTED / "tools", "--json")
        self.assertEqual(done.returncode, 1)
        found = json.loads(done.stdout)
        named = {finding["file"].rpartition("/")[2] for finding in found}
        files = {path.name for path in (PLANTED / "tools").glob("*.py")}
        self.assertEqual(files - named, {"nothing_wrong.py", "switched_off.py"})
        for finding in found:
            self.assertTrue(finding["message"] and finding["fix"], finding)
            self.assertIn(finding["level"], ("error", "warning"))

    def test_a_finding_has_its_place(self):
        done = run("check", PLANTED / "tools" / "shared_default.py", "--json")
        first = json.loads(done.stdout)[0]
        place = [first[key] for key in ("rule", "line", "column", "end_line", "end_column")]
        self.assertEqual(place, ["shared-default", 5, 29, 5, 31])
        text = run("check", PLANTED / "tools" / "shared_default.py")
        self.assertIn("shared_default.py:5:29", text.stdout)
        self.assertIn("= help: ", text.stdout)
        self.assertIn("0 errors and 1 warning in 1 of 1 file", text.stderr)

    def test_the_configuration_and_its_folders_when_nothing_is_named(self):
        done = run("check", "--config", PLANTED / "hostler.toml", cwd=PLANTED)
        self.assertEqual(done.returncode, 1)
        for words in ("`no-such-rule`", "did you mean nothing_wrong?", "tools/shared_default.py:5:29"):
            self.assertIn(words, done.stdout)
        folder = scratch(self)
        bad = run("check", config_file(folder, "[limts]\n"))
        self.assertEqual(bad.returncode, 1)
        self.assertIn("did you mean `limits`?", bad.stdout)

    def test_no_findings_mean_no_output_and_status_0(self):
        done = run("check", EXAMPLES)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("no problems", done.stderr)
        self.assertEqual(json.loads(run("check", EXAMPLES, "--json").stdout), [])

    def test_rules_can_be_switched_off_for_all(self):
        folder = scratch(self)
        write_tool(folder / "tools", "bare", "def well(names: list = []) -> int:\n    return len(names)\n")
        config = config_file(folder, 'tools = ["tools"]\n[check]\nignore = ["shared-default"]\n')
        self.assertEqual(run("check", "--config", config).returncode, 0)

    def test_a_tools_folder_that_others_can_write_to(self):
        folder = scratch(self) / "tools"
        write_tool(folder, "well", "def well() -> int:\n    return 1\n")
        folder.chmod(0o777)
        found = json.loads(run("check", folder, "--json").stdout)
        self.assertEqual([(one["rule"], one["file"]) for one in found], [("open-folder", str(folder))])
        rows = json.loads(run("doctor", "--json", "--offline", "--tools", folder).stdout)
        self.assertEqual([row["state"] for row in rows if "can write to" in row["found"]], ["doubtful"])

    def test_a_path_that_does_not_exist(self):
        done = run("check", "nowhere.py")
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not exist", done.stderr)

    def test_every_rule_is_explained(self):
        rules = json.loads(run("check", "--rules", "--json").stdout)
        self.assertGreater(len(rules), 20)
        text = run("check", "--rules").stdout
        for rule in rules:
            self.assertIn(rule["name"], text)

    def test_it_runs_nothing(self):
        folder = scratch(self)
        mark = folder / "ran"
        write_tool(folder / "tools", "loud", f"open({str(mark)!r}, 'w').close()\n")
        empty = scratch(self)
        done = run("check", folder / "tools", env=environment(PATH=empty, XDG_CACHE_HOME=empty))
        self.assertIn("no-tools", done.stdout)
        self.assertFalse(mark.exists())
        self.assertEqual(list(empty.iterdir()), [], "nothing was built or fetched")


if __name__ == "__main__":
    unittest.main()
