"""The official conformance suite, for both eras: over HTTP, and on standard streams through the bridge. docs/conformance.md shows
the result as a table."""

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
from collections import Counter
from pathlib import Path

from bridge import Bridge
from harness import HOSTLER, TARGET, config_file, environment
from with_token import WithToken

HERE = Path(__file__).parent / "conformance"
PACKAGES = TARGET / "e2e-tools" / "world"
SUITE = PACKAGES / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

# About HTTP itself, which the bridge speaks as far as it must; and extensions that hostler does not offer.
OF_HTTP = {"dns-rebinding-protection", "http-custom-header-server-validation", "http-header-validation", "server-session-lifecycle",
           "server-sse-multiple-streams", "server-sse-polling"}
HTTP_CHECKS = {"sep-2575-http-server-header-mismatch-400", "sep-2243-server-reject-invalid-headers"}
EXTENSIONS = ("sep-2640-",)
# Of the extension that hostler offers. The suite has no checks for their notifications yet.
TASKS = ("lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input", "dispatch-and-envelope",
         "required-task-error", "mrtr-composition")


class Conformance(unittest.TestCase):
    maxDiff = None

    def test_every_scenario_of_both_eras_on_standard_streams(self):
        self.every_scenario(self.bridged, OF_HTTP, HTTP_CHECKS)

    def test_every_scenario_of_both_eras_over_http(self):
        self.every_scenario(self.served, set(), set())

    def test_every_scenario_of_tasks(self):
        scenarios = [f"tasks-{name}" for name in TASKS]
        for serving, of_http in ((self.bridged, []), (self.served, ["tasks-request-headers"])):
            with self.subTest(serving.__name__):
                missed, passed = self.checks("2026-07-28", serving, set(), set(), scenarios + of_http)
                self.assertEqual(missed, {})
                self.assertGreaterEqual(passed, 30)
                print(f"tasks: {passed} checks passed", flush=True)

    def every_scenario(self, serving, left_out, unchecked):
        for revision in ("2025-11-25", "2026-07-28"):
            with self.subTest(revision):
                missed, passed = self.checks(revision, serving, left_out, unchecked)
                self.assertEqual(missed, {})
                self.assertGreater(passed, 50)
                print(f"{revision}: {passed} checks passed", flush=True)

    @contextlib.contextmanager
    def bridged(self, tools):
        bridge = Bridge([HOSTLER, "serve", "--standalone", "--tools", str(tools)], environment())
        try:
            yield bridge.url
        finally:
            bridge.end()

    @contextlib.contextmanager
    def served(self, tools):
        env = environment(XDG_STATE_HOME=tools.parent / "state")
        proxy = WithToken()
        config = config_file(tools.parent, f'[control]\norigins = ["{proxy.origin}"]\n')
        words = [HOSTLER, "--config", str(config), "serve", "--http", "127.0.0.1:0", "--tools", str(tools)]
        with subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            found = next(filter(None, (re.search(r"served at http://127\.0\.0\.1:(\d+)", line) for line in process.stderr)))
            threading.Thread(target=process.stderr.read, daemon=True).start()
            token = subprocess.run([HOSTLER, "token"], env=env, check=True, capture_output=True, text=True).stdout.strip()
            proxy.begin(int(found[1]), token)
            try:
                yield proxy.origin + "/mcp"
            finally:
                proxy.end()
                process.terminate()

    def checks(self, revision, serving, left_out, unchecked, scenarios=()):
        """What did not pass, by scenario, and how many checks did."""
        with tempfile.TemporaryDirectory() as folder:
            tools, results = Path(folder, "tools"), Path(folder, "results")
            shutil.copytree(HERE / "tools", tools)  # one of them adds a tool
            with serving(tools) as url:
                for which in [["--force", "--scenario", name] for name in scenarios] or [["--suite", "all"]]:
                    words = ["node", str(SUITE), "server", "--url", url, *which, "--spec-version", revision, "-o", str(results)]
                    done = subprocess.run(words, env=environment(), cwd=PACKAGES, capture_output=True, text=True, timeout=600)
            found = sorted(results.rglob("checks.json"))
            self.assertTrue(found, done.stdout + done.stderr)
            missed, statuses = {}, Counter()
            for file in found:
                scenario = re.fullmatch(r"server-(.*)-\d{4}-\d\d-\d\dT.*", file.parent.name)[1]
                if scenario in left_out or scenario.startswith(EXTENSIONS):
                    continue
                checks = [check for check in json.loads(file.read_text()) if check["id"] not in unchecked]
                statuses.update(check["status"] for check in checks)
                bad = [f"{check['id']}: {check.get('errorMessage')}" for check in checks if check["status"] in ("FAILURE", "WARNING")]
                if bad:
                    missed[scenario] = bad
            return missed, statuses["SUCCESS"]
