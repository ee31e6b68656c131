"""What attackers did and must not do again: secrets of inner calls, huge texts, answers that are no JSON, terminals."""

import json
import os
import pty
import subprocess
import time
import unittest

from harness import HEADER, HOSTLER, META, config_file, connected, environment, run, scratch, write_tool
from test_executables import program
from wire import HELLO, OPENING, Wire, call, line, request

KEY = "s3cret/\"w'th\" <marks> & more"
HOLDER = 'import hostler\ndef give() -> str:\n    return hostler.secret("KEY")\n'
HOLDER_HEADER = '# /// script\n# requires-python = ">=3.9"\n# [tool.hostler]\n# secrets = ["KEY"]\n# ///\n'
THIEF = """
import hostler, json
kept = []
def steal(form: str) -> str:
    kept.append(hostler.call("holder.give"))
    return tell(form)
def tell(form: str) -> str:
    value = kept[-1]
    shown = {"plain": value, "hex": value.encode().hex(), "json": json.dumps(json.dumps(value)),
             "html": json.dumps(value).replace("<", "\\\\u003c").replace("&", "\\\\u0026").replace(">", "\\\\u003e").replace("'", "\\\\u0027")}[form]
    print("printed", shown)
    hostler.log("logged " + shown)
    raise ValueError("raised " + shown)
"""

HUGE = """
def loud(megabytes: int):
    raise ValueError("begin" + "x" * (megabytes << 20) + "end")
MARKS = "\\x1b[2J\\x1b]0;owned\\x07\\x9b31m"
def escape():
    raise ValueError(MARKS)
def advance():
    import hostler, time
    hostler.progress(0.5, message="half " + MARKS)
    time.sleep(0.5)
"""

# A worker on protocol v1 whose answer is the argument, byte by byte.
LIAR = r"""
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "hello":
        os.write(1, b'{"jsonrpc":"2.0","id":0,"result":{"protocol":1,"pid":%d}}\n' % os.getpid())
    elif asked["method"] == "call":
        text = asked["params"]["kwargs"]["answer"].encode("latin-1")
        os.write(1, text.replace(b"ID", str(asked["id"]).encode()) + b"\n")
"""


# Tells others its secret, as arguments, and everybody, where faults are made after the tool has ended.
TALKER = HOLDER_HEADER + """
import hostler, os, threading, time
def pass_on(tool: str, name: str):
    return hostler.call(tool, **{name: hostler.secret("KEY")})
def pass_on_as_name(tool: str):
    return hostler.call(tool, **{hostler.secret("KEY"): 1})
def key() -> dict[str, int]:
    return {hostler.secret("KEY"): "no number"}
def undeclared():
    return hostler.secret(hostler.secret("KEY"))
def unset():
    return os.environ[hostler.secret("KEY")]
def named():
    raise type(hostler.secret("KEY"), (Exception,), {})("no name")
def in_pieces() -> int:
    value = hostler.secret("KEY")
    def write():
        os.write(2, ("begin " + value[:7]).encode())
        time.sleep(0.2)
        os.write(2, (value[7:] + " end\\n").encode())
        written.set()
    threading.Thread(target=lambda: (answered.wait(), write())).start()
    return 1
answered, written = threading.Event(), threading.Event()
def wait() -> bool:
    answered.set()
    return written.wait(10) and not time.sleep(0.2)
"""
LISTENER = """
def loud(text: str):
    print("printed", text, flush=True)
    raise ValueError("raised " + text)
def number(n: int):
    return n
"""


