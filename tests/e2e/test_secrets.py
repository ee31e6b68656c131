"""Secrets: where they come from, who sees them, `hostler secrets`."""

import asyncio
import json
import os
import pty
import stat
import unittest

from harness import HOSTLER, config_file, connected, environment, eventually_async, run, scratch, write_tool
from test_executables import program

KEY = "s3cret/5esame&more"
HOLDER = ('# /// script\n# requires-python = ">=3.9"\n# [tool.hostler]\n# secrets = ["KEY"]\n# ///\n'
          'import hostler\n'
          'def give() -> str:\n    return hostler.secret("KEY")\n'
          'def length() -> int:\n    return len(hostler.secret("KEY"))\n'
          'def echoed(tool: str) -> bool:\n    return hostler.call(tool, text=hostler.secret("KEY")) == hostler.secret("KEY")\n')
OTHER = '''
import base64, json, urllib.parse
def form(text: str, kind: str) -> str:
    data = text.encode()
    return {"plain": "<" + text + ">", "base64": base64.b64encode(b"me:" + data).decode(), "hex": data.hex(),
            "url": urllib.parse.quote(text, safe=""), "json": json.dumps(json.dumps([text]))}[kind]
def inside(text: str) -> dict:
    return {text: [1, {"deep": text}], "n": 36893488147419103233}
def echo(text: str) -> str:
    return text
def say(text: str) -> int:
    print(text)
    return 1
'''


class Results(unittest.IsolatedAsyncioTestCase):
    """What a call returns, prints and logs has no secret that its tool may not know."""

    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "holder", HOLDER, header="")
        write_tool(self.folder / "tools", "other", OTHER)

    def connected(self, config="", **variables):
        path = config_file(self.folder, "[tool.holder]\nhost_access = true\n" + config)
        return connected(self.folder / "tools", env=environment(KEY=KEY, **variables), config=path, verbose=True)

    async def test_another_tools_result_has_no_secret_in_any_form(self):
        async with self.connected() as hostler:
            self.assertEqual(await hostler.value("other_echo", text=KEY), KEY, "nobody has read it yet")
            self.assertEqual(await hostler.value("holder_length"), len(KEY))
            for kind in ("plain", "base64", "hex", "url", "json"):
                with self.subTest(kind):
                    self.assertIn("[secret KEY]", await hostler.value("other_form", text=KEY, kind=kind))
            inside = await hostler.value("other_inside", text=KEY)
            self.assertEqual(inside, {"[secret KEY]": [1, {"deep": "[secret KEY]"}], "n": 36893488147419103233})
            answer = await hostler.call("other_say", text=KEY)
            self.assertIn("[secret KEY]", json.dumps(answer.outcome))
            self.assertNotIn(KEY, json.dumps(answer.outcome))

    async def test_a_tool_may_return_its_own_and_what_it_gets_back(self):
        async with self.connected() as hostler:
            self.assertEqual(await hostler.value("holder_give"), KEY)
            self.assertTrue(await hostler.value("holder_echoed", tool="other.echo"))

    async def test_its_own_is_hidden_where_the_operator_says_so(self):
        async with self.connected("redact_results = true\n") as hostler:
            self.assertEqual(await hostler.value("holder_give"), "[secret KEY]")
            self.assertEqual(await hostler.value("holder_length"), len(KEY))

    async def test_what_executables_print_has_none(self):
        program(self.folder / "tools", "leak", "import json; read_all = __import__('sys').stdin.read(); import sys; print('told', json.loads(read_all)['text'], file=sys.stderr); print(json.dumps(json.loads(read_all)['text']))",
                schema={"parameters": {"text": {"type": "string"}}})
        async with self.connected() as hostler:
            await hostler.value("holder_length")
            answer = await hostler.call("leak", text=KEY)
            self.assertEqual(answer.value, "[secret KEY]")
            self.assertNotIn(KEY, json.dumps(answer.outcome))
            self.assertIn("told [secret KEY]", json.dumps(answer.outcome))

    async def test_what_built_in_tools_print_has_none(self):
        async with self.connected(f'[builtin]\nenable = ["shell"]\nroots = ["{self.folder}"]\n') as hostler:
            await hostler.value("holder_length")
            answer = await hostler.call("bash", command=f"echo '{KEY}'; echo 'and {KEY}' >&2")
            self.assertIn("and [secret KEY]", answer.text)
            self.assertNotIn(KEY, json.dumps(answer.outcome) + answer.text + hostler.stderr())

    async def test_a_token_that_changes_with_every_call_is_hidden_while_its_call_runs(self):
        body = ('# /// script\n# requires-python = ">=3.9"\n# [tool.hostler]\n# secrets = ["TOKEN"]\n# max_workers = 4\n# ///\n'
                'import hostler, pathlib, time\ndef hold(folder: str = "") -> int:\n    if folder:\n        pathlib.Path(folder, "begun").touch()\n        while not pathlib.Path(folder, "go").exists():\n            time.sleep(0.01)\n    print("t", hostler.secret("TOKEN"))\n    raise ValueError(hostler.secret("TOKEN"))\n')
        write_tool(self.folder / "tools", "tokens", body, header="")
        script = self.folder / "token"
        script.write_text('#!/bin/sh\necho "token-$$-$(date +%N)-secret"\n')
        script.chmod(0o700)
        async with self.connected(f'[secrets]\nTOKEN = {{ command = ["{script}"] }}\n') as hostler:
            slow = asyncio.create_task(hostler.call("tokens_hold", folder=str(self.folder)))
            await eventually_async((self.folder / "begun").exists, "the call begins")
            quick = [await hostler.call("tokens_hold") for _ in range(8)]
            (self.folder / "go").touch()
            for answer in [await slow, *quick]:
                said = json.dumps(answer.outcome) + answer.text
                self.assertIn("[secret TOKEN]", said)
                self.assertNotRegex(said, r"token-\d")
            self.assertNotRegex(hostler.stderr(), r"token-\d")


