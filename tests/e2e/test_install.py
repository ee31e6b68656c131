"""`hostler install`, `remove` and `new`."""

import hashlib
import json
import os
import pty
import select
import unittest
from pathlib import Path

from harness import HOSTLER, environment, run, scratch, write_tool
from test_executables import SCHEMA, program, script
from wire import Wire, call

ONE = 'def one(text: str) -> str:\n    """Say it back."""\n    return text\n'
HEADER = """# /// script
# requires-python = ">=3.9"
# dependencies = ["httpx>=0.27", "attrs"]
#
# [tool.hostler]
# secrets = ["BRAVE_API_KEY"]
# effects = "pure"
# risk_level = "high"
# category = "network"
# requires_approval = true
# requires_sandbox = true
# ///
"""


class Place(unittest.TestCase):
    """A user with a home folder and a working folder."""

    def setUp(self):
        self.folder = scratch(self)
        self.work, self.data = self.folder / "work", self.folder / "data"
        self.work.mkdir()
        self.own = self.data / "hostler" / "tools"
        self.env = environment(XDG_DATA_HOME=self.data)

    def run_(self, *words, **more):
        return run(*words, env=self.env, cwd=self.work, **more)

    def install(self, *words):
        return self.run_("install", *words)

    def installed(self, *words):
        done = self.install(*words, "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        return Path(done.stdout.strip())

    def looked(self, *words, code=0):
        done = self.install(*words, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout), done.stderr

    def refused(self, words, *sentences, code=2):
        before = self.files()
        done = self.install(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        for sentence in sentences:
            self.assertIn(sentence, done.stderr)
        self.assertEqual(self.files(), before, "nothing was touched")

    def files(self, below=None):
        """Every file below the own folder, also hidden ones."""
        below = below or self.data
        return sorted(str(path.relative_to(below)) for path in below.rglob("*")) if below.exists() else []

    def names(self, *more):
        return {row["name"]: row for row in json.loads(self.run_("list", "--json", *more).stdout)}

    def at_a_terminal(self, answer, *words, before=lambda: None, then=b"\r"):
        """Runs it at a terminal and types an answer when it asks, after calling `before`, and `then` where it asks for a sandbox."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(HOSTLER, [HOSTLER, *map(str, words)], self.env)
        shown, typed, chosen = b"", False, False
        try:
            while select.select([terminal], [], [], 60)[0]:
                try:
                    piece = os.read(terminal, 1 << 16)
                except OSError:  # it has ended
                    break
                if not piece:
                    break
                shown += piece
                if b"[y/N]" in shown and not typed:
                    typed = True
                    before()
                    os.write(terminal, answer)
                if b"Sandbox (" in shown and not chosen:
                    chosen = True
                    os.write(terminal, then)
        finally:
            os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


class Sandboxes(Place):
    def setUp(self):
        super().setUp()
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        self.config = self.folder / "config/hostler/hostler.toml"
        write_tool(self.work, "brave", ONE, HEADER)

    def test_the_one_that_fits_is_proposed_and_kept(self):
        self.config.parent.mkdir(parents=True)
        self.config.write_text("# mine\n[tool.other]\ntimeout = '1s'\n")
        status, shown = self.at_a_terminal(b"y\r", "install", "brave.py")
        self.assertEqual(status, 0, shown)
        self.assertIn("network would fit: brave.one is in the category network", shown)
        self.assertIn("[network]", shown)
        self.assertEqual(self.config.read_text(), "# mine\n[tool.other]\ntimeout = '1s'\n\n[tool.brave]\nsandbox = \"network\"\n")
        self.assertIn("network", self.run_("show", "brave.one").stdout)
        status, shown = self.at_a_terminal(b"y\r", "install", "brave.py", "--force", "--to", str(self.folder / "elsewhere"))
        self.assertIn(f"as set by {self.config}:6", shown)
        self.assertNotIn("not sandboxed", shown)
        self.assertNotIn("Sandbox (", shown)

    def test_another_one_can_be_chosen(self):
        status, shown = self.at_a_terminal(b"y\r", "install", "brave.py", then=b"Pure\r")
        self.assertEqual((status, self.config.read_text()), (0, '[tool.brave]\nsandbox = "pure"\n'), shown)

    def test_a_word_that_is_none_installs_nothing(self):
        status, shown = self.at_a_terminal(b"y\r", "install", "brave.py", then=b"nett\r")
        self.assertEqual((status, self.files(), self.config.exists()), (2, [], False), shown)

    def test_a_flag_chooses_and_a_yes_alone_does_not(self):
        self.installed("brave.py")
        self.assertFalse(self.config.exists())
        done = self.install("brave.py", "--yes", "--force", "--to", "there", "--sandbox", "reader")
        self.assertEqual((done.returncode, self.config.read_text()), (0, '[tool.brave]\nsandbox = "reader"\n'), done.stderr)
        self.assertEqual(self.install("brave.py", "--yes", "--sandbox", "some").returncode, 2)

    def test_a_file_that_cannot_be_changed_installs_nothing(self):
        self.config.parent.mkdir(parents=True)
        self.config.write_text("tool = { brave = 1 }\n")
        self.refused(("brave.py", "--yes", "--sandbox", "pure"))

    def test_where_nothing_follows_from_what_it_declares_a_way_is_named(self):
        write_tool(self.work, "plain", ONE.replace('effects = "pure"', ""))
        done = self.install("plain.py", "--yes")
        self.assertIn("hostler sandbox learn plain.one", done.stderr)


class Shown(Place):
    def test_a_python_file_is_shown_before_anything_is_installed(self):
        path = write_tool(self.work, "brave", '"""Search the web."""\n' + ONE, HEADER)
        done = self.install("brave.py")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        for words in ("a Python tool file", "Search the web.", "brave.one (pure): Say it back.", "Python >=3.9, httpx>=0.27, attrs",
                      "BRAVE_API_KEY", "risk_level high", "category network", "requires_approval true", "requires_sandbox true",
                      "tools are not sandboxed", f"brave.py, {path.stat().st_size} bytes, sha256 {digest}", f"{self.own}/brave.py, a copy of {path}", "not a terminal; pass --yes"):
            self.assertIn(words, done.stderr)
        self.assertNotIn("call other tools", done.stderr)
        self.assertEqual(self.files(), [], "not even a folder was left")

    def test_the_preview_as_json(self):
        path = write_tool(self.work, "brave", ONE, HEADER)
        said, _ = self.looked("brave.py", code=2)
        self.assertEqual((said["installed"], said["kind"], said["secrets"], said["requires_python"], said["dependencies"], said["uses_hostler"]),
                         (False, "python", ["BRAVE_API_KEY"], ">=3.9", ["httpx>=0.27", "attrs"], False))
        self.assertIn("--yes", said["reason"])
        self.assertEqual(said["sha256"], hashlib.sha256(path.read_bytes()).hexdigest())
        tool, = said["tools"]
        self.assertEqual((tool["name"], tool["effects"], tool["risk_level"]), ("brave.one", "pure", "high"))
        said, _ = self.looked("brave.py", "--yes")
        self.assertEqual((said["installed"], said["reason"], said["path"]), (True, None, str(self.own / "brave.py")))

    def test_a_file_without_a_header_may_use_hostler(self):
        write_tool(self.work, "inner", ONE, "")
        done = self.install("inner.py")
        self.assertIn("internal: standard library only", done.stderr)
        self.assertIn("call other tools", done.stderr)
        self.assertTrue(self.looked("inner.py", code=2)[0]["uses_hostler"])

    def test_an_executable_is_asked_once_and_that_is_announced(self):
        ran = self.folder / "ran"
        schema = {**SCHEMA, "effects": "idempotent", "risk_level": "low", "version": "1.2"}
        script(self.work, "say-it.sh", f"#!/bin/sh\necho \"$1\" >> {ran}\necho '{json.dumps(schema)}'\n")
        done = self.install("say-it.sh")
        self.assertEqual(ran.read_text(), "--schema\n", "once, and for nothing else")
        for words in (f"running {self.work}/say-it.sh --schema", "an executable", "say_it (idempotent): Says it back.", "risk_level low"):
            self.assertIn(words, done.stderr)
        self.assertEqual(self.files(), [])

    def test_what_check_finds_is_shown(self):
        write_tool(self.work, "loose", "import requests\n\ndef one(x):\n    return x\n")
        done = self.install("loose.py")
        self.assertIn("loose.py:5: nothing provides the module `requests`", done.stderr)
        self.assertIn("error", done.stderr)
        levels = {finding["level"] for finding in self.looked("loose.py", code=2)[0]["findings"]}
        self.assertEqual(levels, {"error"})

    def test_no_control_character_of_a_description_reaches_the_terminal(self):
        script(self.work, "paints", "#!/bin/sh\nprintf '%s' '{\"description\": \"\\u001b[2J\\u202eharmless\\nyes\"}'\n")
        done = self.install("paints")
        self.assertIn("harmless yes", done.stderr)
        self.assertNotIn("\x1b", done.stderr)
        self.assertNotIn("\u202e", done.stderr)


    def test_no_control_character_of_other_fields_reaches_the_terminal(self):
        secret = {"description": "x", "secrets": ["A\x1b[2JB"], "parameters": {}}
        script(self.work, "asks", f"#!/bin/sh\necho '{json.dumps(secret)}'\n")
        write_tool(self.work, "bad", ONE, '# /// script\n# dependencies = ["\\u001b[2Jx"]\n# ///\n')
        odd = self.work / "o\x1b[2Jdd"
        write_tool(odd, "one", ONE)
        program(odd, "say")
        talk = [self.install("asks", "--yes"), self.install("bad.py"), self.install(odd / "say"), self.install(odd / "one.py", "--link", "--yes"),
                self.run_("remove", "one"), self.run_("list", "--tools", "."), self.run_("show", "one.one")]
        self.assertEqual([done.args[1] for done in talk if "\x1b" in done.stdout.replace(str(odd), "") + done.stderr], [])
        self.assertIn("·[2J", talk[0].stderr)

    def test_an_imported_tool_file_is_installed_as_a_helper_alone(self):
        write_tool(self.work, "first", "import second\n" + ONE)
        write_tool(self.work, "second", ONE, HEADER)
        said, stderr = self.looked("first.py", code=2)
        self.assertEqual(([tool["name"] for tool in said["tools"]], said["secrets"], said["dependencies"]), (["first.one"], [], []))
        self.assertIn("first/second.py, ", stderr)
        self.installed("first.py")
        self.assertEqual(set(self.names()), {"first.one"})

    def test_names_that_are_not_text(self):
        odd = os.fsencode(self.work) + b"/d\xff"
        os.mkdir(odd)
        self.work = os.fsdecode(odd)
        write_tool(Path(self.work), "one", ONE)
        write_tool(Path(self.work) / "pack", "pack", ONE)
        (Path(self.work) / "pack" / os.fsdecode(b"\xff.txt")).write_text("x")
        tools = ("--tools", self.work)
        for code, words in ((0, ("install", "one.py", "--yes", "--json")), (0, ("install", "pack", "--yes", "--json")),
                            (0, ("show", "one.one", "--json", *tools)), (0, ("remove", "one", "--from", ".", "--yes", "--json"))):
            with self.subTest(words):
                done = self.run_(*words)
                self.assertEqual(done.returncode, code, done.stderr)
                json.loads(done.stdout)
        self.env["UV_ODD"] = self.work
        self.assertIn(self.run_("doctor", *tools).returncode, (0, 1), "it says how things are")
        self.assertEqual(self.run_("call", os.fsdecode(b"a\xff")).returncode, 2)


class Refused(Place):
    def test_what_is_not_a_tool(self):
        write_tool(self.work, "broken", "def one(:\n")
        write_tool(self.work, "_helper", ONE)
        write_tool(self.work, "test_me", ONE)
        write_tool(self.work, "silent", "x = 1\n")
        script(self.work, "plain", "echo hi\n")
        script(self.work, "lost", "#!/no/such/interpreter\n")
        script(self.work, "unfit", "#!/bin/sh\necho '{}'\n", mode=0o644)
        script(self.work, "notes.md", "#!/bin/sh\necho '{}'\n")
        script(self.work, "8ball", "#!/bin/sh\necho '{}'\n")
        (self.work / "gone").symlink_to("/nowhere/at/all")
        (self.work / "round").symlink_to("round")
        (self.work / "empty").mkdir()
        os.mkfifo(self.work / "pipe")
        os.mkfifo(self.work / "pipe.py")
        for name, words in {
            "broken.py": "broken.py is broken: line 5", "_helper.py": "would never be served", "test_me.py": "would never be served",
            "silent.py": "offers no tool", "plain": "neither a program nor a script", "lost": "names /no/such/interpreter",
            "unfit": "run `chmod +x", "notes.md": "a data file; rename it", "8ball": "not a valid tool name", "gone": "No such file",
            "round": "symbolic links", "empty": "it has no empty/empty.py", "pipe": "not a regular file",
            "pipe.py": "not a regular file", "absent.py": "No such file", "/": "no file name",
        }.items():
            with self.subTest(name):
                self.refused([name, "--yes"], words)

    def test_an_executable_without_a_schema_is_installed_with_a_warning(self):
        script(self.work, "mute", "#!/bin/sh\nexit 3\n")
        done = self.install("mute", "--yes")
        self.assertEqual(done.returncode, 0)
        self.assertIn("calls are not checked: `--schema` ended with exit status 3", done.stderr)

    def test_an_executable_that_hangs_is_given_up(self):
        pid = self.folder / "pid"
        script(self.work, "hangs", f"#!/bin/sh\necho $$ > {pid}\nexec sleep 600\n")
        done = self.install("hangs")
        self.assertIn("did not end within 1s", done.stderr)
        self.assertFalse(Path(f"/proc/{pid.read_text().strip()}").exists(), "nothing of it is left")

    def test_a_folder_that_cannot_be_written_to(self):
        write_tool(self.work, "one", ONE)
        (self.work / "file").write_text("")
        self.refused(["one.py", "--yes", "--to", "file"], "/file: ", "--to DIR")


class Copied(Place):
    def test_a_file_is_installed_into_the_own_folder_and_served(self):
        write_tool(self.work, "say", ONE)
        os.chmod(self.work / "say.py", 0o640)
        done = self.install("say.py", "--yes")
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.own}/say.py\n"), done.stderr)
        self.assertIn("hostler call say.one", done.stderr)
        self.assertNotIn("hostler warm", done.stderr, "there is nothing to build")
        self.assertEqual(oct((self.own / "say.py").stat().st_mode & 0o777), "0o640", "its mode is kept")
        self.assertEqual(oct(self.own.stat().st_mode & 0o777), "0o700")
        self.assertEqual(self.files(self.own), ["say.py"], "and nothing else")
        self.assertEqual(self.names()["say.one"]["origin"], f"{self.own}/say.py")
        (self.work / "say.py").unlink()
        self.assertEqual(self.run_("call", "say.one", "text=hi").stdout, "hi\n")

    def test_an_executable_keeps_its_mode_without_set_user_id(self):
        program(self.work, "say-it")
        os.chmod(self.work / "say-it", 0o4775)
        path = self.installed("say-it")
        self.assertEqual(oct(path.stat().st_mode & 0o7777), "0o755")
        self.assertEqual(json.loads(self.run_("call", "say_it", "text=hi").stdout), {"said": "hi"})

    def test_a_file_with_neighbours_or_a_lock_becomes_a_folder(self):
        write_tool(self.work, "first", "import _common\nimport parts.second\n" + ONE)
        write_tool(self.work, "other", "import _shared\n" + ONE)
        write_tool(self.work, "_common", "import _shared\n", "")
        write_tool(self.work, "_shared", "x = 1\n", "")
        write_tool(self.work, "_stranger", "x = 1\n", "")
        write_tool(self.work / "parts", "second", "y = 1\n", "")
        write_tool(self.work / "parts", "__init__", "", "")
        (self.work / "first.py.lock").write_text("version = 1\n")
        self.assertEqual(self.installed("first.py"), self.own / "first")
        along = ["_common.py", "_shared.py", "first.py", "first.py.lock", "parts", "parts/__init__.py", "parts/second.py"]
        self.assertEqual(self.files(self.own / "first"), along)
        self.assertIn("already installed", self.install("first.py").stderr)
        self.installed("other.py")
        self.assertEqual(set(self.names()), {"first.one", "other.one"})
        removed = self.run_("remove", "first", "--yes")
        self.assertEqual((removed.returncode, removed.stdout), (0, f"{self.own}/first\n"), removed.stderr)
        self.assertEqual(self.files(self.own), ["other", "other/_shared.py", "other/other.py"], "each has its own helpers")

    def test_helpers_of_a_single_file_stay_when_it_is_removed(self):
        write_tool(self.own, "first", "import _common\n" + ONE)
        write_tool(self.own, "_common", "x = 1\n", "")
        (self.own / "first.py.lock").write_text("version = 1\n")
        removed = self.run_("remove", "first", "--yes")
        self.assertEqual((removed.returncode, self.files(self.own)), (0, ["_common.py"]), removed.stderr)
        self.assertIn(f"{self.own}/_common.py, which other tools may use", removed.stderr)

    def test_a_folder_is_installed_whole(self):
        write_tool(self.work / "pack", "pack", "import near\n" + ONE)
        write_tool(self.work / "pack", "near", "x = 1\n", "")
        (self.work / "pack/data.txt").write_text("data")
        (self.work / "pack/.git").mkdir()
        (self.work / "pack/__pycache__").mkdir()
        self.assertEqual(self.installed("pack"), self.own / "pack")
        self.assertEqual(self.files(self.own), ["pack", "pack/data.txt", "pack/near.py", "pack/pack.py"])
        self.assertEqual(set(self.names()), {"pack.one"})
        os.remove(self.work / "pack/data.txt")
        self.refused(["pack", "--yes"], "exists already, a folder", "--force")
        self.installed("pack", "--force")
        self.assertEqual(self.files(self.own), ["pack", "pack/near.py", "pack/pack.py"])
        (self.work / "pack/out").symlink_to("/etc/passwd")
        self.refused(["pack", "--yes", "--force"], "out is a link or not a regular file")
        self.assertEqual(self.run_("remove", "pack", "--yes").returncode, 0)
        self.assertEqual(self.files(self.own), [])

    def test_into_another_folder(self):
        write_tool(self.work, "one", ONE, HEADER)
        done = self.install("one.py", "--yes", "--to", "elsewhere")
        place = self.work / "elsewhere"
        self.assertEqual((done.returncode, done.stdout), (0, f"{place}/one.py\n"), done.stderr)
        self.assertEqual((self.files(place), (place / "one.py").read_text()), (["one.py"], HEADER + ONE))
        usual = self.work / "usual"
        usual.mkdir()
        self.assertEqual(place.stat().st_mode, usual.stat().st_mode, "only one's own folder is for its owner alone")
        self.assertIn("is not one of the configured tools folders", done.stderr)
        self.assertIn(f"hostler call --tools {place} one.one", done.stderr)
        self.assertIn(f"hostler warm --tools {place} one", done.stderr)
        self.assertIn("`hostler secrets set NAME`: BRAVE_API_KEY", done.stderr)
        self.assertEqual(self.files(), [])


class Served(Place):
    def test_a_tool_installed_while_serving_is_served_from_a_new_folder_too(self):
        write_tool(self.work, "say", ONE, "")
        self.assertFalse(self.own.exists())
        with Wire(None, env=self.env, cwd=self.work) as hostler:
            hostler.open()
            self.installed("say.py")
            hostler.until("notifications/tools/list_changed")
            self.assertEqual(hostler.value(1, "say_one", text="hi"), "hi")
            self.assertEqual(self.run_("remove", "say", "--yes").returncode, 0)
            hostler.until("notifications/tools/list_changed")
            hostler.send(call(2, "say_one", text="hi"))
            self.assertIn("error", hostler.answer(2))


class Linked(Place):
    def test_a_link_points_to_the_source(self):
        program(self.work, "say-it")
        path = self.installed("say-it", "--link")
        self.assertEqual(os.readlink(path), str(self.work / "say-it"))
        program(self.work, "say-it", "print(7)\n")
        self.assertEqual(self.run_("call", "say_it", "text=hi").stdout, "7\n", "what is edited there is what is served")
        self.assertIn("already", self.install("say-it", "--link").stderr)
        shown = self.run_("remove", "say_it")
        self.assertIn(f"a link to {self.work}/say-it, which stays", shown.stderr)
        self.run_("remove", "say_it", "--yes")
        self.assertTrue((self.work / "say-it").exists())
        self.assertEqual(self.files(self.own), [])

    def test_neighbours_of_a_link_are_linked_too(self):
        write_tool(self.work, "first", "import _common\n\ndef one() -> int:\n    return _common.x\n", "")
        write_tool(self.work, "_common", "x = 7\n", "")
        self.assertEqual(self.installed("first.py", "--link"), self.own / "first")
        self.assertEqual(os.readlink(self.own / "first/_common.py"), f"{self.work}/_common.py")
        self.assertEqual(self.run_("call", "first.one").stdout, "7\n")
        self.run_("remove", "first", "--yes")
        self.assertEqual((self.files(self.own), self.files(self.work)), ([], ["_common.py", "first.py"]))

    def test_a_linked_folder(self):
        write_tool(self.work / "pack", "pack", ONE)
        path = self.installed("pack", "--link")
        self.assertEqual(os.readlink(path), str(self.work / "pack"))
        self.assertEqual(set(self.names()), {"pack.one"})
        self.run_("remove", "pack.one", "--yes")
        self.assertEqual(self.files(self.work / "pack"), ["pack.py"])

    def test_a_file_is_never_replaced_by_a_link_to_itself(self):
        write_tool(self.own, "one", ONE)
        self.refused([self.own / "one.py", "--link", "--force", "--yes"], "is already in that folder")

    def test_a_source_in_the_tools_folder_is_never_set_aside(self):
        write_tool(self.own, "brave", ONE, HEADER)
        (self.own / "brave.py.lock").write_text("version = 1\n")
        write_tool(self.own, "first", "import _common\n\ndef one() -> int:\n    return _common.x\n", "")
        write_tool(self.own, "_common", "x = 7\n", "")
        write_tool(self.own / "pack", "pack", ONE)
        forced = ["--force", "--yes"]
        for source in ("brave.py", "first.py", "pack/pack.py"):
            for link in ([], ["--link"]):
                with self.subTest(source, link=link):
                    self.refused([self.own / source, *link, *forced], "is already in that folder")
        write_tool(self.work / "far", "far", ONE)
        (self.own / "far").symlink_to(self.work / "far")
        self.refused([self.own / "far", "--link", *forced], "is already in that folder")
        self.refused([self.work / "far", "--to", self.work / "far", "--link", *forced], "is already in that folder")
        self.assertTrue((self.work / "far/far.py").exists())

    def test_a_source_below_a_linked_tools_folder(self):
        real = self.folder / "real"
        write_tool(real / "hostler/tools", "one", ONE)
        write_tool(real / "hostler/tools/pack", "pack", ONE)
        self.data.symlink_to(real)
        for source in ("one.py", "pack"):
            with self.subTest(source):
                self.refused([self.own / source, "--link", "--force", "--yes"], "is already in that folder")
                self.assertFalse((self.own / source).is_symlink())


class Replaced(Place):
    def test_the_lock_of_an_earlier_tool_goes_with_it(self):
        write_tool(self.work, "one", ONE)
        self.own.mkdir(parents=True)
        for earlier in (("one.py", "one.py.lock"), ("one.py.lock",)):
            for name in earlier:
                (self.own / name).write_text(f"# earlier {name}\n")
            done = self.install("one.py", "--yes")
            self.assertEqual(done.returncode, 2)
            self.assertIn("one.py.lock exists already", done.stderr)
            self.installed("one.py", "--force")
            self.assertEqual(self.files(self.own), ["one.py"])
            (self.own / "one.py").unlink()

    def test_an_identical_tool_is_left_and_not_run(self):
        ran = self.folder / "ran"
        script(self.work, "say", f"#!/bin/sh\necho x >> {ran}\necho '{{}}'\n")
        path = self.installed("say")
        before = (ran.read_text(), path.stat().st_ino)
        done = self.install("say")
        self.assertEqual((done.returncode, done.stdout), (0, f"{path}\n"), done.stderr)
        self.assertIn("already installed", done.stderr)
        self.assertEqual((ran.read_text(), path.stat().st_ino), before)

    def test_another_file_is_replaced_only_by_force(self):
        write_tool(self.work, "one", ONE)
        path = self.installed("one.py")
        write_tool(self.work, "one", ONE + "\n# more\n")
        self.refused(["one.py", "--yes"], f"{path} exists already, a file of", "--force")
        self.installed("one.py", "--force")
        self.assertIn("# more", path.read_text())
        self.refused(["one.py", "--yes", "--link"], "exists already")

    def test_a_failed_install_restores_what_it_set_aside(self):
        write_tool(self.own / "say_it", "say_it", "# mine\n" + ONE)
        program(self.work, "say-it")
        created = lambda: (self.own / "say-it").mkdir()
        code, shown = self.at_a_terminal(b"y\n", "install", "say-it", "--force", before=created)
        self.assertEqual(code, 2, shown)
        self.assertIn("was created meanwhile; nothing was changed", shown)
        self.assertEqual(self.files(self.own), ["say-it", "say_it", "say_it/say_it.py"])

    def test_files_that_a_killed_install_set_aside_are_reported(self):
        aside = self.own / ".hostler-2000000000-1" / ".aside"
        aside.mkdir(parents=True)
        (aside / "0").write_text("perhaps the only one")
        write_tool(self.work, "one", ONE)
        done = self.install("one.py", "--yes")
        self.assertEqual((done.returncode, (aside / "0").exists()), (0, True))
        self.assertIn(str(aside), done.stderr)

    def test_nothing_is_written_through_a_link(self):
        elsewhere = scratch(self)
        write_tool(self.work, "one", "from parts.sums import add\n" + ONE)
        write_tool(self.work / "parts", "sums", "def add():\n    return 1\n", "")
        self.own.mkdir(parents=True)
        (self.own / "one").symlink_to(elsewhere)
        self.refused(["one.py", "--yes"], f"{self.own / 'one'} exists already, a link to {elsewhere}")
        self.installed("one.py", "--force")
        self.assertEqual(os.listdir(elsewhere), [])
        self.assertEqual(self.files(self.own / "one"), ["one.py", "parts", "parts/sums.py"])

    def test_two_tools_of_one_name_in_the_folder(self):
        write_tool(self.own, "say_it", ONE)
        program(self.work, "say-it")
        self.refused(["say-it", "--yes"], f"{self.own}/say_it.py is also named `say_it`")
        self.installed("say-it", "--force")
        self.assertEqual(self.files(self.own), ["say-it"])

    def test_a_folder_that_would_be_removed_is_shown_whole(self):
        write_tool(self.own / "say_it", "say_it", ONE)
        (self.own / "say_it" / "notes").write_text("mine")
        program(self.work, "say-it")
        self.refused(["say-it", "--yes"], f"all of {self.own}/say_it would be removed: a folder with 2 files")

    def test_what_changed_since_it_was_shown_is_not_replaced(self):
        write_tool(self.work, "one", ONE)
        write_tool(self.own, "one", "# old\n" + ONE)
        write_tool(self.own / "say_it", "say_it", ONE)
        program(self.work, "say-it")
        for source, path in (("one.py", self.own / "one.py"), ("say-it", self.own / "say_it" / "notes")):
            with self.subTest(source):
                edited = lambda: path.write_text("mine")
                code, shown = self.at_a_terminal(b"y\n", "install", source, "--force", before=edited)
                self.assertEqual(code, 2, shown)
                self.assertIn("changed meanwhile", shown)
                self.assertEqual(path.read_text(), "mine")

    def test_what_it_overrides_and_what_hides_it_is_shown(self):
        config = self.work / "hostler.toml"
        config.write_text('[builtin]\nenable = ["search"]\nroots = ["."]\n')
        program(self.work, "grep")
        self.assertIn("the built-in tool grep", self.install("grep").stderr)
        program(self.work / "tools", "say")
        program(self.work, "say", "print(1)\n")
        done = self.install("say", "--yes")
        self.assertIn(f"{self.work}/tools/say, which is served instead", done.stderr)
        self.assertIn(f"{self.work}/tools/say hides it", done.stderr)
        self.assertIn(f"hostler call --tools {self.own} say", done.stderr)
        self.assertEqual(self.names()["say"]["origin"], f"{self.work}/tools/say")
        program(self.work, "new")
        program(self.own, "new", "print(2)\n")
        done = self.install("new", "--to", "tools")
        self.assertIn(f"in place of  {self.own}/new", done.stderr)

    def test_a_name_that_collides_for_clients(self):
        write_tool(self.own, "a_b", "def c() -> int:\n    return 1\n", "")
        write_tool(self.work, "a", "def b_c() -> int:\n    return 1\n", "")
        write_tool(self.work / "tools", "a_b_c", "def x() -> int:\n    return 1\n", "")
        self.refused(["a.py", "--yes"], "also has a tool `a_b_c`", "pass --force to install it anyway")


class Asked(Place):
    def test_a_terminal_is_asked_for_consent(self):
        write_tool(self.work, "one", ONE)
        code, shown = self.at_a_terminal(b"y\n", "install", "one.py")
        self.assertEqual(code, 0, shown)
        self.assertIn("Install? [y/N]", shown)
        self.assertLess(shown.index("a Python tool file"), shown.index("[y/N]"))
        self.assertTrue((self.own / "one.py").exists())
        code, shown = self.at_a_terminal(b"\n", "remove", "one")
        self.assertEqual((code, (self.own / "one.py").exists()), (130, True), shown)
        code, shown = self.at_a_terminal(b"yes\n", "remove", "one")
        self.assertEqual((code, (self.own / "one.py").exists()), (0, False), shown)

    def test_files_created_while_it_asks_are_not_overwritten(self):
        write_tool(self.work, "one", ONE)
        write_tool(self.work / "pack", "pack", ONE)
        for source, path in (("one.py", self.own / "one.py"), ("pack", self.own / "pack" / "pack.py")):
            with self.subTest(source):
                mine = lambda: write_tool(path.parent, path.stem, "# mine\n" + ONE)
                code, shown = self.at_a_terminal(b"y\n", "install", source, before=mine)
                self.assertEqual(code, 2, shown)
                self.assertIn("was created meanwhile", shown)
                self.assertIn("# mine", path.read_text())
                self.assertEqual([name for name in self.files() if ".hostler-" in name], [])

    def test_no_and_ctrl_c_leave_nothing(self):
        write_tool(self.work, "one", ONE)
        for typed in (b"n\n", b"\n", b"\x03", b"\x04"):
            with self.subTest(typed):
                code, shown = self.at_a_terminal(typed, "install", "one.py")
                self.assertEqual(code, 130, shown)
                self.assertEqual(self.files(), [], shown)


class Removed(Place):
    def test_by_tool_pack_or_file(self):
        for number, name in enumerate(["say.one", "say_one", "say", "say.py"]):
            with self.subTest(name):
                write_tool(self.own, "say", ONE)
                self.assertEqual(self.run_("remove", name).returncode, 2, "it asks")
                self.assertTrue((self.own / "say.py").exists())
                done = self.run_("remove", name, "--yes", "--json")
                said = json.loads(done.stdout)
                self.assertEqual((said["removed"], said["path"], said["tools"]), (True, f"{self.own}/say.py", ["say.one"]))
                self.assertEqual(self.files(self.own), [])

    def test_a_folder_by_the_file_in_it(self):
        for name in ("say", "say.py"):
            write_tool(self.own / "say", "say", ONE)
            done = self.run_("remove", name, "--yes")
            self.assertEqual((done.returncode, done.stdout), (0, f"{self.own}/say\n"), done.stderr)

    def test_by_the_name_of_one_of_several_tools(self):
        program(self.own, "many", "", [{"name": "add-up"}, {"name": "other"}])
        program(self.own, "broken.sh", shebang="#!/no/such")
        done = self.run_("remove", "add_up", "--yes")
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.own}/many\n"), done.stderr)
        self.assertIn("add_up, other", done.stderr)
        self.assertEqual(self.run_("remove", "broken", "--yes").returncode, 0, "what is broken can go too")
        self.assertEqual(self.files(self.own), [])

    def test_tools_in_other_folders_stay(self):
        (self.work / "hostler.toml").write_text('[builtin]\nenable = ["search"]\nroots = ["."]\n')
        write_tool(self.work / "tools", "mine", ONE)
        write_tool(self.own, "near", "import _common\n" + ONE)
        write_tool(self.own, "_common", "", "")
        for name, code, words in (
            ("mine", 2, f"{self.work}/tools/mine.py, not in {self.own}"),
            ("mine.one", 2, "--from DIR"),
            ("grep", 2, '[builtin] disable = ["grep"]'),
            ("_common.py", 3, "there is no _common.py"),
            ("qqqqq", 3, "`hostler list --json` shows"),
            ("../../../work/tools/mine.py", 3, "there is no"),
            ("..", 3, "there is no"), (".", 3, "there is no"), ("", 3, "there is no"),
        ):
            with self.subTest(name):
                done = self.run_("remove", name, "--yes")
                self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
                self.assertIn(words, done.stderr)
        self.assertEqual(self.files(self.own), ["_common.py", "near.py"])
        done = self.run_("remove", "mine", "--yes", "--from", "tools")
        self.assertEqual((done.returncode, self.files(self.work / "tools")), (0, []), done.stderr)


    def test_an_executable_asked_for_its_name_gets_no_secret_of_its_neighbours(self):
        write_tool(self.own, "one", ONE, HEADER)
        heard = self.folder / "heard"
        script(self.own, "prog", f"#!/bin/sh\nprintf %s \"$BRAVE_API_KEY\" > {heard}\necho '{json.dumps(SCHEMA)}'\n")
        other = self.folder / "other"
        self.own.rename(other)
        self.env["BRAVE_API_KEY"] = "s3cret"
        self.assertEqual(self.run_("remove", "nobody", "--from", other).returncode, 3)
        self.assertEqual(heard.read_text(), "")

    def test_the_target_of_a_link_stays(self):
        parts = self.folder / "project" / "parts"
        for name in ("__init__", "second"):
            write_tool(parts, name, "y = 1\n", "")
        write_tool(self.own, "first", "import parts.second\n" + ONE)
        (self.own / "parts").symlink_to(parts)
        done = self.run_("remove", "first", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{self.own}/parts/second.py, which other tools may use", done.stderr)
        self.assertEqual(sorted(path.name for path in parts.iterdir()), ["__init__.py", "second.py"])
        self.assertEqual(self.files(self.own), ["parts"])


class Written(Place):
    def call(self, name):
        done = self.run_("call", name, "name=you", "times=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def works(self, kind, file):
        name = f"good-{kind}"
        done = self.run_("new", name, "--kind", kind)
        self.assertEqual((done.returncode, done.stdout), (0, f"tools/{file}\n"), done.stderr)
        path, tool = self.work / "tools" / file, name.replace("-", "_")
        self.assertTrue(os.access(path, os.X_OK))
        self.assertEqual(self.names()[tool]["status"], "ready")
        self.assertEqual(self.call(tool), {"greeting": "Good morning, you! Good morning, you!"})
        wrong = self.run_("call", tool, "nam=you")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean `name`?", wrong.stderr)
        again = self.run_("new", name, "--kind", kind)
        self.assertEqual(again.returncode, 2)
        self.assertIn("exists already", again.stderr)
        self.assertIn(f"hostler call {tool} name=you", done.stderr)
        self.installed(f"tools/{file}")


class New(Written):
    def test_a_new_tool_goes_into_the_project(self):
        self.own.mkdir(parents=True)
        self.assertEqual(self.run_("new", "first").stdout, "tools/first.py\n")

    def test_an_executable_works_as_written(self):
        self.works("exec", "good-exec")

    def test_a_python_file_works_as_written(self):
        for words in (("first",), ("second", "--kind", "python")):
            done = self.run_("new", *words)
            self.assertEqual(done.stdout, f"tools/{words[0]}.py\n", done.stderr)
            self.assertFalse(os.access(self.work / "tools" / f"{words[0]}.py", os.X_OK), "nobody runs it by itself")
            self.assertIn(f"hostler call {words[0]}.greet name=you\n  hostler dev tools/{words[0]}.py\n", done.stderr)
        self.assertEqual(set(self.names()), {"first.greet", "second.greet"})
        self.assertEqual(self.run_("call", "first.greet", "name=you").stdout, "Good morning, you!\n")

    def test_invalid_names_and_kinds(self):
        for words, sentence in (
            (("a-b",), "such as `a_b`"),
            (("a b", "--kind", "exec"), "cannot be a tool's name"),
            (("_x", "--kind", "node"), "_x.mjs would never be served"),
            (("x", "--kind", "ruby"), "[possible values: python, exec, node]"),
        ):
            with self.subTest(words):
                done = self.run_("new", *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(sentence, done.stderr)


if __name__ == "__main__":
    unittest.main()
