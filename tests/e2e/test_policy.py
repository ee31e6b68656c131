"""Rules about calls: what they decide, whoever tries, and that a person is asked where they say so."""

import json
import random
import shutil
import subprocess
import unittest

import mcp.types as types

import test_questions
from harness import config_file, connected, environment, eventually, run, scratch, write_tool
from test_questions import accept
from wire import Wire, call, request

FILES = '''
from pathlib import Path

def read(path: Path) -> str:
    with open(path) as file:
        return file.read()

def join(parts: list[Path], note: str = "") -> str:
    return "".join(Path(part).read_text() for part in parts)

def more(path: Path = Path("in/a"), **paths: Path) -> str:
    return "".join(one.read_text() for one in paths.values())

def by_path(parts: dict[Path, str]) -> str:
    return "".join(one.read_text() for one in parts)

def text(name: str) -> str:
    return name

def number(n: int = 1) -> int:
    return n
'''

OUTER = """
import hostler
def outer(path: str) -> str:
    try:
        return hostler.call("files.read", path=path)
    except hostler.HostlerError as error:
        return error.code
"""

RULES = """
[builtin]
enable = ["bash", "read_file", "list_directory"]
roots = ["in"]
[policy]
forbidden_in_modes = ["lockdown"]
[tool.files]
allowed_paths = ["in/**"]
forbidden_paths = ["in/secret/**", "in/later/**", "**/*.key"]
max_file_size_mb = 1
[tool."files.text"]
path_arguments = []
[tool.bash]
allowed_commands = ["echo", "git status"]
[tool.read_file]
forbidden_paths = ["in/secret/**"]
"""


class Policy(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "files", FILES)
        write_tool(self.tools, "outer", OUTER, header="")
        for name in ("in/secret", "out"):
            (self.folder / name).mkdir(parents=True)
        for name in ("in/a", "in/secret/b", "in/x.key", "out/c"):
            (self.folder / name).write_text(name)
        (self.folder / "in/link").symlink_to(self.folder / "out/c")
        (self.folder / "in/folder").symlink_to(self.folder / "out")
        (self.folder / "in/dangling").symlink_to(self.folder / "out/new")
        (self.folder / "in/process").symlink_to("/proc/self/cwd/in")
        self.config = config_file(self.folder, RULES)

    def wire(self, **variables):
        wire = Wire(self.tools, cwd=self.folder, arguments=("--config", str(self.config)), env=environment(**variables))
        self.addCleanup(wire.__exit__)
        wire.open()
        return wire

    def outcome(self, wire, number, tool, /, **arguments):
        wire.send(call(number, tool, **arguments))
        result = wire.answer(number)["result"]
        if not result.get("isError"):
            return "allowed"
        outcome = result["_meta"]["hostler/outcome"]["error"]
        self.assertEqual(outcome["code"], "PERMISSION_DENIED", outcome)
        self.assertTrue(outcome["message"].startswith("Permission denied: "), outcome)
        return outcome["message"].removeprefix("Permission denied: ").split(";")[0]

    def hostler(self, *words):
        return run("--config", str(self.config), "--tools", str(self.tools), *words, cwd=self.folder)


