"""hostler's own tools: enabled by the configuration, confined to their roots, in one catalogue with all other kinds."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest

from harness import HOSTLER, MCPError, config_file, connected, environment, eventually_async, gone, run, scratch, write_tool
from test_executables import program, script

ALL = '[builtin]\nenable = ["files", "search", "system", "web", "shell", "host"]\nroots = ["root"]\n'


def place(test, text=ALL):
    """A folder with a root, a folder of tools, and a configuration."""
    folder = scratch(test)
    (folder / "root").mkdir()
    (folder / "tools").mkdir()
    return folder, config_file(folder, text)


class Catalogue(unittest.IsolatedAsyncioTestCase):
    async def test_one_catalogue_of_all_kinds(self):
        folder, config = place(self, '[builtin]\nenable = ["read_file", "search"]\nroots = ["root"]\n')
        (folder / "root/a.txt").write_text("one\ntwo\n")
        write_tool(folder / "tools", "plain", "def one() -> int:\n    return 1\n")
        write_tool(folder / "tools", "inner", "def two() -> int:\n    return 2\n", header="")
        program(folder / "tools", "say-it")
        async with connected(folder / "tools", config=config) as session:
            expected = {"plain_one", "inner_two", "say_it", "read_file", "glob", "grep", "git_status"}
            while {tool.name for tool in (await session.client.list_tools()).tools} != expected:
                await asyncio.sleep(0.01)  # the executable joins when it has said what it is
            listed = {tool.name: tool for tool in (await session.client.list_tools()).tools}
            self.assertTrue(listed["read_file"].annotations.read_only_hint)
            self.assertIn("content", listed["read_file"].output_schema["properties"])
            self.assertEqual(await session.value("plain.one"), 1)
            self.assertEqual(await session.value("inner.two"), 2)
            self.assertEqual(await session.value("say_it", text="hi"), {"said": "hi"})
            read = await session.call("read_file", path="a.txt", limit=1)
            self.assertEqual((read.value["content"], read.value["next_offset"], read.worker), ("one\n", 2, None))
            by_other_name = await session.call("file_read", path="a.txt")
            self.assertEqual((by_other_name.outcome["tool"], by_other_name.value["lines"]), ("read_file", 2))

    async def test_no_tool_is_enabled_unless_it_is_named(self):
        folder, _ = place(self)
        write_tool(folder / "tools", "plain", "def one() -> int:\n    return 1\n")
        config = config_file(folder, "")
        async with connected(folder / "tools", config=config) as session:
            self.assertEqual([tool.name for tool in (await session.client.list_tools()).tools], ["plain_one"])

    def test_mistakes_in_the_configuration_are_reported(self):
        for text, words in (
            ('[builtin]\nenable = ["file"]\n', 'there is no built-in tool "file"; did you mean "files"?'),
            ('[builtin]\nenable = ["grep"]\n', 'add `roots = ["."]`'),
            ('[builtin]\nenable = "grep"\n', '["grep"]'),
            ('[builtin]\nroot = ["."]\n', "did you mean `roots`?"),
            ('[builtin]\nenable = ["file_read"]\n', 'there is no built-in tool "file_read"; did you mean "read_file"?'),
            ('[builtin.fetch_url]\nallow_private = ["10.0.0.0/99"]\n', '"10.0.0.0/99"'),
            ('[builtin.fetch_url]\nallow_private = ["http://x"]\n', '"http://x"'),
            ('[builtin.web_search]\nprovider = "searxng"\n', '[builtin.web_search]'),
            ('[builtin.web_search]\nurl = "searx.local"\n', '"https://searx.local"'),
            ('[builtin.web_search]\nprovider = "bing"\n', '"duckduckgo", "searxng", "brave"'),
        ):
            with self.subTest(text):
                folder, config = place(self, text)
                done = run("list", "--config", config, "--tools", folder / "tools")
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(f"{config}:2: ", done.stderr)
                self.assertIn(words, done.stderr)

    async def test_a_file_that_overrides_a_built_in_tool_is_reported(self):
        folder, config = place(self)
        program(folder / "tools", "grep", schema={"description": "Mine."})
        done = run("show", "grep", "--json", "--config", config, "--tools", folder / "tools")
        shown = json.loads(done.stdout)
        self.assertEqual((shown["kind"], shown["overrides"]), ("executable", ["built-in:grep"]))

    async def test_a_built_in_tool_is_listed_until_the_program_that_overrides_it_was_asked(self):
        folder, config = place(self, '[builtin]\nenable = ["grep"]\nroots = ["root"]\n[executables]\nschema_timeout = "20s"\n')
        asked, answer = folder / "asked", folder / "answer"
        os.mkfifo(answer)
        schema = f"open({str(asked)!r}, 'w').close()\n    print(open({str(answer)!r}).read())\n    sys.exit()"
        async with connected(folder / "tools", config=config) as session:
            self.assertIn("regular expression", (await session.tools())["grep"].description)
            script(folder / "tools", "grep", f"#!{sys.executable}\nimport sys\nif '--schema' in sys.argv:\n    {schema}\nprint(1)\n")
            await eventually_async(asked.exists, "the program is asked")
            self.assertIn("regular expression", (await session.tools())["grep"].description)
            answer.write_text('{"description": "Mine."}')

            async def its_own_words():
                while (await session.tools())["grep"].description != "Mine.":
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(its_own_words(), 10)
            self.assertEqual(await session.value("grep"), 1)

    async def test_tools_of_the_host(self):
        folder, config = place(self, ALL + '[secrets]\nTOKEN = { env = "X" }\n')
        write_tool(folder / "tools", "plain", "def one() -> int:\n    return 1\n")
        async with connected(folder / "tools", config=config) as session:
            self.assertEqual(await session.value("plain.one"), 1)
            status = await session.value("hostler_status")
            self.assertEqual((status["broken"], status["asking"], status["pools"][0]["pack"]), (0, "complete", "plain"))
            names = [tool["name"] for tool in await session.value("hostler_tools", text="plain")]
            self.assertEqual(names, ["plain.one"])
            settings = await session.value("hostler_config")
            self.assertEqual((settings["secrets"], settings["files"]), (["TOKEN"], [str(config)]))
            program(folder / "tools", "say-it")
            self.assertRegex(await session.value("hostler_refresh"), r"^Tools refreshed\. \d+ tools available\.$")
            self.assertEqual(await session.value("say_it", text="x"), {"said": "x"}, "it was asked before that was said")
            with self.assertRaises(MCPError) as refused:
                await session.call("hostler_ask_llm", prompt="hi")
            self.assertEqual(refused.exception.error.code, -32021)


class Calls(unittest.IsolatedAsyncioTestCase):
    async def test_each_failure_has_its_code(self):
        folder, config = place(self)
        root = folder / "root"
        (root / "twice").write_text("a\na\n")
        (root / "bin").write_bytes(b"\0\1\2")
        (folder / "secret").write_text("s3cret")
        (root / "out").symlink_to(folder / "secret")
        os.mkfifo(root / "pipe")
        with open(root / "huge", "wb") as huge:
            huge.truncate(10 << 30)
        rows = {
            "a path out of the root": ("read_file", {"path": "../secret"}, "PERMISSION_DENIED", "outside the folders"),
            "a link out of the root": ("read_file", {"path": "out"}, "PERMISSION_DENIED", "outside the folders"),
            "written through that link": ("write_file", {"path": "out", "content": "x", "mode": "overwrite"}, "PERMISSION_DENIED", "outside"),
            "an absolute path": ("grep", {"pattern": "root", "path": "/etc"}, "PERMISSION_DENIED", "outside the folders"),
            "a regex that needs too much": ("grep", {"pattern": "((a{100}){100}){100}"}, "INVALID_PARAMS", "`literal`"),
            "ten gigabytes to read": ("read_file", {"path": "huge"}, "TOOL_ERROR", "is binary"),
            "ten gigabytes to edit": ("file_edit", {"path": "huge", "old_text": "a", "new_text": "b"}, "TOOL_ERROR", "larger than 16 MB"),
            "an edit that matches twice": ("file_edit", {"path": "twice", "old_text": "a", "new_text": "b"}, "TOOL_ERROR", "2 times, in lines 1, 2"),
            "a pipe": ("read_file", {"path": "pipe"}, "TOOL_ERROR", "not a regular file"),
            "binary": ("read_file", {"path": "bin"}, "TOOL_ERROR", "is binary (3 bytes)"),
            "the metadata of a cloud": ("fetch_url", {"url": "http://169.254.169.254/"}, "PERMISSION_DENIED", "private network"),
            "this machine": ("fetch_url", {"url": "http://localhost:1/"}, "PERMISSION_DENIED", "private network"),
            "a command that floods": ("bash", {"command": "exec yes"}, "INVALID_OUTPUT", "and was stopped"),
            "an unknown argument": ("glob", {"pattern": "*", "paths": "x"}, "INVALID_PARAMS", "did you mean `path`?"),
            "a wrong type": ("read_file", {"path": 3}, "INVALID_PARAMS", "`path`: expected string"),
            "a line before the first": ("read_file", {"path": "twice", "offset": 0}, "INVALID_PARAMS", "offset"),
        }
        async with connected(folder / "tools", config=config) as session:
            for name, (tool, arguments, code, words) in rows.items():
                with self.subTest(name):
                    answer = await session.call(tool, **arguments)
                    self.assertEqual(answer.code, code, answer.text)
                    self.assertIn(words, answer.message)
            self.assertEqual((folder / "secret").read_text(), "s3cret")
            self.assertEqual((root / "twice").read_text(), "a\na\n")

    async def test_a_path_swapped_between_check_and_use_stays_inside(self):
        folder, config = place(self)
        root, inside, outside = folder / "root", folder / "root/inside", folder / "outside"
        for each, text in ((inside, "harmless"), (outside, "s3cret")):
            each.mkdir()
            (each / "a.txt").write_text(text)
        (root / "link").symlink_to("inside")
        over = threading.Event()

        def swap():
            for number in range(10**9):
                if over.is_set():
                    return
                fresh = root / f".fresh{number % 2}"
                fresh.symlink_to(outside if number % 2 else "inside")
                os.replace(fresh, root / "link")

        swapping = threading.Thread(target=swap)
        swapping.start()
        try:
            seen = set()
            async with connected(folder / "tools", config=config) as session:
                for _ in range(300):
                    for tool, arguments in (("read_file", {"path": "link/a.txt"}), ("grep", {"pattern": ".", "path": "link"})):
                        answer = await session.call(tool, **arguments)
                        self.assertNotIn("s3cret", answer.text)
                        seen.add(answer.code)
            self.assertIn("PERMISSION_DENIED", seen, "it was never caught, so nothing was tried")
            self.assertIn(None, seen)
        finally:
            over.set()
            swapping.join()

    async def test_two_hostlers_change_one_file_and_nothing_is_lost(self):
        """Each client starts a hostler of its own."""
        folder = scratch(self)
        (root := folder / "root").mkdir()
        (root / "file").write_text("".join(f"{place}=0\n" for place in range(8)))
        (root / "link").symlink_to("file")
        config = config_file(folder, f'[builtin]\nenable = ["files"]\nroots = ["{root}"]\n')

        async def edits(hostler, place):
            for number in range(25):
                edit = {"path": ("file", "link")[number % 2], "old_text": f"{place}={number}\n", "new_text": f"{place}={number + 1}\n"}
                done = await hostler.call("file_edit", **edit)
                self.assertFalse(done.failed, done.text)

        async def additions(hostler, who):
            for number in range(25):
                done = await hostler.call("write_file", path="file", content=f"{who}.{number}\n", mode="append")
                self.assertFalse(done.failed, done.text)

        async with connected(folder / "none", config=config) as one, connected(folder / "none", config=config) as other:
            both = (one, other)
            await asyncio.gather(*(edits(both[place % 2], place) for place in range(8)), additions(one, "one"), additions(other, "other"))
        wanted = [f"{place}=25" for place in range(8)] + [f"{who}.{number}" for who in ("one", "other") for number in range(25)]
        self.assertEqual(sorted((root / "file").read_text().split()), sorted(wanted))
        self.assertEqual(sorted(path.name for path in root.iterdir()), ["file", "link"])

    async def test_a_command_of_a_cancelled_call_ends(self):
        folder, config = place(self)
        async with connected(folder / "tools", config=config) as session:
            command = "echo $$ > pid; echo begun; sleep 600"
            task = asyncio.ensure_future(session.call("bash", command=command, timeout=1000))
            pid = folder / "root/pid"

            await eventually_async(lambda: pid.exists() and pid.read_text().strip(), "the command runs")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await eventually_async(gone(int(pid.read_text())), "the command is gone")

    async def test_a_search_of_a_cancelled_call_stops(self):
        folder, config = place(self, ALL + '[tool.grep]\ntimeout = "300ms"\n')
        with open(folder / "root/huge", "wb") as huge:
            for _ in range(64):
                huge.write(b"a" * (1 << 20))
        for number in range(1, 40):
            os.link(folder / "root/huge", folder / f"root/huge{number}")
        async with connected(folder / "tools", config=config) as session:
            began = time.monotonic()
            answer = await session.call("grep", pattern="(?i)(x|y|z)+[bcd]{3,9}q")
            self.assertEqual(answer.code, "TOOL_TIMEOUT", answer.text)
            self.assertLess(time.monotonic() - began, 20)
            self.assertEqual((await session.value("glob", pattern="*"))["total"], 40, "others are served")


class Heard(unittest.TestCase):
    def test_output_of_a_command_arrives_while_it_runs(self):
        folder, config = place(self)
        words = [HOSTLER, "call", "bash", "command=echo begun; sleep 600", "--config", config]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as call:
            self.assertEqual(call.stderr.readline(), "begun\n")
            call.send_signal(signal.SIGINT)
            self.assertEqual(call.wait(30), 130)


class ByItself(unittest.TestCase):
    """`hostler builtin NAME`, an executable tool."""

    def call(self, name, arguments, *more, cwd):
        return run("builtin", name, *more, cwd=cwd, stdin=arguments if isinstance(arguments, str) else json.dumps(arguments))

    def test_a_built_in_tool_as_an_executable(self):
        folder = scratch(self)
        (folder / "a.txt").write_text("one\n")
        done = self.call("read_file", {"path": "a.txt"}, cwd=folder)
        self.assertEqual((done.returncode, json.loads(done.stdout)["content"]), (0, "one\n"))
        failed = self.call("file-read", {"path": "/etc/passwd"}, cwd=folder)
        self.assertEqual((failed.returncode, json.loads(failed.stdout)["error_code"]), (0, "PERMISSION_DENIED"))
        for arguments, words in (("{}", "missing argument `path`"), ("[", "must be a JSON object"), ("[]", "must be a JSON object")):
            wrong = self.call("read_file", arguments, cwd=folder)
            self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
            self.assertIn(words, wrong.stderr)
        none = self.call("reed_file", {}, cwd=folder)
        self.assertEqual(none.returncode, 3)
        self.assertIn("did you mean read_file?", none.stderr)

    def test_linked_by_their_names_they_are_executable_tools(self):
        folder = scratch(self)
        tools, work = folder / "tools", folder / "work"
        work.mkdir()
        (work / "a.txt").write_text("one\n")
        linked = run("builtin", "--link", tools)
        names = linked.stdout.split()
        for name in ("bash", "file-read", "file-write", "file-edit", "glob", "grep"):
            self.assertIn(name, names)
        again = run("builtin", "--link", tools)
        self.assertEqual((again.returncode, again.stdout), (0, linked.stdout), "a link that is right stays")
        schema = json.loads(subprocess.run([tools / "file-read", "--schema"], capture_output=True, check=True, env=environment()).stdout)
        self.assertEqual(schema["input_schema"]["required"], ["path"])
        done = run("call", "file_read", "path=a.txt", "--tools", tools, cwd=work)
        self.assertEqual(json.loads(done.stdout)["content"], "one\n", done.stderr)
        listed = {row["name"]: row["status"] for row in json.loads(run("list", "--json", "--tools", tools).stdout)}
        self.assertEqual(set(listed.values()), {"ready"}, listed)
        (tools / "own").write_text("")
        os.replace(tools / "own", tools / "glob")
        taken = run("builtin", "--link", tools)
        self.assertEqual(taken.returncode, 2)
        self.assertIn("remove it first", taken.stderr)

    def test_a_full_disk_leaves_no_partial_file(self):
        folder, config = place(self)
        room, before = 1 << 20, "x" * ((1 << 20) - 4)
        (folder / "root/a.txt").write_text(before)

        def full():  # a part of what is written fits, as on a disk that is nearly full
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # which Python ignores
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

        for mode, path, content in (("append", "a.txt", "12345678"), ("overwrite", "a.txt", "y" * (room + 1)), ("create", "b.txt", "y" * (room + 1))):
            with self.subTest(mode):
                arguments = json.dumps({"path": path, "content": content, "mode": mode})
                words = [HOSTLER, "call", "write_file", "--input", "-", "--tools", folder / "tools", "--config", config]
                done = subprocess.run(words, input=arguments, env=environment(), preexec_fn=full, capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (6, ""), done.stderr)
                self.assertIn("ulimit -f", done.stderr)
                self.assertEqual((folder / "root/a.txt").read_text(), before)
                self.assertEqual(os.listdir(folder / "root"), ["a.txt"], "no draft is left")

    def test_the_list_shows_what_is_enabled(self):
        folder, config = place(self, '[builtin]\nenable = ["search"]\ndisable = ["grep"]\nroots = ["root"]\n')
        rows = {row["name"]: row["enabled"] for row in json.loads(run("builtin", "--json", "--config", config).stdout)}
        self.assertEqual([name for name, on in rows.items() if on], ["glob", "git_status"])
        self.assertIn("read_file", rows)


if __name__ == "__main__":
    unittest.main()
