"""Prometheus itself reads /metrics: Debian's server scrapes hostler, and is asked what it understood."""

import http.client
import json
import shutil
import socket
import subprocess
import unittest
import urllib.parse

import test_http
from harness import PATIENCE
from test_shared import until

PROGRAM = shutil.which("prometheus")


@unittest.skipUnless(PROGRAM, "Prometheus is not there")
class Scraped(test_http.Serving):
    def setUp(self):
        super().setUp()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        token = self.folder / "token"
        token.write_text(self.site.tokens["observe"])
        settings = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{
                "job_name": "hostler", "authorization": {"credentials_file": str(token)},
                "static_configs": [{"targets": [f"127.0.0.1:{self.site.port}"]}],
            }],
        }
        (self.folder / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML
        log = open(self.folder / "prometheus.log", "wb")
        self.addCleanup(log.close)
        self.server = subprocess.Popen(
            [PROGRAM, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self.server.wait, PATIENCE)
        self.addCleanup(self.server.kill)

    def ask(self, path, **params):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(params)}")
            answer = connection.getresponse()
            return json.loads(answer.read()).get("data") if answer.status == 200 else None
        except OSError:
            return None  # it starts
        finally:
            connection.close()

    def query(self, text):
        """The samples of a query, by the labels that say what they are of."""
        found = (self.ask("query", query=text) or {}).get("result", [])
        own = ("__name__", "instance", "job")
        return {tuple(value for name, value in sorted(one["metric"].items()) if name not in own): float(one["value"][1]) for one in found}

    def test_what_is_counted_arrives_as_it_was(self):
        for number in range(3):
            self.site.value("calls.run", {"tool": "t.add", "arguments": {"a": number, "b": 1}})
        self.site.post("calls.run", {"tool": "t.add", "arguments": {"a": "\"}\n# EOF\n", "b": []}})
        counted = until(lambda: (found := self.query("hostler_tool_calls_total")).get(("success", "t.add")) == 3 and found)
        self.assertIn(("INVALID_PARAMS", "t.add"), counted)
        self.assertEqual(self.query("up"), {(): 1.0})
        target = until(lambda: self.ask("targets"))["activeTargets"][0]
        self.assertEqual((target["health"], target["lastError"]), ("up", ""))
        known = until(lambda: self.ask("metadata"))
        self.assertEqual(known["hostler_tool_calls"][0]["type"], "counter")
        histograms = [name for name, about in known.items() if name.startswith("hostler") and about[0]["type"] == "histogram"]
        self.assertTrue(histograms)
        for name in histograms:
            count, last = (self.query(f'sum by (tool) ({name}_{part}tool="t.add"}})') for part in ("count{", 'bucket{le="+Inf",'))
            self.assertEqual(count, last, name)
        self.assertTrue(all(about[0]["help"] for name, about in known.items() if name.startswith("hostler")), "each is explained")


if __name__ == "__main__":
    unittest.main()