class Attacks(Policy):
    def test_paths_are_judged_by_where_they_lead(self):
        wire, inside = self.wire(), self.folder / "in"
        for number, path in enumerate(["in/a", "./in/../in/a", inside / "a", "out/../in/a"], start=1):
            self.assertEqual(self.outcome(wire, number, "files_read", path=str(path)), "allowed", path)
        denied = [
            ("out/c", "not in allowed paths"), ("in/../out/c", "not in allowed paths"), ("in/link", "not in allowed paths"),
            ("in/folder/c", "not in allowed paths"), ("in/folder/../a", "not in allowed paths"), ("/etc/passwd", "not in allowed paths"),
            ("in/secret/b", "is forbidden"), ("in/./secret//b", "is forbidden"), ("in/x.key", "is forbidden"), ("in/secret", "is forbidden"),
            ("in/dangling", "leads through a link"), ("in/new/../../out/c", "leads back out"), ("/proc/self/cwd/in/a", "leads through a process"), (f"/proc/self/root{inside}/a", "leads through a process"),
            ("in/process/a", "leads through a process"),
            ("a\0/in/a", "is not a path"), ("file:///etc/passwd", "is not a path"), ("~root/x", "is in the home folder"), ("$HOME/x", "may have"),
        ]
        for number, (path, why) in enumerate(denied, start=20):
            self.assertIn(why, self.outcome(wire, number, "files_read", path=path), path)
        self.assertIn("out/c", self.outcome(wire, 90, "files_join", parts=["in/a", "out/c"]), "each of a list")
        self.assertIn("out/c", self.outcome(wire, 91, "files_more", x="in/a", y="out/c"), "arguments without a name")
        self.assertIn("out/c", self.outcome(wire, 92, "files_by_path", parts={"in/a": "", "out/c": ""}), "names in a dictionary")
        self.assertEqual(self.outcome(wire, 93, "files_more", x="in/a"), "allowed")
        self.assertEqual(self.outcome(wire, 94, "files_by_path", parts={"in/a": ""}), "allowed")
        self.assertEqual(self.outcome(wire, 91, "files_join", parts=["in/a"], note="out/c"), "allowed", "which is no path")
        (inside / "large").write_bytes(b"x" * ((1 << 20) + 1))
        self.assertIn("larger than 1 MB", self.outcome(wire, 92, "files_read", path="in/large"))
        self.assertEqual(self.outcome(wire, 93, "files_text", name="out/c"), "allowed", "the operator says that it is no path")
        self.assertEqual(self.outcome(wire, 94, "files_number"), "allowed", "it cannot have a path")
        # What was read by now is not read again.
        (self.folder / "in/later").symlink_to(self.folder / "in")
        self.assertIn("is forbidden", self.outcome(wire, 95, "files_read", path="in/later/a"), "by its name, wherever it leads")

    def test_commands_are_judged_word_by_word(self):
        wire = self.wire()
        for number, command in enumerate(["echo a b", "echo a; echo 'b; c' && echo d 2>&1", "echo $HOME"], start=1):
            self.assertEqual(self.outcome(wire, number, "bash", command=command), "allowed", command)
        denied = ["ls", "echo a; ls", "echo a\nls", "echo $(ls)", "echo `ls`", "echo a | sh", "git -c alias.x=!ls x", "X=1 echo a",
                  "echo a > out/file", "cat <<X\na\nX", "echo \"$(ls)\"", "/tmp/echo a", "{ ls; }", "echo a & ls"]
        for number, command in enumerate(denied, start=20):
            self.assertIn("Command", self.outcome(wire, number, "bash", command=command), command)
        self.assertFalse((self.folder / "in/out").exists())

    def test_built_in_tools_and_inner_calls_obey(self):
        wire = self.wire()
        self.assertEqual(self.outcome(wire, 1, "read_file", path="a"), "allowed", "it begins at its root")
        self.assertIn("is forbidden", self.outcome(wire, 2, "read_file", path="secret/b"))
        self.assertEqual(wire.value(3, "outer_outer", path="in/a"), "in/a")
        self.assertEqual(wire.value(4, "outer_outer", path="out/c"), "PERMISSION_DENIED", "a tool cannot do it for another")

    def test_a_header_lifts_nothing(self):
        header = ('# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# [tool.hostler]\n# allowed_paths = ["/**"]\n'
                  '# allowed_modes = ["normal", "lockdown"]\n# forbidden_paths = []\n# requires_approval = false\n# ///\n')
        write_tool(self.tools, "files", FILES, header=header)
        config_file(self.folder, RULES.replace("[policy]", '[policy]\nmode = "LOCKDOWN"'))
        self.assertIn("LOCKDOWN", self.outcome(self.wire(), 1, "files_read", path="in/a"))
        config_file(self.folder, RULES)
        self.assertIn("not in allowed paths", self.outcome(self.wire(), 1, "files_read", path="out/c"))

    def test_more_names_of_arguments_leave_those_that_are_known(self):
        config_file(self.folder, RULES.replace("[policy]", '[policy]\npath_arguments = ["file"]\ncommand_arguments = []'))
        wire = self.wire()
        self.assertIn("is forbidden", self.outcome(wire, 1, "read_file", path="secret/b"))
        self.assertIn("not in allowed commands", self.outcome(wire, 2, "bash", command="id"))

    def test_what_a_tool_says_of_its_arguments_lifts_nothing(self):
        header = ('# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n# [tool.hostler]\n# path_arguments = {}\n# ///\n')
        write_tool(self.tools, "files", FILES)
        config_file(self.folder, '[tool.none]\nallowed_paths = ["in/**"]\n[tool.some]\nallowed_paths = ["in/**"]\n'
                    '[tool.typo]\nallowed_paths = ["in/**"]\npath_arguments = ["nam"]\n')
        write_tool(self.tools, "none", "def text(name: str) -> str:\n    return name\n", header=header.format("[]"))
        write_tool(self.tools, "some", "def text(name: str, other: str = '') -> str:\n    return name\n", header=header.format('["other"]'))
        write_tool(self.tools, "typo", "def text(name: str) -> str:\n    return name\n")
        wire = self.wire()
        for number, tool in enumerate(["none_text", "some_text", "typo_text"], start=1):
            self.assertIn("cannot be kept", self.outcome(wire, number, tool, name="/etc/passwd"), tool)

    def test_paths_in_records_are_judged_before_and_after_the_first_call(self):
        records = ("from pathlib import Path\nfrom typing import NamedTuple, TypedDict\n\nclass TD(TypedDict):\n    p: Path\n\n"
                   "class NT(NamedTuple):\n    p: Path\n\ndef td(a: Path, b: TD) -> str:\n    return str(b)\n\n"
                   "def nt(a: Path, b: NT) -> str:\n    return str(b)\n")
        write_tool(self.tools, "files", FILES + records)
        wire = self.wire()
        for start in (1, 20):
            for number, tool in enumerate(["files_td", "files_nt"], start=start):
                self.assertIn("/etc/passwd", self.outcome(wire, number, tool, a="in/a", b={"p": "/etc/passwd"}), tool)
                self.assertEqual(self.outcome(wire, number + 10, tool, a="in/a", b={"p": "in/a"}), "allowed")

    def test_a_rule_that_cannot_be_kept_denies_every_call(self):
        config_file(self.folder, RULES.replace('path_arguments = []', 'timeout = "9s"'))
        self.assertIn("cannot be kept", self.outcome(self.wire(), 1, "files_text", name="x"))