class Secrets(unittest.IsolatedAsyncioTestCase):
    async def test_a_secret_is_redacted_in_what_it_is_passed_to(self):
        folder = scratch(self)
        write_tool(folder / "tools", "talker", TALKER, header="")
        write_tool(folder / "tools", "listener", LISTENER)
        config = config_file(folder, "[tool.talker]\nhost_access = true\n")
        async with connected(folder / "tools", env=environment(KEY=KEY), config=config, verbose=True) as hostler:
            for name, code in (("loud", "TOOL_ERROR"), ("number", "INVALID_PARAMS")):
                with self.subTest(name):
                    parameter = {"loud": "text", "number": "n"}[name]
                    answer = await hostler.call("talker_pass_on", tool=f"listener.{name}", name=parameter)
                    self.quiet(answer)
                    self.assertIn(code, hostler.stderr())
            self.quiet(await hostler.call("talker_pass_on_as_name", tool="listener.number"))
            log = hostler.stderr()
        self.assertIn("ValueError: raised [secret KEY]", log)
        self.assertNotIn("s3cret", log)

    async def test_a_secret_is_redacted_in_faults_of_every_origin(self):
        folder = scratch(self)
        write_tool(folder / "tools", "talker", TALKER, header="")
        async with connected(folder / "tools", env=environment(KEY=KEY), verbose=True) as hostler:
            for name, code in (("key", "INVALID_OUTPUT"), ("undeclared", "TOOL_ERROR"), ("unset", "TOOL_ERROR"), ("named", "TOOL_ERROR")):
                with self.subTest(name):
                    answer = await hostler.call(f"talker_{name}")
                    self.assertEqual(answer.code, code)
                    self.quiet(answer)
            self.assertNotIn("s3cret", hostler.stderr())

    async def test_a_secret_that_is_printed_in_pieces_between_calls_is_redacted(self):
        folder = scratch(self)
        write_tool(folder / "tools", "talker", TALKER, header="")
        config = config_file(folder, "[tool.talker]\nconcurrency = 2\n")  # then it belongs to no call for certain
        async with connected(folder / "tools", env=environment(KEY=KEY), config=config, verbose=True) as hostler:
            await hostler.value("talker_in_pieces")
            self.assertTrue(await hostler.value("talker_wait"))
            log = hostler.said()
        self.assertIn("begin", log)
        self.assertIn("[secret KEY] end", log)
        self.assertNotIn("s3cret", log)

    def quiet(self, answer):
        said = json.dumps(answer.outcome) + answer.text
        self.assertIn("[secret KEY]", said)
        self.assertNotIn("s3cret", said)

    async def test_a_secret_of_an_inner_call_is_redacted_in_the_outer_one(self):
        folder = scratch(self)
        write_tool(folder / "tools", "holder", HOLDER, header=HOLDER_HEADER)
        write_tool(folder / "tools", "thief", THIEF, header="")
        async with connected(folder / "tools", env=environment(KEY=KEY), verbose=True) as hostler:
            for form in ("plain", "hex", "json", "html"):
                for name in ("thief_steal", "thief_tell"):  # the second has it from an earlier call
                    with self.subTest(form, name=name):
                        answer = await hostler.call(name, form=form)
                        said = json.dumps(answer.outcome) + answer.text
                        self.assertEqual(answer.code, "TOOL_ERROR")
                        self.assertIn("[secret KEY]", answer.message)
                        for part in ("s3cret", KEY.encode().hex()):
                            self.assertNotIn(part, said)
            log = hostler.stderr()
        self.assertIn("logged [secret KEY]", log)
        self.assertNotIn("s3cret", log)


