"""Secrets in a real Secret Service."""

import json
import shutil
import subprocess
import unittest

from harness import PATIENCE, config_file, environment, run, scratch, write_tool

PROGRAMS = ("dbus-run-session", "gnome-keyring-daemon", "secret-tool")
# A bus of its own, with a keyring that is open, until the input ends.
SESSION = """
printf password | gnome-keyring-daemon --foreground --unlock --components=secrets >/dev/null 2>&1 &
echo "$DBUS_SESSION_BUS_ADDRESS"
cat >/dev/null
kill $!
"""
TOOL = ('# /// script\n# requires-python = ">=3.9"\n# [tool.hostler]\n# secrets = ["KEY"]\n# ///\n'
        'import hostler\ndef give() -> str:\n    return hostler.secret("KEY")\n')


@unittest.skipUnless(all(map(shutil.which, PROGRAMS)), "no Secret Service is there")
class Keyring(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "holder", TOOL, header="")
        self.config = config_file(self.folder, '[secrets]\nKEY = { keyring = "a service", account = "me" }\n')
        (self.folder / "run").mkdir(mode=0o700)
        env = environment(HOME=str(self.folder), XDG_DATA_HOME=str(self.folder / "data"), XDG_RUNTIME_DIR=str(self.folder / "run"))
        session = subprocess.Popen(["dbus-run-session", "--", "sh", "-c", SESSION], env=env, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(session.wait, PATIENCE)
        self.addCleanup(session.stdout.close)
        self.addCleanup(session.stdin.close)
        self.env = environment(DBUS_SESSION_BUS_ADDRESS=session.stdout.readline().strip())

    def hostler(self, *words, status=0, env=None, **options):
        done = run("--config", str(self.config), "--tools", str(self.folder / "tools"), *words, env=env or self.env, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def tried(self, status=0, **options):
        return json.loads(self.hostler("secrets", "test", "--json", status=status, **options).stdout)[0]

    def test_a_secret_is_stored_replaced_and_read_by_a_call(self):
        # It waits for the service to start.
        self.assertIn("no entry of the service a service for the user name me", self.tried(status=1)["fix"])
        for value in ("two\nlines with ü", "replaced"):
            self.hostler("secrets", "set", "KEY", stdin=value)
            self.assertTrue(self.tried()["ok"])
            self.assertEqual(json.loads(self.hostler("call", "holder.give", "--json").stdout)["result"], value)
        stored = subprocess.run(["secret-tool", "lookup", "service", "a service", "username", "me"], env=self.env, capture_output=True)
        self.assertEqual(stored.stdout, b"replaced", "as other programs find it")

    def test_without_a_bus_the_fault_says_so(self):
        env = environment(DBUS_SESSION_BUS_ADDRESS="unix:path=" + str(self.folder / "none"))
        self.assertIn("the keyring does not answer", self.tried(status=1, env=env)["problem"])


if __name__ == "__main__":
    unittest.main()
