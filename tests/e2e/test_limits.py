"""What hostler does where the system gives it no more: processes, threads."""

import os
import time
import unittest

from harness import HEADER, META, config_file
from unprivileged import Account
from wire import Wire, call, request

# A user without other processes: the limit counts all of a user's.
LONELY = 64_731


class Processes(unittest.TestCase):
    """`ulimit -u`: each thread counts."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root may become a user without other processes")
        self.account = Account(self, LONELY)
        self.account.tool("plain.py", HEADER + "def echo(text: str) -> str:\n    return text\n")
        program = '#!/bin/sh\nif [ "$1" = --schema ]; then echo \'{"name": "say", "description": "Says.", "inputSchema": {"type": "object"}}\'; else echo 7; fi\n'
        self.account.tool("say", program, 0o755)
        (self.account.home / "file").write_text("content")
        self.config = config_file(self.account.folder, f'[builtin]\nenable = ["read_file", "bash"]\nroots = ["{self.account.home}"]\n')
        self.config.chmod(0o644)

    def serve(self, limit):
        words = ["prlimit", f"--nproc={limit}:{limit}", "--", *self.account.become, self.account.hostler]
        # The pipes belong to root: hostler cannot open them again.
        return Wire(self.account.tools, env=self.account.env, arguments=["--config", str(self.config)],
                    cwd=self.account.folder, program=words)

    def outcome(self, hostler, number, name, **arguments):
        hostler.send(call(number, name, **arguments))
        result = hostler.answer(number)["result"]
        return "" if not result.get("isError") else result["_meta"][META]["error"]["code"]

    def test_every_request_is_answered_at_once_whatever_the_limit(self):
        seen = set()
        # From where hostler just starts to where everything works.
        for limit in [*range(2, 17), 32]:
            with self.subTest(limit), self.serve(limit) as hostler:
                hostler.open()
                began = time.monotonic()
                hostler.send(request(1, "tools/list"))
                names = {tool["name"] for tool in hostler.answer(1)["result"]["tools"]}
                self.assertLessEqual({"plain_echo", "read_file", "bash"}, names)
                calls = {"read_file": {"path": "file"}, "bash": {"command": "true"}, "say": {}, "plain_echo": {"text": "a"}}
                for number, (name, arguments) in enumerate(calls.items(), 10):
                    code = self.outcome(hostler, number, name, **arguments)
                    seen.add((name, code))
                    self.assertIn(code, ("", "RESOURCE_EXHAUSTED"), name)
                self.assertLess(time.monotonic() - began, 30)
                hostler.end_input()
                self.assertEqual(hostler.ended(5), 0)
                self.assertNotIn("panicked", hostler.stderr())
        for name in ("read_file", "bash", "say", "plain_echo"):
            self.assertIn((name, ""), seen, "and with enough of them it works")
            self.assertIn((name, "RESOURCE_EXHAUSTED"), seen)


if __name__ == "__main__":
    unittest.main()
