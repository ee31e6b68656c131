"""The table of what can go wrong: for each row the code, the words that must be said, and what holds afterwards. The
worker of the same file lives on or was replaced, as the row says, and a call of a neighbour that was under way all the
time never noticed."""

import contextlib
import http.server
import json
import os
import re
import ssl
import subprocess
import threading
import unittest
from pathlib import Path

from harness import HEADER, TOOLS, Gate, config_file, connected, environment, eventually_async, gone, run, scratch, write_tool

SECRET = "s3cr3t/p@ss word"
SAME, NEW = "same worker", "new worker"


# Tool, arguments, code, words, worker afterwards.
EXCEPTIONS = [
    ("raises", {}, "TOOL_ERROR", ["ValueError: the boiler is cold"], SAME),
    ("chained", {}, "TOOL_ERROR", ["RuntimeError: no steam (table.py:", "in chained)"], SAME),
    ("grouped", {}, "TOOL_ERROR", ["E"], SAME),
    ("tells_secret", {"how": "exception"}, "TOOL_ERROR", ["ValueError: 401", "?key=[secret E2E_SECRET]"], SAME),
    ("tells_secret", {"how": "local"}, "TOOL_ERROR", ["ValueError", "[secret E2E_SECRET]"], SAME),
    ("types", {}, "TOOL_ERROR", ["EOFError", "take the value as an argument (table.py:"], SAME),
    ("asks_to_exit", {}, "TOOL_ERROR", ["asked to exit with status 2", "raise an exception or return"], SAME),
    ("runs_out", {"of": "memory"}, "RESOURCE_EXHAUSTED", ["ran out of memory", "process less"], SAME),
    ("runs_out", {"of": "disk"}, "RESOURCE_EXHAUSTED", ["no disk space left", "/var/big"], SAME),
    ("runs_out", {"of": "files"}, "RESOURCE_EXHAUSTED", ["too many open files", "ulimit -n"], SAME),
]
DEATHS = [
    ("exits", {}, "TOOL_CRASHED", ["exited with code 3 during the call at table.py:", "in exits", "the next call starts a new worker"], NEW),
    ("aborts", {}, "TOOL_CRASHED", ["crashed with SIGABRT during the call at table.py:", "in aborts"], NEW),
    ("segfaults", {}, "TOOL_CRASHED", ["crashed with SIGSEGV during the call at table.py:", "in segfaults"], NEW),
    ("overflows", {}, "TOOL_CRASHED", ["crashed with SIGSEGV"], NEW),
    ("tells_secret", {"how": "death"}, "TOOL_CRASHED", ["exited with code 3"], NEW),
    ("eats", {"megabytes": 4000}, "RESOURCE_EXHAUSTED", ["MB of memory", "its limit is 256 MB", "`max_memory`"], NEW),
]
TOO_LONG = [
    ("waits", {}, "TOOL_TIMEOUT", ["did not answer in 600ms", "interrupted at table.py:", "in waits", "`timeout`"], SAME),
    ("loops", {}, "TOOL_TIMEOUT", ["interrupted at table.py:", "in loops"], SAME),
    ("awaits", {}, "TOOL_TIMEOUT", ["interrupted at table.py:", "in _rests (inside asyncio/"], SAME),
    ("matches", {}, "TOOL_TIMEOUT", ["in matches (inside re"], SAME),
    ("loops_in_c", {}, "TOOL_TIMEOUT", ["stopped at table.py:", "in loops_in_c"], NEW),
]
RESULTS = [
    ("returns", {"what": "nan"}, "INVALID_OUTPUT", ["result.rows[1]: nan is not JSON; return None"], SAME),
    ("returns", {"what": "inf"}, "INVALID_OUTPUT", ["result[0]: inf is not JSON"], SAME),
    ("returns", {"what": "set"}, "INVALID_OUTPUT", ["result.items[1].tags: range is not JSON; return a list"], SAME),
    ("returns", {"what": "file"}, "INVALID_OUTPUT", ["result: TextIOWrapper is not JSON; return its content (.read())"], SAME),
    ("returns", {"what": "object"}, "INVALID_OUTPUT", ["result.thing: object is not JSON"], SAME),
    ("returns", {"what": "cycle"}, "INVALID_OUTPUT", ["result.loop", "circular reference"], SAME),
    ("returns", {"what": "deep"}, "INVALID_OUTPUT", ["nested deeper than about 120 levels"], SAME),
    ("returns", {"what": "keys"}, "INVALID_OUTPUT", ["result.a", "two keys become the same text \"1\""], SAME),
    ("returns", {"what": "large"}, "INVALID_OUTPUT", ["70 MB", "the limit is 64 MB", "write it to a file and return the path"], SAME),
]
LOAD = {"fuel": "coal", "tons": 1.5}
ARGUMENTS = [
    ("wants", {"count": 1}, "INVALID_PARAMS", ["missing argument `load` (object)"], SAME),
    ("wants", {"count": 1, "load": LOAD, "fule": "coal"}, "INVALID_PARAMS", ["unknown argument `fule`", "`fuel`"], SAME),
    ("wants", {"count": "one", "load": LOAD}, "INVALID_PARAMS", ["`count`", "integer", "\"one\""], SAME),
    ("wants", {"count": 2**65, "load": LOAD}, "INVALID_PARAMS", ["`count`", "too large to be exact", "string"], SAME),
    ("wants", {"count": 1, "load": LOAD, "fuel": "oil"}, "INVALID_PARAMS", ["`fuel`", "\"coal\"", "\"wood\"", "\"oil\""], SAME),
    ("wants", {"count": 1, "load": {"fuel": "coal"}}, "INVALID_PARAMS", ["missing field `load.tons` (number)"], SAME),
    ("wants", {"count": 1, "load": {**LOAD, "tonns": 2}}, "INVALID_PARAMS", ["unknown field `load.tonns`, did you mean `tons`?"], SAME),
    ("wants", {"count": 1, "load": {**LOAD, "tons": "many"}}, "INVALID_PARAMS", ["`load.tons`: expected number"], SAME),
    ("wants", {"count": 1, "load": LOAD, "names": ["a", 2]}, "INVALID_PARAMS", ["`names[1]`: expected string"], SAME),
    ("wants", {"count": 1, "load": LOAD, "names": '["a"]'}, "INVALID_PARAMS", ["contains JSON", "send a list"], SAME),
    ("wants", {"count": 1, "load": json.dumps(LOAD)}, "INVALID_PARAMS", ["contains JSON", "send an object"], SAME),
]
SECRETS = [
    ("reads_missing", {}, "MISSING_CREDENTIALS", ["E2E_MISSING", "[secrets]", "hostler's environment"], SAME),
    ("reads_undeclared", {}, "TOOL_ERROR", ["E2E_OTHER is not declared", "`secrets = [...]`", "add \"E2E_OTHER\" to `secrets`"], SAME),
    ("tells_secret", {"how": "exception"}, "TOOL_ERROR", ["[secret E2E_SECRET]"], SAME),
]
ROWS = EXCEPTIONS + DEATHS + TOO_LONG + RESULTS + ARGUMENTS + SECRETS
# The limit of the file is for those that are to meet it: a busy machine takes as long to write 70 MB, or to start a process.
ALL = re.findall(r"^(?:async )?def ([a-z]\w*)", (TOOLS / "table.py").read_text(encoding="utf-8"), re.M)
PATIENT = "".join(f'[tool."table.{tool}"]\ntimeout = "60s"\n' for tool in sorted(set(ALL) - {row[0] for row in TOO_LONG}))


