"""Built-in tools with a sandbox: each call in a process with walls."""

import http.server
import os
import threading
import unittest

from harness import Calling, config_file, environment, scratch


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.end_headers()
        self.wfile.write(b"a page")

    def log_message(self, *_):
        pass


class WalledBuiltins(Calling):
    def setUp(self):
        self.folder, self.env = scratch(self), environment()
        (self.folder / "root").mkdir()
        (self.folder / "root/a.txt").write_text("needle\n")

    def set(self, tables, groups='"files", "search", "web", "system", "host"'):
        return config_file(self.folder, f'[builtin]\nenable = [{groups}]\nroots = ["root"]\n{tables}')

    def required(self, *tools):
        return self.set("".join(f"[tool.{tool}]\nrequires_sandbox = true\n" for tool in tools))

    def page(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_port

    def test_tools_of_every_group_work_within_walls(self):
        self.required("read_file", "list_directory", "grep", "glob", "system_metrics_snapshot")
        self.assertEqual(self.value("read_file", "path=a.txt")["content"], "needle\n")
        self.assertEqual(self.value("list_directory")["entries"][0]["name"], "a.txt")
        self.assertEqual(self.value("grep", "pattern=needle")["total"], 1)
        self.assertEqual(self.value("glob", "pattern=*.txt")["files"], ["a.txt"])
        self.assertGreater(self.value("system_metrics_snapshot")["memory"]["total"], 0)

    def test_what_its_walls_close_is_named_with_the_line_that_opens_it(self):
        config = self.set('[tool.write_file]\nsandbox = "pure"\n')
        error = self.error("write_file", "path=new.txt", "content=x")
        self.assertEqual((error["code"], error["details"].get("blocked")), ("PERMISSION_DENIED", "files"), error)
        self.assertIn(f"({config}:5)", error["message"])
        self.assertNotIn("chmod", error["message"])
        self.assertFalse((self.folder / "root/new.txt").exists())
        line = error["message"].partition("write `")[2].partition("`")[0]
        self.set(f"[tool.write_file]\n{line}\n")
        self.value("write_file", "path=new.txt", "content=x")
        self.assertEqual((self.folder / "root/new.txt").read_text(), "x")

    def test_faults_are_the_same_as_inside_hostler(self):
        self.set("")
        calls = (("read_file", "path=gone"), ("read_file", "path=/etc/passwd"), ("grep", "pattern=("))
        inside = [self.error(*call) for call in calls]
        self.required("read_file", "grep")
        self.assertEqual([self.error(*call) for call in calls], inside)

    def test_a_general_sandbox_does_not_hold_for_those_inside_hostler(self):
        self.set('[sandbox]\npreset = "pure"\n')
        self.value("write_file", "path=new.txt", "content=x")

    def test_the_host_is_asked_from_within_hostler_alone(self):
        self.required("hostler_status")
        error = self.error("hostler_status")
        self.assertEqual(error["code"], "PERMISSION_DENIED")
        self.assertIn("needs a sandbox", error["message"])

    def test_a_page_is_fetched_as_far_as_the_walls_let_it(self):
        port = self.page()
        address = f"url=http://127.0.0.1:{port}/"
        private = '[builtin.fetch_url]\nallow_private = ["127.0.0.1"]\n'
        self.set(f'{private}[tool.fetch_url]\nsandbox = "network"\n')
        self.assertEqual(self.value("fetch_url", address)["content"], "a page")
        self.set(f"{private}[tool.fetch_url]\nrequires_sandbox = true\n")
        error = self.error("fetch_url", address)
        self.assertEqual(error["details"].get("blocked"), "system_calls", "a reader has no sockets of the internet")

    def test_a_page_of_a_chosen_host_is_fetched(self):
        port, other = self.page(), self.page()
        self.set(f'[tool.fetch_url]\nsandbox = {{ preset = "pure", network = ["127.0.0.1:{port}"] }}\n')
        outcome = self.outcome("fetch_url", f"url=http://127.0.0.1:{port}/")
        if "not available here" in str(outcome["error"]) or "namespaces" in str(outcome["error"]):
            self.skipTest("this system has no network for each process")
        self.assertEqual(outcome["result"]["content"], "a page", outcome)
        error = self.error("fetch_url", f"url=http://127.0.0.1:{other}/")
        self.assertEqual(error["details"].get("blocked"), "network", error)
        self.assertIn(f'"127.0.0.1:{other}"', error["message"])

    def test_its_process_has_nothing_of_hostlers_environment(self):
        # A program that its tool starts shows what the process has.
        spy = self.folder / "bin/git"
        spy.parent.mkdir()
        spy.write_text('#!/bin/sh\necho $(env) >&2\nexit 1\n')
        spy.chmod(0o755)
        self.env |= {"PATH": f"{spy.parent}:{os.environ['PATH']}", "MY_TOKEN": "s3cret-value"}
        self.set('[tool.git_status]\nsandbox = { read = ["/"], network = "off" }\n')
        error = self.error("git_status")
        self.assertIn("PATH=", str(error), "the spy was asked")
        self.assertNotIn("s3cret-value", str(error))


if __name__ == "__main__":
    unittest.main()
