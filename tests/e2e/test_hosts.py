"""Sandboxes with chosen hosts: what a tool reaches through its proxy, and that there is no other way."""

import contextlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from harness import Calling, config_file, environment, eventually, run, scratch, supervisor, write_tool
from wire import Wire, call

TOOL = '''
import json, os, socket, urllib.request

def get(url: str) -> str:
    return urllib.request.urlopen(url, timeout=10).read().decode()

def post(url: str, size: int) -> int:
    return int(urllib.request.urlopen(url, data=b"x" * size, timeout=20).read())

def tried(ways: dict) -> dict:
    return {name: attempt(*way) for name, way in ways.items()}

def attempt(kind: str, *given) -> str | None:
    """What kept it back; None if nothing did."""
    try:
        if kind == "get":
            get(*given)
        elif kind == "tunnel":
            target, = given
            proxy = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
            link = socket.create_connection((proxy[0], int(proxy[1])), 10)
            link.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
            status = link.makefile("rb").readline().split()[1].decode()
            return None if status == "200" else status
        elif kind == "stream":
            socket.create_connection(tuple(given), 5).close()
        elif kind == "datagram":
            link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            link.settimeout(0.5)
            link.sendto(b"ping", tuple(given))
            link.recv(16)
        elif kind == "named":
            link = socket.socket(socket.AF_UNIX)
            link.connect(given[0].replace("@", "\\0", 1))
        elif kind == "resolve":
            socket.getaddrinfo(given[0], 80)
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
'''
PROGRAM = '''#!/usr/bin/env python3
import json, sys, urllib.request
if "--schema" in sys.argv:
    print(json.dumps({"parameters": {"type": "object", "properties": {"url": {"type": "string"}}}}))
    sys.exit()
print(json.dumps(urllib.request.urlopen(json.load(sys.stdin)["url"], timeout=10).read().decode()))
'''
FLOOD = '''#!/usr/bin/env python3
import json, os, socket, sys
if "--schema" in sys.argv:
    print(json.dumps({"parameters": {"type": "object", "properties": {"url": {"type": "string"}}}}))
    sys.exit()
url, links = json.load(sys.stdin)["url"], []
for _ in range(20):
    link = socket.create_connection(("127.0.0.1", 3128), 5)
    link.sendall(f"POST {url} HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 1000000000\\r\\n\\r\\n".encode())
    link.settimeout(0.2)
    try:
        while True:
            link.send(b"x" * 65536)
    except TimeoutError:
        links.append(link)
print(len(links))
'''