class Calls(unittest.IsolatedAsyncioTestCase):
    """Rows about calls. Each class of them shares one hostler and one neighbour."""

    def patient(self, **env):
        return connected(config=config_file(scratch(self), PATIENT), env=environment(**env))

    async def rows(self, rows):
        gate = Gate(scratch(self))
        async with self.patient(E2E_SECRET=SECRET, E2E_MISSING=None) as hostler:
            neighbour, pid = await hostler.start("slow_wait_at", gate=str(gate.path))
            for tool, arguments, code, words, worker in rows:
                with self.subTest(tool=tool, **arguments):
                    await self.row(hostler, f"table_{tool}", arguments, code, words, worker)
                    self.assertFalse(neighbour.done(), "the neighbour is still at work")
            gate.open()
            self.assertEqual((await neighbour).value, {"pid": pid})
            return hostler.stderr()

    async def row(self, hostler, tool, arguments, code, words, worker):
        before = await hostler.call("table_well")
        answer = await hostler.call(tool, **arguments)
        self.assertEqual(answer.code, code, answer.text)
        for word in words:
            self.assertIn(word, answer.message)
        self.assertNotIn(SECRET, str(answer.result), "no secret is told anywhere")
        after = await hostler.call("table_well", number=2)
        self.assertEqual(after.value, 2)
        self.assertEqual(SAME if after.worker == before.worker else NEW, worker)
        return answer

    async def test_exceptions(self):
        await self.rows(EXCEPTIONS)

    async def test_tracebacks_show_the_authors_frames(self):
        async with self.patient() as hostler:
            chained = (await hostler.call("table_chained")).details
            self.assertIn('{}["valve"]', chained["traceback"])
            self.assertIn("The above exception was the direct cause", chained["traceback"])
            self.assertNotIn("hostler_worker", chained["traceback"])
            grouped = (await hostler.call("table_grouped")).details["traceback"]
            for words in ("ValueError: cold", "OSError: wet") if "ExceptionGroup" in grouped else ("3.11",):
                self.assertIn(words, grouped)

    async def test_deaths(self):
        await self.rows(DEATHS)

    async def test_the_last_words_of_a_process(self):
        async with self.patient() as hostler:
            details = (await hostler.call("table_exits")).details
            self.assertEqual((details["exit_code"], details["stderr"]), (3, "last words"))

    async def test_calls_that_take_too_long(self):
        await self.rows(TOO_LONG)

    async def test_results(self):
        await self.rows(RESULTS)

    async def test_arguments(self):
        await self.rows(ARGUMENTS)

    async def test_arguments_are_refused_before_a_worker_is_asked(self):
        async with self.patient() as hostler:
            answer = await hostler.call("table_wants", count=1)
            self.assertEqual((answer.code, answer.worker), ("INVALID_PARAMS", None))
            first = await hostler.call("table_wants", count=1, load={"fuel": "coal", "tons": 1})
            self.assertEqual((first.value, first.metadata["cold"]), (1, True))

    async def test_secrets(self):
        log = await self.rows(SECRETS)
        self.assertNotIn(SECRET, log)

    async def test_noise(self):
        async with self.patient() as hostler:
            before = await hostler.call("table_well")
            printed = await hostler.call("table_prints", megabytes=10)
            self.assertEqual(printed.value, "printed")
            self.assertRegex(printed.output[-60:], r"\[output cut: \d+ more bytes\]$")
            written = await hostler.call("table_writes_from_c")
            self.assertEqual(written.value, "written")
            for words in ("from C\n", "from a child\n", '"result":"forged"'):
                self.assertIn(words, written.output)
            asked = await hostler.call("table_asks")
            self.assertEqual((asked.code, "EOFError" in asked.message), ("TOOL_ERROR", True))
            flooded = await hostler.call("table_floods")
            self.assertEqual((flooded.value, "output cut" in flooded.output), ("flooded", True))
            self.assertEqual((await hostler.call("table_well")).worker, before.worker)

    async def test_no_secret_in_output_or_log(self):
        async with self.patient(E2E_SECRET=SECRET, HOSTLER_LOG="debug") as hostler:
            answer = await hostler.call("table_tells_secret", how="nothing")
            self.assertFalse(answer.failed, answer.text)
            self.assertIn("the key is [secret E2E_SECRET]", answer.output)
            self.assertIn("raw [secret E2E_SECRET]", answer.output)
            self.assertNotIn("p@ss", str(answer.result))
            log = hostler.stderr()
            self.assertIn("with [secret E2E_SECRET]", log)
            self.assertNotIn("p@ss", log)
            self.assertNotIn("s3cr3t", log)


