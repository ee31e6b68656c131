"""How hostler ends, and that nothing of it stays."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import shared_mode
from harness import HOSTLER, ROOT, TOOLS, alive, children, config_file, environment, eventually, gone, parent, scratch, write_tool
from wire import OPENING, Wire, call

LIMIT = 1.0  # seconds; clients send TERM after two


def hears_usr1(pid):
    """Whether a process catches USR1."""
    words = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(words["SigCgt"], 16) >> (signal.SIGUSR1 - 1) & 1)


class Questions(unittest.TestCase):
    """USR1 asks how hostler stands. Whenever it comes, it ends nobody."""

    def test_a_server_that_has_just_started(self):
        for _ in range(5):
            with Wire() as hostler:
                eventually(lambda: hears_usr1(hostler.process.pid), "it is heard")
                for _ in range(200):
                    os.kill(hostler.process.pid, signal.SIGUSR1)
                hostler.open()
                self.assertEqual(hostler.value(1, "slow_echo", number=1)["number"], 1)
                hostler.end_input()
                self.assertEqual(hostler.ended(LIMIT), 0)

    def test_a_command_that_has_nothing_to_tell(self):
        with subprocess.Popen([HOSTLER, "call", "--tools", str(TOOLS), "slow.nap", "seconds=1"], env=environment(), cwd=ROOT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
            eventually(lambda: children(command.pid) and children(children(command.pid)[0]), "it has started something")
            for pid in (command.pid, children(command.pid)[0]):
                os.kill(pid, signal.SIGUSR1)
            answer, complaint = command.communicate(timeout=60)
        self.assertEqual((command.returncode, answer.strip()), (0, "slept"), complaint)


class Ends(unittest.TestCase):
    def test_input_ends_before_anything_was_said(self):
        with Wire() as hostler:
            hostler.end_input()
            self.assertEqual(hostler.ended(LIMIT), 0)

    def test_input_ends_with_nothing_running(self):
        with Wire() as hostler:
            hostler.open()
            worker = hostler.worker(1, "slow_echo", number=1)
            launcher = parent(worker)
            self.assertNotEqual(launcher, hostler.supervisor, "uv stands between")
            hostler.end_input()
            self.assertEqual(hostler.ended(LIMIT), 0)
            shared_mode.end()
            eventually(gone(worker, launcher), "worker and launcher are gone", limit=1)

    def test_its_output_is_closed(self):
        for sockets in (False, True):
            with self.subTest(sockets=sockets), Wire(sockets=sockets) as hostler:
                hostler.open()
                worker = hostler.worker(1, "slow_echo", number=1)
                if sockets:
                    hostler.output.shutdown(socket.SHUT_RD)
                hostler.output.close()  # nothing is to be written, and the input stays open
                self.assertEqual(hostler.ended(LIMIT), 0)
                shared_mode.end()
                eventually(gone(worker), "its worker is gone", limit=1)

    def test_its_output_is_closed_with_a_call_running(self):
        with Wire() as hostler:
            hostler.open()
            worker, *_ = hostler.began(1, "slow_nap", seconds=600)
            hostler.output.close()
            self.assertEqual(hostler.ended(LIMIT), 0)
            shared_mode.end()
            eventually(gone(worker), "its worker is gone", limit=1)

    def test_a_client_that_writes_nothing_where_it_reads_is_served(self):
        with Wire(sockets=True) as hostler:
            hostler.open()
            hostler.output.shutdown(socket.SHUT_WR)
            self.assertEqual([hostler.value(number, "slow_echo", number=number)["number"] for number in (1, 2)], [1, 2])

    def test_input_ends_with_a_call_running(self):
        for tool in ("slow_nap", "slow_nap_async", "slow_deaf_to_term", "slow_with_child"):
            with self.subTest(tool), Wire() as hostler:
                hostler.open()
                processes = hostler.began(1, tool, seconds=600)
                processes.append(parent(processes[0]))
                hostler.end_input()
                result = hostler.answer(1)["result"]
                code = "CANCELLED: " if shared_mode.IS_ON else "SHUTTING_DOWN: "
                self.assertTrue(result["content"][0]["text"].startswith(code), result)
                self.assertEqual(hostler.ended(LIMIT), 0)
                shared_mode.end()
                eventually(gone(*processes), f"{processes} are gone", limit=1)

    def test_a_call_that_is_nearly_done_is_answered(self):
        ways = {"end of input": Wire.end_input, "TERM": lambda hostler: hostler.process.send_signal(signal.SIGTERM)}
        for name, way in ways.items():
            with self.subTest(name), Wire() as hostler:
                hostler.open()
                hostler.value(1, "slow_echo", number=1)
                hostler.began(2, "slow_nap", seconds=0.1)
                way(hostler)
                self.assertEqual(hostler.answer(2)["result"]["structuredContent"], {"result": "slept"})
                self.assertEqual(hostler.ended(LIMIT), 0)

    def test_signals_with_a_call_running(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number), Wire() as hostler:
                hostler.open()
                processes = hostler.began(1, "slow_with_child", seconds=600)
                processes.append(parent(processes[0]))
                hostler.process.send_signal(number)
                self.assertEqual(hostler.ended(LIMIT), 0)
                shared_mode.end()
                eventually(gone(*processes), f"{processes} are gone", limit=1)

    def test_input_ends_while_the_answers_are_not_read(self):
        folder = scratch(self)
        write_tool(folder, "big", "def text(megabytes: int) -> str:\n    return 'x' * megabytes * 2**20\n\n"
                                  "def mark(path: str) -> None:\n    open(path, 'w').close()\n")
        for sockets in (False, True):
            with self.subTest(sockets=sockets), Wire(folder, sockets=sockets) as hostler:
                hostler.open()
                mark = folder / f"all answered {sockets}"
                for number in range(4):  # more than hostler lets wait before it stops listening
                    hostler.send(call(number, "big_text", megabytes=17))
                hostler.send(call(4, "big_mark", path=str(mark)))
                eventually(mark.exists, "the answers were given", limit=30)
                eventually(lambda: sleeps(hostler.supervisor), "hostler has nothing left to do", limit=30)
                # Unheard: hostler reads no further until its answers are read.
                hostler.send(call(5, "big_mark", path=str(folder / "unheard")))
                hostler.end_input()
                self.assertEqual(hostler.ended(LIMIT), 0)

    def test_signals_with_nothing_running(self):
        with Wire() as hostler:
            hostler.open()
            worker = hostler.worker(1, "slow_echo", number=1)
            hostler.process.send_signal(signal.SIGTERM)
            self.assertEqual(hostler.ended(LIMIT), 0)
            shared_mode.end()
            eventually(gone(worker), "the worker is gone", limit=1)

    def test_signals_before_anything_was_said(self):
        with Wire() as hostler:
            hostler.process.stderr.read(0)
            eventually(lambda: listens(hostler.process.pid, signal.SIGTERM), "the keeper listens for signals")
            eventually(lambda: listens(hostler.supervisor, signal.SIGTERM), "hostler listens for signals")
            hostler.process.send_signal(signal.SIGTERM)
            self.assertEqual(hostler.ended(LIMIT), 0)

    def test_a_second_signal_ends_the_waiting(self):
        with Wire() as hostler:
            hostler.open()
            processes = hostler.began(1, "slow_nap", seconds=600)
            hostler.process.send_signal(signal.SIGTERM)
            hostler.process.send_signal(signal.SIGTERM)
            self.assertEqual(hostler.ended(LIMIT), 0)
            shared_mode.end()
            eventually(gone(*processes), "the worker is gone", limit=1)

    def test_a_second_signal_waits_for_no_call(self):
        with Wire() as hostler:
            hostler.open()
            hostler.value(1, "slow_echo", number=1)
            hostler.began(2, "slow_nap", seconds=0.45)  # after one signal it would be waited for
            for number in (signal.SIGTERM, signal.SIGINT):  # two of the same kind may become one on the way
                hostler.process.send_signal(number)
            self.assertTrue(hostler.answer(2)["result"]["content"][0]["text"].startswith("SHUTTING_DOWN: "))
            self.assertEqual(hostler.ended(LIMIT), 0)

    def test_a_reader_that_goes_away(self):
        with Wire() as hostler:
            hostler.open()
            worker = hostler.worker(1, "slow_echo", number=1)
            hostler.send(call(2, "slow_echo", number=2))
            hostler.output.close()
            hostler.end_input()
            self.assertEqual(hostler.ended(LIMIT), 0)
            shared_mode.end()
            eventually(gone(worker), "the worker is gone", limit=1)


def sleeps(pid):
    """Whether no thread of a process runs."""
    try:
        tasks = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except FileNotFoundError:  # one has just ended
        return False
    return all(task.rpartition(")")[2].split()[0] == "S" for task in tasks)


def listens(pid, number):
    """Whether a process catches a signal."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        caught = next(text.split()[1] for text in status if text.startswith("SigCgt:"))
    return bool(int(caught, 16) & 1 << (number - 1))