class Pages(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.send_header("Content-Length", "0")
            return self.end_headers()
        return self.answer(f"page {self.path} of {self.headers['Host']}")

    def do_POST(self):
        left = size = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 65536)))
        self.answer(str(size))

    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Hosts(Calling):
    def setUp(self):
        if sys.platform != "linux":
            raise unittest.SkipTest("only Linux has these walls")
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        self.env = environment(XDG_STATE_HOME=str(self.folder / "state"), HTTPS_PROXY="http://192.0.2.1:1", NO_PROXY="*")
        self.one, self.other = self.server(), self.server()
        write_tool(self.tools, "web", TOOL)
        self.configure(f'"127.0.0.1:{self.one}"')
        if "chosen hosts" not in run("doctor", "--offline", env=self.env, cwd=self.folder).stdout.split("no walls for")[0]:
            raise unittest.SkipTest("this system gives processes no network of their own (user namespaces)")

    def server(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def configure(self, *hosts, more=""):
        config_file(self.folder, f'tools = ["tools"]\n[tool.web]\nsandbox = {{ preset = "pure", network = [{", ".join(hosts)}] }}\n{more}')

    def test_listed_hosts_are_reached(self):
        page = f"page /a?b=c of 127.0.0.1:{self.one}"
        self.assertEqual(self.value("web.get", f"url=http://127.0.0.1:{self.one}/a?b=c"), page)
        self.assertEqual(self.value("web.get", f"url=http://127.0.0.1:{self.one}/to//a?b=c"), page)
        self.assertEqual(self.value("web.post", f"url=http://127.0.0.1:{self.one}/", "size=5000000"), 5_000_000)
        tried = self.value("web.tried", "ways:=" + json.dumps({"tunnel": ["tunnel", f"127.0.0.1:{self.one}"]}))
        self.assertEqual(tried, {"tunnel": None})

    def test_executables_and_commands_have_the_same_way_out(self):
        program = self.tools / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        hosts = f'sandbox = {{ preset = "pure", network = ["127.0.0.1:{self.one}"] }}\n'
        config_file(self.folder, f'tools = ["tools"]\n[builtin]\nenable = ["bash"]\nroots = ["tools"]\n[tool.program]\n{hosts}[tool.bash]\n{hosts}')
        url = f"http://127.0.0.1:{self.one}/a"
        self.assertEqual(self.value("program", f"url={url}"), f"page /a of 127.0.0.1:{self.one}")
        closed = self.outcome("program", f"url=http://127.0.0.1:{self.other}/a")["error"]
        self.assertEqual(closed["details"]["blocked"], "network", closed)
        self.assertEqual(self.value("bash", "command=echo $http_proxy")["stdout"], "http://127.0.0.1:3128\n")

    def test_no_other_way_leads_out(self):
        one, other = self.one, self.other
        path, name = str(self.folder / "s"), f"@hostler-{os.getpid()}"
        for address in (path, name.replace("@", "\0")):
            link = socket.socket(socket.AF_UNIX)
            self.addCleanup(link.close)
            link.bind(address)
            link.listen()
        answering = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(answering.close)
        answering.bind(("127.0.0.1", 0))
        threading.Thread(target=lambda: [answering.sendto(b"pong", answering.recvfrom(16)[1])], daemon=True).start()
        # A listed name that leads to an address of this machine, as one does whose owner rebinds it.
        local = next((name for name in ("ip6-localhost", "ip6-loopback", socket.gethostname()) if resolves(name)), "localhost.localdomain")
        self.configure(f'"127.0.0.1:{one}"', f'"{local}"', '"*.example.invalid"')
        ways = {
            "directly": (r"refused", "stream", "127.0.0.1", one),
            "another host directly": (r"unreachable", "stream", "192.0.2.1", 80),
            "IPv6 directly": (r"unreachable|Cannot assign|refused", "stream", "2001:db8::1", 80),
            "IPv4 within IPv6": (r"refused|unreachable", "stream", "::ffff:127.0.0.1", one),
            "a datagram": (r"[Tt]imed? ?out|refused", "datagram", "127.0.0.1", answering.getsockname()[1]),
            "names": (r"gaierror", "resolve", "example.invalid"),
            "a Unix socket": (r"Permission|not permitted", "named", path),
            "an abstract socket": (r"Permission|not permitted|refused", "named", name),
            "another port": ("403", "tunnel", f"127.0.0.1:{other}"),
            "another address of this machine": ("403", "tunnel", f"127.0.0.2:{one}"),
            "a decimal address": ("403", "tunnel", f"2130706433:{one}"),
            "a hexadecimal address": ("403", "tunnel", f"0x7f000001:{one}"),
            "a short address": ("403", "tunnel", f"127.1:{one}"),
            "an octal address": ("403", "tunnel", f"0177.0.0.1:{one}"),
            "a mapped address": ("403", "tunnel", f"[::ffff:127.0.0.2]:{one}"),
            "a name of this machine": ("403", "tunnel", f"localhost:{one}"),
            "a listed name of this machine": ("403|502", "tunnel", f"{local}:{other}"),
            "metadata": ("403", "tunnel", "169.254.169.254:80"),
            "metadata, mapped": ("403", "tunnel", "[::ffff:169.254.169.254]:80"),
            "a private address": ("403", "tunnel", "10.0.0.1:80"),
            "a name that ends like a listed one": ("403", "tunnel", "xexample.invalid:80"),
            "a listed name within another": ("403", "tunnel", "a.example.invalid.example.com:80"),
            "a redirect": (r"HTTP Error 403: Closed", "get", f"http://127.0.0.1:{one}/to/http://127.0.0.1:{other}/"),
            "a name in the address": (r"403: Closed", "get", f"http://127.0.0.1:{one}@127.0.0.1:{other}/"),
        }
        given = "ways:=" + json.dumps({name: list(way) for name, (_, *way) in ways.items()})
        found = self.value("web.tried", given)
        for name, (expected, *_) in ways.items():
            with self.subTest(name):
                self.assertRegex(found[name] or "it leads out", expected)
        self.configure()
        config_file(self.folder, 'tools = ["tools"]\n')
        free = self.value("web.tried", given.replace("tunnel", "nothing"))
        for name in ("directly", "a datagram", "a Unix socket", "an abstract socket", "a redirect"):
            with self.subTest(name, kind="free"):
                self.assertIsNone(free[name], "a way that never leads out proves nothing")

    def test_the_other_walls_hold(self):
        write_tool(self.tools, "escapes", (Path(__file__).parent / "escapes.py").read_text(), header="")
        write_tool(self.tools, "a", "import escapes\n\ndef run(ways: dict) -> dict:\n    return escapes.escaped(ways)\n\n"
                   "def capabilities() -> str:\n    return open('/proc/self/status').read()\n")
        stranger = subprocess.Popen(["sleep", "600"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        config_file(self.folder, f'tools = ["tools"]\n[tool.a]\nsandbox = {{ preset = "pure", network = ["127.0.0.1:{self.one}"] }}\n')
        ways = {
            "signal": ["signalled", [stranger.pid]],
            "signal to hostler": ["signalled_above", []],
            "memory": ["text_of", [f"/proc/{stranger.pid}/mem"]],
            "settings": ["text_of", [str(self.folder / "hostler.toml")]],
            "mount": ["system_call", ["mount", 0, 0, 0, 0, 0]],
            "another network": ["namespace", [0x40000000]],
            "another user": ["namespace", [0x10000000]],
            "raw packets": ["raw", [socket.AF_INET, socket.SOCK_RAW, 1]],
            "packets": ["raw", [socket.AF_PACKET, socket.SOCK_RAW]],
        }
        found = self.value("a.run", "ways:=" + json.dumps(ways))
        for name in ways:
            with self.subTest(name):
                self.assertRegex(found[name] or "it leads out", r"Error\((1|2|3|13|22|38), |no effect|no namespace")
        status = dict(line.split(":", 1) for line in self.value("a.capabilities").splitlines())
        for which in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            self.assertEqual(int(status[which], 16), 0, which)
        self.assertEqual((status["NoNewPrivs"].strip(), status["Uid"].split()[0]), ("1", str(os.getuid())))

    def test_an_error_says_what_would_open_it(self):
        url = f"http://127.0.0.1:{self.other}/a"
        error = self.outcome("web.get", f"url={url}")["error"]
        self.assertEqual((error["code"], error["details"]["blocked"]), ("TOOL_ERROR", "network"))
        line = f'sandbox = {{ preset = "pure", network = ["127.0.0.1:{self.one}", "127.0.0.1:{self.other}"] }}'
        self.assertIn(f"does not let it reach 127.0.0.1:{self.other}. If it should, write `{line}` under [tool.web]", error["message"])
        config_file(self.folder, f'tools = ["tools"]\n[tool.web]\n{line}\n')
        self.assertIn("page /a", self.value("web.get", f"url={url}"))
        write_tool(self.tools, "raw", "import socket\n\ndef f() -> None:\n    socket.create_connection(('192.0.2.1', 80), 5)\n")
        self.configure(f'"127.0.0.1:{self.one}"', more='[tool.raw]\nsandbox = { network = ["192.0.2.1"] }\n')
        error = self.outcome("raw.f")["error"]
        self.assertEqual(error["details"]["blocked"], "network", error)
        self.assertIn("HTTPS_PROXY", error["message"])

    def test_each_table_has_to_list_a_host(self):
        header = f'# /// script\n# dependencies = []\n# [tool.hostler]\n# sandbox = {{ network = ["127.0.0.1:{self.one}"] }}\n# ///\n'
        write_tool(self.tools, "narrow", TOOL, header=header)
        ways = "ways:=" + json.dumps({port: ["tunnel", f"127.0.0.1:{port}"] for port in (self.one, self.other)})
        for settings, expected in (
            ('network = ["127.0.0.1"]', [None, "403"]),
            (f'network = ["127.0.0.1:{self.other}"]', ["403", "403"]),
            ('network = "on"', [None, "403"]),
        ):
            with self.subTest(settings):
                config_file(self.folder, f'tools = ["tools"]\n[sandbox]\n{settings}\n')
                self.assertEqual(list(self.value("narrow.tried", ways).values()), expected)
        config_file(self.folder, 'tools = ["tools"]\n[sandbox]\nnetwork = "off"\n')
        ways = "ways:=" + json.dumps({"directly": ["stream", "127.0.0.1", self.one]})
        self.assertIn("not permitted", self.value("narrow.tried", ways)["directly"])

    def test_a_tool_leaves_nothing_open(self):
        """Requests to a host that never reads, and a tool that has ended."""
        silent = socket.socket()
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        program = self.tools / "program"
        program.write_text(FLOOD)
        program.chmod(0o755)
        host = "127.0.0.1:%d" % silent.getsockname()[1]
        config_file(self.folder, f'tools = ["tools"]\n[tool.program]\nsandbox = {{ network = ["{host}"] }}\n')
        wire = Wire(self.tools, cwd=self.folder, arguments=("--standalone",), env=self.env)
        self.addCleanup(wire.__exit__)
        wire.open()

        hostler = supervisor(wire.process.pid)
        if os.geteuid() != 0:
            self.skipTest("only root sees the files of hostler")

        def files():
            return len(os.listdir(f"/proc/{hostler}/fd"))
        for number in range(1, 4):
            wire.send(call(number, "program", url=f"http://{host}/"))
            self.assertEqual(wire.answer(number)["result"]["structuredContent"], {"result": 20})
            if number == 1:
                eventually(lambda: files() < 60, "those of the first are closed")
                before = files()
        eventually(lambda: files() <= before + 4, f"{files()} are open, and {before} were")

    def test_without_namespaces_nothing_starts(self):
        inside = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\""

        def without(*words):
            # A namespace in which no more can be made.
            return subprocess.run(["unshare", "--user", "--map-root-user", "sh", "-c", inside, "sh", os.environ["HOSTLER_BIN"], *words],
                                  env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=60)
        if shutil.which("unshare") is None:
            self.skipTest("unshare is not installed")
        program = self.tools / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        hosts = 'sandbox = { network = ["192.0.2.1"] }\n'
        config_file(self.folder, f'tools = ["tools"]\n[tool.program]\n{hosts}')
        called = without("call", "--json", "program", "url=x")
        self.assertIn("chosen hosts (needs user and network namespaces)", called.stdout + called.stderr)
        doctor = json.loads(without("doctor", "--offline", "--json").stdout)
        found = next(check for check in doctor if check["about"] == "sandbox")
        self.assertEqual((found["state"], "user.max_user_namespaces" in found["fix"]), ("bad", True), found)
        config_file(self.folder, 'tools = ["tools"]\n[tool.program]\nsandbox = "network"\n')
        doctor = json.loads(without("doctor", "--offline", "--json").stdout)
        found = next(check for check in doctor if check["about"] == "sandbox")
        self.assertEqual(found["state"], "good", "nothing asks for it")

    def test_settings_without_a_meaning_are_refused(self):
        for hosts, words in (('"https://example.org"', "is not a host"), ('"*"', "is not a host"), ("80", "expected"), ('"127.1"', "is not a host")):
            self.configure(hosts)
            done = run("call", "web.get", "url=x", env=self.env, cwd=self.folder)
            self.assertEqual(done.returncode, 2, (hosts, done.stderr))
            self.assertIn(words, done.stderr, hosts)
        self.configure('"api.example.com:443"', '"10.0.0.0/8"')
        shown = run("show", "web.get", env=self.env, cwd=self.folder).stdout
        self.assertIn("network to api.example.com:443, 10.0.0.0/8", shown)


def resolves(name):
    with contextlib.suppress(OSError):
        return bool(socket.getaddrinfo(name, 80))
    return False


if __name__ == "__main__":
    unittest.main()
