"""hostler as installed: system tools beside it, the user's in their folder, a project's in the project."""

import json
import shutil
import subprocess
import unittest

from harness import HOSTLER, environment, scratch
from test_executables import program


class Installed(unittest.TestCase):
    def machine(self, *binary):
        """A copy of the program, as `make install` or a build would leave it. A link would resolve to the tested one."""
        prefix = scratch(self)
        place = prefix.joinpath(*binary)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HOSTLER, place)
        work = prefix / "work"
        work.mkdir()
        return prefix, place, work

    def ran(self, hostler, *words, cwd, **changes):
        done = subprocess.run([hostler, *words], cwd=cwd, env=environment(**changes), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_tools_installed_with_it_are_found_beside_it(self):
        for binary in (("bin", "hostler"), ("hostler",)):
            with self.subTest(binary):
                prefix, hostler, work = self.machine(*binary)
                tools = prefix / "libexec" / "hostler" / "tools"
                self.ran(hostler, "builtin", "--link", tools, cwd=work)
                (work / "a.txt").write_text("one\n")
                rows = {row["name"]: row for row in json.loads(self.ran(hostler, "list", "--json", cwd=work))}
                self.assertLessEqual({"bash", "file_read", "file_write", "file_edit", "glob", "grep"}, set(rows))
                self.assertEqual([name for name in rows if name.startswith("hostler_")], [], "they would have no hostler to ask")
                self.assertEqual((rows["glob"]["kind"], rows["glob"]["origin"]), ("executable", str(tools / "glob")))
                found = json.loads(self.ran(hostler, "call", "glob", "pattern=*.txt", cwd=work))
                self.assertEqual(found["files"], ["a.txt"])

    def test_a_persons_tool_takes_its_place_and_a_projects_that_ones(self):
        prefix, hostler, work = self.machine("bin", "hostler")
        folders = [prefix / "libexec/hostler/tools", prefix / "data/hostler/tools", work / "tools"]
        for number, folder in enumerate(folders):
            program(folder, "which-one", f"print({number})\n", schema={"description": f"Number {number}."})
            program(folder, f"only-{number}", f"print({number})\n", schema={"description": "x"})
            said = self.ran(hostler, "call", "which_one", cwd=work, XDG_DATA_HOME=prefix / "data")
            self.assertEqual(said, f"{number}\n")
        shown = json.loads(self.ran(hostler, "show", "which_one", "--json", cwd=work, XDG_DATA_HOME=prefix / "data"))
        self.assertEqual((shown["origin"], shown["overrides"]), (str(folders[2] / "which-one"), [str(folder / "which-one") for folder in folders[:2]]))
        rows = json.loads(self.ran(hostler, "list", "--json", cwd=work, XDG_DATA_HOME=prefix / "data"))
        self.assertEqual([row["name"] for row in rows], ["only_0", "only_1", "only_2", "which_one"])


if __name__ == "__main__":
    unittest.main()