class Texts(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        write_tool(self.folder / "tools", "huge", HUGE)

    async def test_a_huge_exception_is_a_short_fault(self):
        async with connected(self.folder / "tools") as hostler:
            answer = await hostler.call("huge_loud", megabytes=5)
        self.assertEqual(answer.code, "TOOL_ERROR")
        self.assertTrue(answer.message.startswith("ValueError: begin"), answer.message[:40])
        self.assertLessEqual(len(answer.message.encode()), 8 << 10)
        self.assertLessEqual(len(answer.details["traceback"].encode()), 64 << 10)
        self.assertLess(len(json.dumps(answer.outcome)), 160 << 10)

    def test_control_characters_of_a_fault_reach_no_terminal(self):
        words = ("call", "--tools", str(self.folder / "tools"), "huge.escape")
        piped = run(*words)
        self.assertEqual(piped.returncode, 1)
        for text in (at_a_terminal(*words), piped.stdout + piped.stderr):
            self.assertIn("ValueError", text)
            self.harmless(text)

    def test_control_characters_of_progress_and_names_reach_no_terminal(self):
        tools = self.folder / "tools"
        (tools / "na\x1b]0;owned\x07me.py").write_text(HEADER + "def f(:\n")
        for words, known in ((("call", "huge.advance"), "half"), (("doctor", "--offline"), "cannot be served"), (("warm",), "failed")):
            with self.subTest(words):
                text = at_a_terminal(words[0], "--tools", str(tools), *words[1:])
                self.assertIn(known, text)
                self.harmless(text)

    def harmless(self, text):
        for mark in ("\x1b[2J", "\x1b]0", "\x07", "\x9b"):
            self.assertNotIn(mark, text)


def at_a_terminal(*words):
    """What a command shows there."""
    terminal, theirs = pty.openpty()
    shown = subprocess.Popen([HOSTLER, *words], env=environment(NO_COLOR="1", TERM="xterm"), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        said += data
    shown.wait()
    os.close(terminal)
    return said.decode(errors="replace")


class Answers(unittest.IsolatedAsyncioTestCase):
    async def test_answers_that_are_no_json_end_their_call_at_once(self):
        tools = scratch(self) / "tools"
        schema = {"name": "liar", "protocol": "v1", "input_schema": {"type": "object"}}
        program(tools, "liar", LIAR, schema)
        async with connected(tools) as hostler:
            for answer in ('{"jsonrpc":"2.0","id":ID,"result":NaN}', '{"jsonrpc":"2.0","id":ID,"result":"\xff"}',
                           '{"jsonrpc":"2.0","id":ID,"result":1,"result":2}', '{"result":[1,,2],"id": ID,"jsonrpc":"2.0"}'):
                with self.subTest(answer):
                    began = time.monotonic()
                    said = await hostler.call("liar", answer=answer)
                    self.assertEqual(said.code, "INVALID_OUTPUT")
                    self.assertLess(time.monotonic() - began, 30)  # the time limit is five minutes
            self.assertEqual(await hostler.value("liar", answer='{"jsonrpc":"2.0","id":ID,"result":7}'), 7)

    def test_one_call_a_process(self):
        folder = scratch(self)
        write_tool(folder / "tools", "once", "import os\ndef pid() -> int:\n    return os.getpid()\n")
        for rules in ("max_calls = 1", "max_calls = 1\nmax_workers = 3\nconcurrency = 4\nmin_workers = 1"):
            with self.subTest(rules), Wire(folder / "tools", arguments=("--config", str(config_file(folder, "[tool.once]\n" + rules)))) as wire:
                wire.send(OPENING + b"".join(call(number, "once_pid") for number in range(1, 13)))
                pids = [wire.answer(number)["result"]["structuredContent"]["result"] for number in range(1, 13)]
                self.assertEqual(len(set(pids)), 12)


# A worker that cannot be interrupted and takes its leave properly: it answers, and exits a moment later.
POLITE = r"""
import json, os, signal, sys, time
def stop(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, stop)
for line in sys.stdin:
    asked = json.loads(line)
    kwargs, ends = (asked.get("params") or asked).get("kwargs"), False
    if kwargs is None:
        print(json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"protocol": 1, "pid": os.getpid()}}), flush=True)
        continue
    try:
        if kwargs["waits"]:
            time.sleep(60)
    except KeyboardInterrupt:
        ends = True
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": 7} if "id" in asked else {"result": 7}), flush=True)
    if ends:
        time.sleep(0.3)
        sys.exit()
"""


# A worker on protocol v1 that sends requests and reads no answer.
ASKER = r"""
import json, os, sys
def write(data):
    while data:
        data = data[os.write(1, data):]
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "hello":
        write(b'{"jsonrpc":"2.0","id":0,"result":{"protocol":1,"pid":%d}}\n' % os.getpid())
    elif asked["method"] == "call":
        params = {"id": asked["id"], **asked["params"]["kwargs"]["params"]}
        request = {"jsonrpc": "2.0", "id": "q", "method": asked["params"]["kwargs"]["method"], "params": params}
        data = json.dumps(request).encode() + b"\n"
        while True:
            write(data)
"""


class Requests(unittest.TestCase):
    def test_a_worker_that_reads_no_answers_ends(self):
        folder = scratch(self)
        tools = folder / "tools"
        program(tools, "asker", ASKER, {"name": "asker", "protocol": "v1", "input_schema": {"type": "object"}})
        write_tool(tools, "own", "import time\ndef wait(): time.sleep(600)\ndef seven(): return 7\n")
        config = config_file(folder, "[tool.asker]\nhost_access = true\n[limits]\nmax_queue = 100000\n[tool]\nmax_queue = 100000\n")
        with Wire(tools, arguments=("--config", str(config))) as wire:
            hello = {**HELLO, "capabilities": {"sampling": {}}}  # its questions are never answered
            wire.send(request(0, "initialize", **hello) + line(method="notifications/initialized"))
            wire.answer(0)
            rows = (("host.nothing", {}), ("host.tools", {}), ("host.call", {"tool": "own.wait", "arguments": {}}), ("host.llm", {"prompt": "?"}))
            for number, (method, params) in enumerate(rows, 1):
                with self.subTest(method):
                    wire.send(call(number, "asker", method=method, params=params))
                    fault = wire.answer(number)["result"]["_meta"][META]["error"]
                    self.assertEqual(fault["code"], "RESOURCE_EXHAUSTED", fault)
                    self.assertIn("too many requests", fault["message"])
            wire.send(call(9, "own_seven"))
            self.assertEqual(wire.answer(9)["result"]["structuredContent"]["result"], 7)


class Leaving(unittest.TestCase):
    def test_a_worker_that_ends_for_an_interruption_takes_no_further_call_with_it(self):
        for protocol in ("v1", "bare"):
            folder = scratch(self)
            schema = {"name": "polite", "protocol": protocol, "input_schema": {"type": "object"}}
            program(folder / "tools", "polite", POLITE, schema)
            config = config_file(folder, '[tool.polite]\ntimeout = "1s"\nmax_workers = 1\n')
            with Wire(folder / "tools", arguments=("--config", str(config))) as wire:
                wire.open()
                self.assertEqual(wire.value(1, "polite", waits=False), 7)
                with self.subTest(protocol):
                    wire.send(call(2, "polite", waits=True) + call(3, "polite", waits=False))
                    result = wire.answer(3)["result"]
                    self.assertFalse(result["isError"], result)


class Lines(unittest.TestCase):
    def test_a_huge_line_is_answered_and_its_memory_is_given_back(self):
        with Wire() as wire:
            wire.send(OPENING + call(1, "plain_greet", name="you"))
            wire.answer(1)
            before = resident(wire.supervisor)
            wire.send(b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"plain_greet","arguments":{"name":"')
            for _ in range(140):
                wire.send(b"x" * (1 << 20))
            wire.send(b'"}}}\n' + call(3, "plain_greet", name="me"))
            self.assertIn("error", wire.answer(2))
            self.assertEqual(wire.answer(3)["result"]["structuredContent"]["result"], "good morning, me")
            self.assertLess(resident(wire.supervisor) - before, 40 << 20)


def resident(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