PIECES = ["a", "b", "c", "b x", "a", "a", "b x", " ", " ", " a ", "; a", " && b x", "\t", "\n", ";", "&", "&&", "|", "||", "'", '"', "\\", "$", "#", "=", "!", "<", ">", ">&", "2",
          "/dev/null", "`", "(", ")", "{", "}", "~", "*", "?", "[", "]", "if", "then", "fi", "$X", "${X}", "$'", "\\\n", "\r", "\v", "\u00a0",
          "eval", "in", "time", "[[", "<<", "c", "$(", "exec", ".", "X=c"]

# Those of which most texts are commands.
PLAIN = ["a", "a ", "b x", "c", "c ", " ", "\n", ";", "&", "|", "'", '"', "\\", "#", ">&2", "\\\n"]

SHELL = r"""
X=c
a() { printf '\001a %s' "$*"; }; b() { printf '\001b %s' "$*"; }; c() { printf '\001c %s' "$*"; }
for file in "$1"/*; do
    read_all=$(cat "$file"; echo .); text=${read_all%.}
    printf '\001= %s' "${file##*/}"
    ( eval "$text"; wait ) </dev/null 2>/dev/null
done
"""


class AgainstShells(Policy):
    """What is allowed is what real shells then run."""

    def test_nothing_runs_that_was_not_allowed(self):
        write_tool(self.tools, "files", "def run(command: str) -> str:\n    return command\n")
        config_file(self.folder, '[tool.files]\ncommand_arguments = ["command"]\nallowed_commands = ["a", "b x"]\n')
        chance = random.Random(7)
        texts = ["".join(chance.choices(pieces, k=chance.randint(2, 7))) for pieces in (PIECES, PLAIN) for _ in range(4000)]
        rows = [f'[[decision]]\ntool = "files.run"\narguments = {{ command = {json.dumps(text)} }}\nexpect = "allowed"\n' for text in texts]
        (self.folder / "expected.toml").write_text("".join(rows))
        told = json.loads(self.hostler("policy", "test", str(self.folder / "expected.toml"), "--json").stdout)
        denied = {(row["line"] - 2) // 4 for row in told["differences"]}
        allowed = {str(number): text for number, text in enumerate(texts) if number not in denied}
        self.assertGreater(len(allowed), 200)
        cases = self.folder / "cases"
        cases.mkdir()
        for number, text in allowed.items():
            (cases / number).write_text(text)
        for shell in filter(shutil.which, ("bash", "dash")):
            done = subprocess.run([shell, "-c", SHELL, shell, str(cases)], capture_output=True, timeout=120, cwd=self.folder)
            ran, number = 0, None
            for line in done.stdout.decode(errors="replace").split("\1")[1:]:
                if line.startswith("= "):
                    number = line[2:]
                    continue
                ran += 1
                self.assertTrue(line.startswith(("a ", "b x")), (shell, allowed[number], line))
            self.assertGreater(ran, 100, shell)


class InForce(Policy):
    def test_an_edit_is_in_force_at_once_and_an_invalid_one_keeps_the_last_rules(self):
        wire = self.wire()
        self.assertEqual(self.outcome(wire, 1, "files_read", path="in/a"), "allowed")
        config_file(self.folder, RULES.replace("[policy]", '[policy]\nmode = "Lockdown"'))
        numbers = iter(range(2, 10_000))
        eventually(lambda: "LOCKDOWN" in self.outcome(wire, next(numbers), "files_read", path="in/a"), "the mode is in force", 5)
        config_file(self.folder, RULES.replace("[policy]", '[policy]\nmode = "panic"'))
        said = ""
        while "stays as it was" not in said:
            said = wire.process.stderr.readline().decode()
        self.assertIn("panic", said)
        self.assertIn("LOCKDOWN", self.outcome(wire, next(numbers), "files_read", path="in/a"))

    def test_a_call_with_a_key_is_judged_too_and_keeps_no_key(self):
        state = {"XDG_STATE_HOME": str(self.folder / "state")}
        command = ["--config", str(self.config), "--tools", str(self.tools), "call", "--standalone", "--key", "k", "files.read"]
        denied = run(*command, "path=out/c", cwd=self.folder, env=environment(**state))
        self.assertEqual((denied.returncode, "not in allowed paths" in denied.stderr), (4, True), denied.stderr)
        allowed = run(*command, "path=in/a", cwd=self.folder, env=environment(**state))
        self.assertEqual((allowed.returncode, allowed.stdout), (0, "in/a\n"), allowed.stderr)


class Shown(Policy):
    def test_a_decision_names_its_rules_and_their_lines(self):
        line = RULES.splitlines().index('allowed_paths = ["in/**"]') + 1
        told = json.loads(self.hostler("policy", "explain", "files.read", "path=in/../out/x.key", "--json").stdout)
        self.assertEqual([rule["rule"] for rule in told["because"]], ["forbidden_paths", "allowed_paths"])
        self.assertEqual(told["because"][1]["origin"], f"{self.config}:{line}")
        self.assertEqual((told["decision"], told["mode"]), ("denied", "normal"))
        allowed = self.hostler("policy", "explain", "files.read", "path=in/a")
        self.assertEqual((allowed.returncode, allowed.stdout), (0, "files.read: allowed in NORMAL mode\n"))
        locked = self.hostler("policy", "explain", "files.number", "--mode", "Lockdown")
        self.assertIn("forbidden_in_modes", locked.stdout)

    def test_the_rules_in_force_are_a_table(self):
        shown = self.hostler("policy")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for part in ("mode", "NORMAL", "files.read", "allowed_paths", "in/**", f"{self.config}:"):
            self.assertIn(part, shown.stdout)
        rows = {row["tool"]: row["rules"] for row in json.loads(self.hostler("policy", "--json").stdout)["tools"]}
        self.assertEqual(rows["files.read"]["max_file_size_mb"]["value"], 1)
        self.assertEqual(rows["bash"]["allowed_commands"]["value"], ["echo", "git status"])

    def test_expected_decisions_are_compared(self):
        file = self.folder / "expected.toml"
        file.write_text('[[decision]]\ntool = "files.read"\narguments = { path = "in/a" }\nexpect = "allowed"\n\n'
                        '[[decision]]\ntool = "files_read"\narguments = { path = "in/secret/b" }\nexpect = "denied"\nrule = "forbidden_paths"\n')
        self.assertEqual(self.hostler("policy", "test", str(file)).returncode, 0)
        file.write_text('[[decision]]\ntool = "files.read"\narguments = { path = "in/a" }\nexpect = "denied"\n')
        differs = self.hostler("policy", "test", str(file), "--json")
        self.assertEqual((differs.returncode, json.loads(differs.stdout)["differences"][0]["line"]), (1, 2))
        for wrong in ('[[decision]]\ntool = "no.tool"\nexpect = "denied"\n', '[[decision]]\ntool = "files.read"\nexpect = "perhaps"\n', "[[decision]\n",
                      '[[decision]]\ntool = "files.read"\nexpects = "denied"\n'):
            file.write_text(wrong)
            refused = self.hostler("policy", "test", str(file))
            self.assertNotIn(refused.returncode, (0, 1), wrong)
            self.assertEqual(refused.stdout, "")


ASKED = '[tool.files]\nrequires_approval = true\n'


class Approval(test_questions.Asks):
    """The calling client's user decides."""

    rounds = test_questions.Rounds

    def listed(self, wire):
        wire.count += 1
        meta = {**test_questions.INLINE, "io.modelcontextprotocol/clientCapabilities": {}}
        wire.send(request(wire.count, "tools/list", _meta=meta))
        return [tool["name"] for tool in wire.answer(wire.count)["result"]["tools"]]
    CAN, open, call, result, value = rounds.CAN, rounds.open, rounds.call, rounds.result, rounds.value
    fault, refused, asked = rounds.fault, rounds.refused, rounds.asked

    def setUp(self):
        super().setUp()
        write_tool(self.tools, "files", FILES)
        self.config = config_file(self.folder, ASKED)

    def test_what_was_shown_runs_once_it_is_allowed(self):
        wire = self.open("--config", str(self.config))
        state, questions = self.asked(wire, "files_text", {"name": "x\" }\nAllow?"})
        (key, question), = questions.items()
        self.assertIn('files.text to be called with {"name":"x\\" }\\nAllow?"}', question["params"]["message"])
        self.refused(wire, "files_text", {"name": "other"}, requestState=state, inputResponses={key: accept()})
        self.assertEqual(self.value(wire, "files_text", {"name": "x\" }\nAllow?"}, requestState=state, inputResponses={key: accept()}),
                         "x\" }\nAllow?")
        self.asked(wire, "files_text", {"name": "x\" }\nAllow?"})  # it is asked anew

    def test_what_is_in_force_when_it_is_approved_counts(self):
        asked = ASKED.replace("[tool.files]", '[tool.files]\nforbidden_in_modes = ["lockdown"]')
        self.assertNotEqual(asked, ASKED)
        config_file(self.folder, asked)
        wire = self.open("--config", str(self.config))
        state, questions = self.asked(wire, "files_number")
        config_file(self.folder, '[policy]\nmode = "LOCKDOWN"\n' + asked)
        eventually(lambda: "files_number" not in self.listed(wire), "the mode is in force")
        result = self.result(wire, "files_number", requestState=state, inputResponses={next(iter(questions)): accept()})
        self.assertEqual(self.fault(result), "PERMISSION_DENIED")
        self.assertIn("LOCKDOWN", result["content"][0]["text"])

    def test_a_tool_that_changed_is_not_what_was_approved(self):
        wire = self.open("--config", str(self.config))
        state, questions = self.asked(wire, "files_number")
        write_tool(self.tools, "files", FILES.replace("return n\n", "return n + 1\n"))
        result = self.result(wire, "files_number", requestState=state, inputResponses={next(iter(questions)): accept()})
        self.assertEqual(self.fault(result), "PERMISSION_DENIED")

    def test_an_answer_to_what_was_not_asked_approves_nothing(self):
        wire = self.open("--config", str(self.config))
        for key in ("question_1", "approval_0", "approval_1"):
            result = self.result(wire, "files_number", inputResponses={key: accept()})
            self.assertEqual(result["resultType"], "input_required")

    def test_what_is_shown_has_nothing_invisible(self):
        wire = self.open("--config", str(self.config))
        _, questions = self.asked(wire, "files_text", {"name": "a\u202eb\u009bc\u200bd\U000e0041é漢"})
        message = next(iter(questions.values()))["params"]["message"]
        self.assertIn('"a\\u202eb\\u009bc\\u200bd\\udb40\\udc41é漢"', message)

    def test_a_refusal_is_a_denial(self):
        wire = self.open("--config", str(self.config))
        for action in ("decline", "cancel"):
            state, questions = self.asked(wire, "files_number")
            result = self.result(wire, "files_number", requestState=state, inputResponses={next(iter(questions)): {"action": action}})
            self.assertEqual(self.fault(result), "PERMISSION_DENIED")
            self.assertIn("Approval denied by user", result["content"][0]["text"])

    def test_nobody_is_asked_about_what_is_denied_anyway(self):
        config = config_file(self.folder, '[tool.files]\nrequires_approval = true\nallowed_paths = ["in/**"]\npath_arguments = ["name"]\n')
        wire = self.open("--config", str(config))
        result = self.result(wire, "files_text", {"name": "/etc/passwd"})
        self.assertEqual((result["resultType"], self.fault(result)), ("complete", "PERMISSION_DENIED"))

    def test_a_client_that_cannot_ask_is_told_who_can(self):
        config_file(self.folder, '[policy]\napproval_timeout = "300ms"\n' + ASKED)
        result = self.result(self.open("--config", str(self.config)), "files_number", can={"sampling": {}})
        self.assertEqual((result["resultType"], self.fault(result)), ("complete", "PERMISSION_DENIED"))
        self.assertIn("hostler approve", result["content"][0]["text"])

    def test_arguments_that_are_too_long_to_be_shown_are_not_approved(self):
        result = self.result(self.open("--config", str(self.config)), "files_text", {"name": "x" * 70_000})
        self.assertEqual(self.fault(result), "PERMISSION_DENIED")


class ApprovalInBothEras(unittest.IsolatedAsyncioTestCase):
    async def test_the_user_of_either_client_decides(self):
        folder = scratch(self)
        write_tool(folder / "tools", "files", FILES)
        config = config_file(folder, '[policy]\napproval_timeout = "5s"\n' + ASKED)
        action, asked = "accept", []

        async def elicit(_context, params):
            asked.append(params.message)
            return types.ElicitResult(action=action, content={} if action == "accept" else None)

        for mode in ("auto", "legacy"):
            with self.subTest(mode):
                async with connected(folder / "tools", config=config, mode=mode, elicitation_callback=elicit) as hostler:
                    action = "accept"
                    self.assertEqual(await hostler.value("files_number", n=4), 4)
                    action = "decline"
                    self.assertEqual((await hostler.call("files_number", n=4)).code, "PERMISSION_DENIED")
        self.assertEqual(len(asked), 4)
        async with connected(folder / "tools", config=config, mode="legacy") as hostler:
            answer = await hostler.call("files_number")
            self.assertEqual(answer.code, "PERMISSION_DENIED")
            self.assertIn("hostler approve", answer.message)


if __name__ == "__main__":
    unittest.main()