class Sources(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "holder", HOLDER, header="")

    def connected(self, config="", **variables):
        self.env = environment(**{"KEY": None, "XDG_STATE_HOME": str(self.folder / "state"), **variables})
        return connected(self.folder / "tools", env=self.env, config=config_file(self.folder, config))

    def counting(self):
        """A command that says how often it ran."""
        script = self.folder / "count"
        script.write_text(f'#!/bin/sh\necho x >> "{self.folder}/times"\nprintf "value-%s\\n" "$(wc -l < "{self.folder}/times" | tr -d " ")"\n')
        script.chmod(0o700)
        return script

    async def test_a_command_runs_for_each_call_or_once_for_a_while(self):
        script = self.counting()
        async with self.connected(f'[secrets]\nKEY = {{ command = ["{script}"] }}\n') as hostler:
            first, second, third = [int((await hostler.value("holder_give")).removeprefix("value-")) for _ in range(3)]
            self.assertEqual((second, third), (first + 1, first + 2))
        async with self.connected(f'[secrets]\nKEY = {{ command = ["{script}"], cache = "1h" }}\n') as hostler:
            together = await asyncio.gather(*[hostler.value("holder_give") for _ in range(4)])
            self.assertEqual(together, [f"value-{third + 1}"] * 4)
            done = run("secrets", "refresh", env=self.env)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(await hostler.value("holder_give"), f"value-{third + 2}")

    async def test_a_credential_of_systemd(self):
        place = self.folder / "credentials"
        place.mkdir()
        async with self.connected('[secrets]\nKEY = { systemd = "api-key" }\n', CREDENTIALS_DIRECTORY=str(place)) as hostler:
            self.assertIn("LoadCredential=api-key:/path", (await hostler.call("holder_give")).message)
            (place / "api-key").write_text("from systemd\n")
            (place / "api-key").chmod(0o440)  # as systemd leaves it for a group
            self.assertEqual(await hostler.value("holder_give"), "from systemd")

    async def test_the_keyring_is_asked_by_service_and_user_name(self):
        place = self.folder / "bin"
        place.mkdir()
        script = place / "secret-tool"
        config = '[secrets]\nKEY = { keyring = "my service", account = "me" }\n'
        path = f"{place}:{os.environ['PATH']}"
        async with self.connected(config, PATH=str(place)) as hostler:
            self.assertIn("`secret-tool` is not on PATH; install it", (await hostler.call("holder_give")).message)
        for body, found in (
            ('[ "$*" = "lookup service my service username me" ] && printf "from the\nkeyring"', "from the\nkeyring"),
            ("exit 1", "no entry of the service my service for the user name me: run `hostler secrets set KEY`"),
            ('echo "secret-tool: Cannot reach D-Bus" >&2; exit 1', "the keyring does not answer: secret-tool: Cannot reach D-Bus; unlock"),
        ):
            script.write_text(f"#!/bin/sh\n{body}\n")
            script.chmod(0o700)
            async with self.connected(config, PATH=path) as hostler:
                answer = await hostler.call("holder_give")
                self.assertIn(found, answer.message if answer.code else answer.value)

    async def test_a_stored_secret_counts_where_none_is_in_the_environment(self):
        async with self.connected(XDG_CONFIG_HOME=str(self.folder / "config")) as hostler:
            self.assertIn("Run `hostler secrets set KEY`", (await hostler.call("holder_give")).message)
            done = run("--tools", str(self.folder / "tools"), "secrets", "set", "KEY", env=self.env, stdin="from a pipe\n")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(await hostler.value("holder_give"), "from a pipe", "without a restart")
        path = self.folder / "config/hostler/secrets/KEY"
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        async with self.connected(XDG_CONFIG_HOME=str(self.folder / "config"), KEY="from the environment") as hostler:
            self.assertEqual(await hostler.value("holder_give"), "from the environment")
        path.chmod(0o644)
        async with self.connected(XDG_CONFIG_HOME=str(self.folder / "config")) as hostler:
            self.assertIn("readable by other users", (await hostler.call("holder_give")).message)


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "holder", HOLDER, header="")
        self.env = environment(KEY=None, XDG_CONFIG_HOME=str(self.folder / "config"), XDG_STATE_HOME=str(self.folder / "state"))

    def secrets(self, *words, config="", status=0, **options):
        path = config_file(self.folder, config)
        done = run("--config", str(path), "--tools", str(self.folder / "tools"), "secrets", *words, env=self.env, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_secrets_are_listed_tried_and_never_shown(self):
        config = f'[secrets]\nFILE = {{ file = "key" }}\nOP = {{ command = ["echo", "{KEY}"] }}\n'
        listed = json.loads(self.secrets("list", "--json", config=config).stdout)
        self.assertEqual([(one["name"], one["from"], one["declared_by"]) for one in listed],
                         [("FILE", "file", []), ("KEY", "environment", ["holder"]), ("OP", "command", [])])
        tried = {one["name"]: one for one in json.loads(self.secrets("test", "--json", config=config, status=1).stdout)}
        self.assertEqual({name: one["ok"] for name, one in tried.items()}, {"FILE": False, "KEY": False, "OP": True})
        self.assertIn("chmod 600", tried["FILE"]["fix"])
        self.secrets("set", "KEY", config=config, stdin=KEY)
        self.secrets("set", "FILE", config=config, stdin=KEY + "\n")
        self.assertEqual((self.folder / "key").read_text(), KEY + "\n")
        words = ("--config", str(config_file(self.folder, "")), "--tools", str(self.folder / "tools"), "doctor", "--offline", "--json")
        examined = run(*words, env=self.env).stdout
        self.assertEqual([one["state"] for one in json.loads(examined) if one["about"] == "secret"], ["good"], "stored, for clients as well")
        for words in (("list",), ("test",), ("test", "--json"), ("test", "KEY")):
            done = self.secrets(*words, config="[secrets]\nFILE = { file = \"key\" }\n")
            self.assertIn("KEY", done.stdout)
            self.assertNotIn(KEY, done.stdout + done.stderr)

    def test_what_cannot_be_stored_is_refused(self):
        config = '[secrets]\nA = { env = "B" }\nC = { command = ["true"] }\nS = { systemd = "s" }\n'
        for name, value, words in (
            ("A", "x", "reads A from the variable B"), ("C", "x", "from the command `true`"), ("S", "x", "the credential s"),
            ("../../escape", "x", "is not a name"), ("/etc/x", "x", "is not a name"),
            ("KEY", "", "no secret was given"), ("KEY", "\n", "no secret was given"), ("KEY", "KEY=x", "begins with `KEY=`"),
            ("KEY", "x" * 70_000, "longer than 64 KiB"),
        ):
            with self.subTest(name, value=value[:8]):
                self.assertIn(words, self.secrets("set", name, config=config, status=2, stdin=value).stderr)
        self.assertFalse((self.folder / "config/hostler/secrets/KEY").exists())

    def test_a_tool_stores_none(self):
        body = ('import os, subprocess\ndef store(hostler: str) -> list:\n'
                '    plain = {name: value for name, value in os.environ.items() if not name.startswith("HOSTLER")}\n'
                '    done = [subprocess.run([hostler, "secrets", "set", "KEY"], input="x", capture_output=True, text=True, env=env) for env in (None, plain)]\n'
                '    return [one.stderr for one in done]\n')
        write_tool(self.folder / "tools", "stores", body)
        done = run("--tools", str(self.folder / "tools"), "call", "stores.store", f"hostler={HOSTLER}", env=self.env)
        self.assertEqual([("a tool may not store secrets" in said) for said in json.loads(done.stdout)], [True, True], done.stderr)

    def test_what_is_typed_at_a_terminal_is_not_shown_and_an_interrupt_restores_it(self):
        for typed, status, is_stored in ((b"\x03", 130, False), (KEY.encode() + b"\n", 0, True)):
            child, terminal = pty.fork()
            if child == 0:
                os.execve(HOSTLER, [HOSTLER, "--tools", str(self.folder / "tools"), "secrets", "set", "KEY"], self.env)
            shown = b""
            while b"KEY: " not in shown:
                shown += os.read(terminal, 1024)
            os.write(terminal, typed)
            while True:
                try:
                    more = os.read(terminal, 1024)
                except OSError:
                    break
                if not more:
                    break
                shown += more
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), status, shown)
            os.close(terminal)
            self.assertNotIn(KEY.encode(), shown)
            self.assertEqual((self.folder / "config/hostler/secrets/KEY").exists(), is_stored)

    def test_secrets_in_the_configuration_are_found(self):
        config = config_file(self.folder, '[secrets]\nOK_KEY = { file = "abc12345xyz" }\n[tool.holder]\nconfig = { api_key = "8f14e45fceea167a" }\n[tool.holder.env]\nDB = "postgres://me:pa55@db/x"\n[journal]\nstore = "postgres://me:pa55@db.example/x"\n')
        done = run("--config", str(config), "--tools", str(self.folder / "tools"), "check", "--json", env=self.env)
        found = [one for one in json.loads(done.stdout) if one["rule"] == "written-secret"]
        self.assertEqual([one["line"] for one in found], [4, 6])
        self.assertTrue(all("hostler secrets set" in one["fix"] for one in found), found)
        self.assertNotIn("8f14e45fceea167a", done.stderr)


if __name__ == "__main__":
    unittest.main()