MESSAGES = Path(__file__).with_name("messages.txt")
MESSAGES_OF_FILES = Path(__file__).with_name("messages_of_files.txt")


class Messages(unittest.IsolatedAsyncioTestCase):
    """Every message as a person reads it in a terminal; a model reads its first line. HOSTLER_UPDATE=1 writes them anew."""

    async def test_messages_are_what_they_were(self):
        env, config = environment(E2E_SECRET=SECRET, E2E_MISSING=None), config_file(scratch(self), PATIENT)
        told = []
        async with connected(config=config, env=env) as hostler:
            for tool, arguments, code, _, _ in ROWS:
                if tool in UNSTEADY:
                    continue
                answer = await hostler.call(f"table_{tool}", **arguments)
                done = run("call", "--tools", TOOLS, "--config", config, f"table.{tool}", "--input", json.dumps(arguments), env=env)
                person = steady(done.stderr)
                self.assertIn(f"error: {steady(answer.text)}", person, "a person and a model are told the same")
                told.append(f"## {tool} {json.dumps(arguments)}: exit status {done.returncode}\n{person}")
        text = "\n".join(told)
        if os.environ.get("HOSTLER_UPDATE"):
            MESSAGES.write_text(text, encoding="utf-8")
        self.assertEqual(MESSAGES.read_text(encoding="utf-8"), text)


    def test_messages_of_files_are_what_they_were(self):
        """Files that cannot be served, as a person reads it; of uv's words, which change, only that they follow."""
        tools = scratch(self) / "tools"
        tools.mkdir()
        told = []
        for name, text in FILES.items():
            (tools / f"{name}.py").write_bytes(text if isinstance(text, bytes) else text.encode())
            done = run("call", "--tools", tools, f"{name}.well")
            said = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
            said = re.sub(r"( uv: ).*", r"\1…", said.replace(str(tools), "TOOLS"))
            said = re.sub(r"this platform \([^)]+\)", "this platform (HERE)", said)
            told.append(f"## {name}\n{said}\n")
        text = "\n".join(told)
        if os.environ.get("HOSTLER_UPDATE"):
            MESSAGES_OF_FILES.write_text(text, encoding="utf-8")
        self.assertEqual(MESSAGES_OF_FILES.read_text(encoding="utf-8"), text)


