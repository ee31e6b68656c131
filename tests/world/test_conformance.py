"""The official conformance suite, for both eras, through the bridge. docs/conformance.md shows the result as a table."""

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from collections import Counter
from pathlib import Path

from bridge import Bridge
from harness import HOSTLER, TARGET, environment

HERE = Path(__file__).parent / "conformance"
PACKAGES = TARGET / "e2e-tools" / "world"
SUITE = PACKAGES / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

# About HTTP itself, which the bridge speaks and hostler does not yet; and extensions that hostler does not offer.
OF_HTTP = {"dns-rebinding-protection", "http-custom-header-server-validation", "http-header-validation", "server-session-lifecycle",
           "server-sse-multiple-streams", "server-sse-polling"}
HTTP_CHECKS = {"sep-2575-http-server-header-mismatch-400", "sep-2243-server-reject-invalid-headers"}
EXTENSIONS = ("tasks-", "sep-2640-")


class Conformance(unittest.TestCase):
    maxDiff = None

    def test_every_scenario_of_both_eras(self):
        for revision in ("2025-11-25", "2026-07-28"):
            with self.subTest(revision):
                missed, passed = self.checks(revision)
                self.assertEqual(missed, {})
                self.assertGreater(passed, 50)
                print(f"{revision}: {passed} checks passed", flush=True)

    def checks(self, revision):
        """What did not pass, by scenario, and how many checks did."""
        with tempfile.TemporaryDirectory() as folder:
            tools, results = Path(folder, "tools"), Path(folder, "results")
            shutil.copytree(HERE / "tools", tools)  # one of them adds a tool
            bridge = Bridge([HOSTLER, "serve", "--tools", str(tools)], environment())
            try:
                words = ["node", str(SUITE), "server", "--url", bridge.url, "--suite", "all", "--spec-version", revision, "-o", str(results)]
                done = subprocess.run(words, env=environment(), cwd=PACKAGES, capture_output=True, text=True, timeout=600)
            finally:
                bridge.end()
            found = sorted(results.rglob("checks.json"))
            self.assertTrue(found, done.stdout + done.stderr)
            missed, statuses = {}, Counter()
            for file in found:
                scenario = re.fullmatch(r"server-(.*)-\d{4}-\d\d-\d\dT.*", file.parent.name)[1]
                if scenario in OF_HTTP or scenario.startswith(EXTENSIONS):
                    continue
                checks = [check for check in json.loads(file.read_text()) if check["id"] not in HTTP_CHECKS]
                statuses.update(check["status"] for check in checks)
                bad = [f"{check['id']}: {check.get('errorMessage')}" for check in checks if check["status"] in ("FAILURE", "WARNING")]
                if bad:
                    missed[scenario] = bad
            return missed, statuses["SUCCESS"]