class Streams(unittest.TestCase):
    """Standard input and output, whatever they are."""

    def test_pipes(self):
        with Wire() as hostler:
            hostler.open()
            self.assertEqual([hostler.value(number, "plain_greet", name=str(number)) for number in (1, 2)],
                             ["good morning, 1", "good morning, 2"])

    def test_sockets(self):
        with Wire(sockets=True) as hostler:
            hostler.open()
            self.assertEqual(hostler.value(1, "plain_greet", name="Node"), "good morning, Node")
            text = "x" * 3_000_000  # more than a socket's buffer holds
            self.assertEqual(hostler.value(2, "plain_greet", name=text), "good morning, " + text)
            worker = hostler.worker(3, "plain_greet")
            hostler.end_input()
            self.assertEqual(hostler.ended(LIMIT), 0)
            shared_mode.end()
            eventually(gone(worker), "the worker is gone", limit=1)

    def test_large_messages_through_pipes(self):
        config = config_file(scratch(self), '[mcp]\nmax_result = "64MB"\n')
        with Wire(arguments=("--config", str(config))) as hostler:
            hostler.open()
            text = "y" * 20_000_000
            self.assertEqual(len(hostler.value(1, "plain_greet", name=text)), len(text) + len("good morning, "))

    def test_files(self):
        folder = scratch(self)
        (folder / "in").write_bytes(OPENING + call(1, "plain_greet", name="file"))
        with open(folder / "in", "rb") as given, open(folder / "out", "wb") as taken:
            done = subprocess.run([HOSTLER, "serve", "--tools", TOOLS], stdin=given, stdout=taken, stderr=subprocess.PIPE,
                                  env=environment(), cwd=ROOT, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        messages = [json.loads(text) for text in (folder / "out").read_text().splitlines()]
        self.assertEqual([message["id"] for message in messages], [0, 1])
        self.assertEqual(messages[1]["result"]["content"][0]["text"], "good morning, file")

    def test_a_pipe_in_and_a_file_out(self):
        with tempfile.TemporaryFile() as taken:
            process = subprocess.Popen([HOSTLER, "serve", "--tools", str(TOOLS)], stdin=subprocess.PIPE, stdout=taken,
                                       stderr=subprocess.DEVNULL, env=environment(), cwd=ROOT)
            process.stdin.write(OPENING + call(1, "plain_greet"))
            process.stdin.flush()
            eventually(lambda: os.fstat(taken.fileno()).st_size and b'"id":1' in read_all(taken), "the answer is in the file")
            process.stdin.close()
            self.assertEqual(process.wait(timeout=30), 0)


def read_all(file):
    return os.pread(file.fileno(), 1 << 20, 0)


class Lines(unittest.TestCase):
    """What comes in that is no MCP."""

    def test_malformed_lines_between_good_ones(self):
        bad = [
            b"garbage\n", b"\n", b"{\n", b"[]\n", b"null\n", b'{"jsonrpc":"2.0"}\n', b'{"id":7}\n', b"\xff\xfe\x00\n",
            b'{"jsonrpc":"2.0","id":9,"method":"no/such/method"}\n', b'{"jsonrpc":"2.0","id":10,"method":"tools/call"}\n',
            b'{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":5}}\n',
            b'{"jsonrpc":"2.0","id":99,"result":{}}\n', b'{"jsonrpc":"2.0","method":"notifications/nothing"}\n',
        ]
        with Wire() as hostler:
            hostler.open()
            worker = hostler.worker(100, "slow_echo", number=0)
            for number, text in enumerate(bad, 101):
                with self.subTest(text):
                    hostler.send(text)
                    self.assertEqual(hostler.worker(number, "slow_echo", number=number), worker)
            errors = {note["id"]: note["error"]["code"] for note in hostler.notes if "error" in note and note.get("id") is not None}
            self.assertEqual(errors.get(9), -32601)
            self.assertEqual((errors.get(10), errors.get(11)), (-32602, -32602))
            hostler.end_input()
            self.assertEqual(hostler.ended(LIMIT), 0)

    def test_a_request_that_cannot_be_read_is_answered(self):
        start = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow_echo","arguments":{"number":%s}}}\n'
        with Wire() as hostler:
            hostler.open()
            deep = b"[" * 200 + b"]" * 200
            rows = ((b'"\\ud800"', "JSON"), (b"1e400", "JSON"), (deep, "`number`"), (b'"\xff"', "UTF-8"))
            for number, (text, words) in enumerate(rows, 1):
                hostler.send(start % (number, text))
                error = hostler.answer(number)["error"]
                self.assertEqual(error["code"], -32700, text)
                self.assertIn(words, error["message"])
            self.assertEqual(hostler.value(9, "slow_echo", number=9)["number"], 9)

    def test_garbage_alone(self):
        with Wire() as hostler:
            hostler.send(b"garbage\nmore of it\n")
            hostler.end_input()
            self.assertEqual(hostler.ended(LIMIT), 0)

    def test_something_else_than_hello(self):
        with Wire() as hostler:
            hostler.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
            hostler.end_input()
            self.assertIn(hostler.ended(LIMIT), (0, 2))

    def test_a_throw_away_probe_starts_no_worker(self):
        with Wire() as hostler:
            hostler.open()
            hostler.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
            self.assertIn("result", hostler.answer(1))
            self.assertEqual(children(hostler.supervisor), [])
            self.assertTrue(alive(hostler.process.pid))


if __name__ == "__main__":
    unittest.main()