# What these say depends on the interpreter, or on the moment.
UNSTEADY = {"grouped", "overflows", "eats", "matches", "loops_in_c"}


def steady(text):
    """A message without what differs from machine to machine: places, carets, code that some interpreters quote."""
    text = re.sub(r'File ".*?/([^/"]+\.py)", line \d+', r'File "\1", line N', text.replace(str(TOOLS), "TOOLS"))
    text = re.sub(r"\.py:\d+", ".py:N", text)
    text = re.sub(r"<object object at 0x[0-9a-f]+>", "<object>", text)
    # Other tests kill hostlers, and any start may be the one that finds what they left.
    text = re.sub(r"^\S+ +WARN ended (?:a process|processes) left behind .*\n", "", text, flags=re.M)
    return "".join(line for line in text.splitlines(True) if not re.fullmatch(r"[\s~^]*\n?", line))


BODY = "def well(number: int = 1) -> int:\n    return number\n"


def header(*lines):
    return "# /// script\n" + "".join(f"# {line}".rstrip() + "\n" for line in lines) + "# ///\n"


def toml(*lines):
    return header(*lines) + BODY


FILES = {
    "never_closed": "# /// script\n# dependencies = []\n\n" + BODY,
    "other_word": "# /// scripts\n# dependencies = []\n# ///\n" + BODY,
    "two_slashes": "# // script\n# dependencies = []\n# //\n" + BODY,
    "duplicate": toml("dependencies = []", "dependencies = []"),
    "two_blocks": HEADER + "\n" + HEADER + BODY,
    "open_list": toml("dependencies = [", '  "httpx",', 'requires-python = ">=3.9"'),
    "open_text": toml('requires-python = ">=3.9', "dependencies = []"),
    "no_comma": toml("dependencies = [", '  "httpx"', '  "rich"', "]"),
    "no_quotes": toml("dependencies = [httpx]"),
    "number_in_list": toml('dependencies = ["six", 3]'),
    "no_version": toml('dependencies = ["six >= "]'),
    "text_for_list": toml('dependencies = "httpx"'),
    "one_equals": toml('dependencies = ["markdown=3.5"]'),
    "bare_python": toml('requires-python = "3.11"'),
    "wrong_table": toml('timeout = "3s"'),
    "latin": (HEADER + "# Größe\n" + BODY).encode("latin-1"),
    "encoding": "# coding: utf8mb4\n" + BODY,
    "utf16": (HEADER + BODY).encode("utf-16-le"),
    "older_print": BODY + "print 'x'\n",
    "open_docstring": 'def other():\n    """Doc.\n    return 1\n\n\ndef well():\n    """Well."""\n    return 1\n',
    "unknown_package": toml('dependencies = ["no-such-package-in-the-shed"]'),
    "unknown_version": toml('dependencies = ["markdown==99.1"]'),
    "other_platform": toml('dependencies = ["pywin32"]'),
    "no_python": toml('requires-python = ">=3.11,<3.11.0"'),
    "undeclared": HEADER + "import yaml\n" + BODY,
    "undeclared_internal": "import yaml\n" + BODY,
    "unclosed_bracket": "x = [\n    (1, 2),\n\n" + BODY,
    "own_module_lacks": "import os.pth\n" + BODY,
    "misspelt_module": HEADER + "import jsno\n" + BODY,
    "unknown_module": HEADER + "import helpers\n" + BODY,
    "raises": HEADER + "raise RuntimeError('no coal')\n" + BODY,
    "nonlocal_of_nobody": HEADER + BODY + "def other():\n    nonlocal x\n",
    "exits": HEADER + "import sys\nsys.exit(4)\n" + BODY,
    "exits_without": HEADER + "import os, sys\nif not os.getenv('COAL_URL'):\n    print('COAL_URL is required')\n    sys.exit(1)\n" + BODY,
    "crashes": HEADER + "import os\nos._exit(3)\n" + BODY,
}


class Files(unittest.IsolatedAsyncioTestCase):
    """Rows about files: what cannot be served or started, told with its line, and mended without a restart."""

    async def rows(self, rows, env=None, config=""):
        tools = scratch(self) / "tools"
        gate = Gate(scratch(self))
        for name, text, *_ in rows:
            self.write(tools, name, text)
        write_tool(tools, "neighbour", "def wait(path: str) -> int:\n    import hostler, os\n"
                   "    hostler.progress(1, message=f'began {os.getpid()}')\n    open(path, 'rb').read()\n    return 5\n")
        async with connected(tools, env=env, config=config_file(scratch(self), config)) as hostler:
            neighbour, _ = await hostler.start("neighbour_wait", path=str(gate.path))
            for name, _, code, words in rows:
                with self.subTest(name):
                    answer = await hostler.call(f"{name}_well", number=1)
                    self.assertEqual(answer.code, code, answer.text)
                    for word in words:
                        self.assertIn(word, answer.message)
                    write_tool(tools, name, BODY)
                    mended = await hostler.call(f"{name}_well", number=3)
                    self.assertEqual((mended.failed, mended.text), (False, "3"))
                    self.assertFalse(neighbour.done(), "the neighbour is still at work")
            gate.open()
            self.assertEqual((await neighbour).value, 5)

    def write(self, tools, name, text):
        tools.mkdir(exist_ok=True)
        (tools / f"{name}.py").write_bytes(text if isinstance(text, bytes) else text.encode())

    async def test_headers(self):
        rows = [
            ("unclosed", "# /// script\n# dependencies = []\n\n" + BODY, "STARTUP_FAILED", ["line 3", "not closed", "`# ///`"]),
            ("bad_toml", header("dependencies = [") + BODY, "STARTUP_FAILED", ["line 2", "not valid TOML"]),
            ("spaced", "# /// script \n# dependencies = []\n# ///\n" + BODY, "STARTUP_FAILED", ["line 1", "`# /// script`"]),
            ("twice", HEADER + "\n" + HEADER + BODY, "STARTUP_FAILED", ["second `script` block", "line 1", "keep one"]),
        ]
        await self.rows(rows)
        tools = scratch(self) / "tools"
        for name, text, *_ in rows:
            self.write(tools, name, text)
        write_tool(tools, "neighbour", BODY)
        listed = run("list", "--tools", tools).stdout
        for name, *_ in rows:
            self.assertRegex(listed, rf"{name}.*broken")
        self.assertRegex(listed, r"neighbour\.well.*ready")

    async def test_encodings(self):
        tools = scratch(self) / "tools"
        text = 'def well() -> str:\n    return "Größe"\n'
        self.write(tools, "marked", "\ufeff" + HEADER + text)
        self.write(tools, "windows", (HEADER + text).replace("\n", "\r\n"))
        self.write(tools, "latin", ("# -*- coding: latin-1 -*-\n" + HEADER + text).encode("latin-1"))
        async with connected(tools) as hostler:
            for name in ("marked", "windows", "latin"):
                self.assertEqual(await hostler.value(f"{name}_well"), "Größe", name)

    async def test_dependencies(self):
        needs = lambda *names: header(f"dependencies = {list(names)!r}".replace("'", '"')) + BODY  # noqa: E731
        await self.rows([
            ("unknown", needs("no-such-package-in-the-shed"), "ENVIRONMENT_FAILED",
             ["\"no-such-package-in-the-shed\" (", "unknown.py:2)", "(the next call tries again). uv: "]),
            ("impossible", needs("markdown==99.1"), "ENVIRONMENT_FAILED", ["\"markdown==99.1\" (", "impossible.py:2)"]),
            ("platform", needs("pywin32"), "ENVIRONMENT_FAILED",
             ["\"pywin32\" (", "platform.py:2)", "wheel for this platform", "\"pywin32; sys_platform == 'win32'\"", "win_amd64"]),
            ("python", HEADER.replace(">=3.9", ">=3.11,<3.11.0") + BODY, "ENVIRONMENT_FAILED",
             ["requires-python = \">=3.11,<3.11.0\"", "python.py:2)"]),
            ("ancient", HEADER.replace(">=3.9", "==3.7.*") + BODY, "ENVIRONMENT_FAILED", ["ancient.py:2)", "write \">=3.9\""]),
            ("apart", needs("six==1.16.0", "six==1.15.0"), "ENVIRONMENT_FAILED",
             ["\"six==1.16.0\" (", "apart.py:2) and \"six==1.15.0\" ("]),
            ("empty", needs("six>2,<1"), "ENVIRONMENT_FAILED", ["\"six>2,<1\" (", "empty.py:2)"]),
            ("slip", needs("markdown=3.5"), "STARTUP_FAILED", ["line 2", "`dependencies`", "markdown=3.5"]),
        ])

    async def test_an_index_that_cannot_be_reached(self):
        cache = scratch(self)
        env = environment(UV_DEFAULT_INDEX="http://127.0.0.1:9/simple", UV_CACHE_DIR=cache / "uv", XDG_CACHE_HOME=cache)
        await self.rows([("far", header('dependencies = ["markdown"]') + BODY, "ENVIRONMENT_FAILED",
                          ["UV_DEFAULT_INDEX = http://127.0.0.1:9/simple (hostler's environment)", "HTTPS_PROXY", "[environment.env]"])], env=env)

    async def test_an_index_with_a_certificate_of_its_own(self):
        with self.index() as address:
            cache = scratch(self)
            env = environment(UV_DEFAULT_INDEX=address, UV_CACHE_DIR=cache / "uv", XDG_CACHE_HOME=cache, SSL_CERT_FILE=None)
            await self.rows([("guarded", header('dependencies = ["markdown"]') + BODY, "ENVIRONMENT_FAILED",
                              ["certificate", "SSL_CERT_FILE", "[environment.env]"])], env=env)

    async def test_an_index_that_refuses_or_is_broken(self):
        place = "UV_DEFAULT_INDEX in hostler's environment"
        answers = {401: [place, "credentials", "401 Unauthorized"],
                   200: ["(UV_DEFAULT_INDEX in hostler's environment)", "list of packages"],
                   404: ["\"markdown\" (", "(UV_DEFAULT_INDEX in hostler's environment)", "correct the name"],
                   403: [place, "credentials", "403 Forbidden"],
                   500: ["500 Internal Server Error", "try again later"]}
        for status, words in answers.items():
            with self.subTest(status), self.answering(status) as address:
                env = self.far_from_packages(UV_DEFAULT_INDEX=address)
                await self.rows([("refused", header('dependencies = ["markdown"]') + BODY, "ENVIRONMENT_FAILED", words)], env=env)

    async def test_an_index_that_is_no_address_or_not_to_be_asked(self):
        cases = [({"UV_DEFAULT_INDEX": "pypi.org/simple"}, ["pypi.org/simple (UV_DEFAULT_INDEX in hostler's environment)"]),
                 ({"UV_OFFLINE": "1"}, ["uv is offline (UV_OFFLINE = 1 (hostler's environment))", "unset UV_OFFLINE"])]
        for variables, words in cases:
            with self.subTest(variables):
                env = self.far_from_packages(**variables)
                await self.rows([("astray", header('dependencies = ["markdown"]') + BODY, "ENVIRONMENT_FAILED", words)], env=env)

    def far_from_packages(self, **variables):
        cache = scratch(self)
        return environment(UV_CACHE_DIR=cache / "uv", XDG_CACHE_HOME=cache, UV_HTTP_RETRIES="0", **variables)

    @contextlib.contextmanager
    def answering(self, status):
        """A package index that answers with one status, whatever it is asked."""
        class Answers(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_HEAD = do_GET

            def log_message(self, *words):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            server.shutdown()
            server.server_close()

    @contextlib.contextmanager
    def index(self):
        """A package index behind a certificate that nobody trusts."""
        folder = scratch(self)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "key", "-out", folder / "cert",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert", folder / "key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"https://localhost:{server.server_port}/simple"
        finally:
            server.shutdown()
            server.server_close()

    async def test_a_stale_lock(self):
        tools = scratch(self) / "tools"
        path = write_tool(tools, "locked", BODY, header('dependencies = ["markdown==3.6"]'))
        uv = Path(environment()["PATH"].split(":")[0]) / "uv"
        subprocess.run([uv, "lock", "--script", path], env=environment(), check=True, capture_output=True)
        write_tool(tools, "locked", BODY, header('dependencies = ["markdown==3.7"]'))
        async with connected(tools) as hostler:
            stale = await hostler.call("locked_well")
            self.assertEqual(stale.code, "ENVIRONMENT_FAILED")
            self.assertIn(f"uv lock --script {path}", stale.message)
            subprocess.run([uv, "lock", "--script", path], env=environment(), check=True, capture_output=True)
            self.assertEqual(await hostler.value("locked_well"), 1, "a new lock is seen without a restart")

    async def test_a_lock_that_nobody_merged(self):
        tools = scratch(self) / "tools"
        path = write_tool(tools, "locked", BODY, header('dependencies = ["markdown==3.6"]'))
        uv = Path(environment()["PATH"].split(":")[0]) / "uv"
        lock = [uv, "lock", "--script", path]
        subprocess.run(lock, env=environment(), check=True, capture_output=True)
        written = path.with_name("locked.py.lock")
        written.write_text("<<<<<<< HEAD\n" + written.read_text())
        async with connected(tools) as hostler:
            torn = await hostler.call("locked_well")
            self.assertIn(f"{written}:1", torn.message)
            self.assertIn(f"run `uv lock --script {path}`", torn.message)
            written.unlink()
            subprocess.run(lock, env=environment(), check=True, capture_output=True)
            self.assertEqual(await hostler.value("locked_well"), 1, "what the message says mends it")

    async def test_imports(self):
        await self.rows([
            ("missing", HEADER + "import no_such_module\n" + BODY, "STARTUP_FAILED", ["ModuleNotFoundError", "no_such_module", "line 5", "add \"no_such_module\" to `dependencies` on line 3"]),
            ("undeclared", HEADER + "import yaml\n" + BODY, "STARTUP_FAILED",
             ["`yaml` comes with the package \"pyyaml\": in the header, add \"pyyaml\" to `dependencies` on line 3"]),
            ("internal", "import yaml\n" + BODY, "STARTUP_FAILED", ["the three lines `# /// script`, `# dependencies = [\"pyyaml\"]`"]),
            ("late", HEADER + BODY.replace("    return", "    import bs4\n    return"), "TOOL_ERROR",
             ["No module named 'bs4'", "\"beautifulsoup4\"", "to `dependencies` on line 3"]),
            ("raising", HEADER + "\nraise RuntimeError('no coal')\n" + BODY, "STARTUP_FAILED", ["RuntimeError: no coal", "line 6"]),
            ("crashing", HEADER + "import ctypes\nctypes.string_at(0)\n" + BODY, "STARTUP_FAILED", ["SIGSEGV during startup, at crashing.py:6"]),
            ("dotted", HEADER + "from . import other\n" + BODY, "STARTUP_FAILED", ["cannot import name 'other' from the folder of the file", "line 5"]),
            ("beside", HEADER + "from .other import x\n" + BODY, "STARTUP_FAILED", ["No module named '.other'", "line 5"]),
            ("leaving", HEADER + "import sys\nsys.exit(4)\n" + BODY, "STARTUP_FAILED", ["asked, while it was imported, to exit with status 4", "move it into a function", "line 6"]),
            ("keyless", HEADER + "import os, sys\nif not os.environ.get('COAL_URL'):\n    print('COAL_URL is required', file=sys.stderr)\n    sys.exit(1)\n" + BODY,
             "STARTUP_FAILED", ["line 8", "last line of output: COAL_URL is required", "`pass_env = [\"COAL_URL\"]` under [tool.keyless]"]),
            ("unset", HEADER + "import os\nif not os.getenv('COAL_KEY'):\n    raise ValueError('set COAL_KEY or NO_KEY')\n" + BODY,
             "STARTUP_FAILED", ["set COAL_KEY", "`pass_env = [\"COAL_KEY\"]` under [tool.unset]"]),
            ("slow", HEADER + "import time\n\ntime.sleep(600)\n" + BODY, "STARTUP_FAILED",
             ["not ready within 1s", "slow.py:7", "`startup_timeout`"]),
        ], config='[tool]\nstartup_timeout = "1s"\n')

    async def test_a_file_that_fails_to_start_is_not_started_at_every_call(self):
        tools = scratch(self) / "tools"
        starts = scratch(self) / "starts"
        body = f"open({str(starts)!r}, 'a').write('x')\nraise RuntimeError('no coal')\n" + BODY
        write_tool(tools, "cold", body)
        async with connected(tools) as hostler:
            answers = [await hostler.call("cold_well") for _ in range(12)]
            self.assertEqual({answer.code for answer in answers}, {"STARTUP_FAILED"})
            self.assertIn("no coal", answers[-1].message)
            self.assertIn("times in a row", answers[-1].message)
            self.assertGreater(answers[-1].details["retry_after_ms"], 0)
            self.assertIn(len(starts.read_text()), (2, 3), "two starts at once, then a pause")
            write_tool(tools, "cold", BODY)
            self.assertEqual(await hostler.value("cold_well"), 1, "a mended file is not made to wait")


class Killed(unittest.IsolatedAsyncioTestCase):
    async def test_a_worker_that_somebody_kills(self):
        import os
        import signal

        gate = Gate(scratch(self))
        async with connected() as hostler:
            neighbour, _ = await hostler.start("slow_wait_at", gate=str(gate.path))
            for number, name in ((signal.SIGKILL, "SIGKILL"), (signal.SIGTERM, "SIGTERM")):
                task, worker = await hostler.start("hostile_waits")
                os.kill(worker, number)
                answer = await task
                self.assertEqual((answer.code, answer.details["signal"]), ("PROCESS_KILLED", name))
                await eventually_async(gone(worker), "it is gone")
                self.assertNotEqual((await hostler.call("hostile_well")).worker, worker)
            self.assertFalse(neighbour.done())
            gate.open()
            await neighbour


if __name__ == "__main__":
    unittest.main()
