"""Nothing a tool prints, by whatever road, is taken for the protocol."""

import json
import os
import textwrap

from harness import ShimTest


class Noise(ShimTest):
    def test_print_is_output_before_the_answer(self):
        worker = self.worker("def f():\n    print('one'); print('two', end='')\n    return 3\n")
        self.assertEqual(worker.call("f")["result"], 3)
        self.assertEqual(worker.printed(), "one\ntwo")
        self.assertEqual({note["params"]["id"] for note in worker.notes}, {1})

    def test_order_of_both_streams(self):
        worker = self.worker("import sys\ndef f():\n    for i in range(50):\n        print(i); print(i, file=sys.stderr)\n")
        worker.call("f")
        lines = [(note["params"]["stream"], note["params"]["text"]) for note in worker.notes]
        self.assertEqual(lines, [(s, "%d\n" % i) for i in range(50) for s in ("stdout", "stderr")])

    def test_descriptor_1_children_and_c_go_to_stderr(self):
        worker = self.worker("""
            import ctypes, os, subprocess, sys
            def f():
                os.write(1, b"raw\\n")
                subprocess.run(["echo", "child"])
                subprocess.run(["echo", "child2"], stdout=sys.stdout)
                libc = ctypes.CDLL(None)
                libc.puts(b"from C")
                libc.fflush(None)
                return "fine"
        """)
        self.assertEqual(worker.call("f")["result"], "fine")
        status, err = worker.end()
        self.assertEqual((status, err.splitlines()), (0, ["raw", "child", "child2", "from C"]))

    def test_fake_frames(self):
        worker = self.worker("""
            import os
            FAKE = '{"jsonrpc":"2.0","id":1,"result":"fake"}'
            def f():
                print(FAKE); os.write(1, FAKE.encode() + b"\\n"); os.system("echo '%s'" % FAKE)
                return "true"
        """)
        self.assertEqual(worker.call("f")["result"], "true")
        self.assertIn("fake", worker.printed())

    def test_input_and_stdin_are_empty(self):
        worker = self.worker("""
            import sys
            def f():
                rest = sys.stdin.read()
                try:
                    return input()
                except EOFError:
                    return ["eof", rest]
            def g(): return 1
        """)
        worker.begin("f"), worker.begin("g")
        self.assertEqual([worker.read()["result"], worker.read()["result"]], [["eof", ""], 1])

    def test_200_kb_of_stderr(self):
        # To the descriptor the host drains it; through sys.stderr it comes as frames.
        worker = self.worker("""
            import sys
            def f(): sys.stderr.write("x" * 200000); return 1
        """)
        self.assertEqual(worker.call("f")["result"], 1)
        self.assertEqual(worker.printed("stderr"), "x" * 200000)
        self.assertTrue(all(len(note["params"]["text"]) <= 65536 for note in worker.notes))

    def test_bytes_cut_characters_and_no_utf8(self):
        worker = self.worker("""
            import sys
            def f():
                for byte in "ä€".encode():
                    sys.stdout.buffer.write(bytes([byte])); sys.stdout.buffer.flush()
                sys.stdout.buffer.write(b"\\xff\\n"); sys.stdout.buffer.flush()
                sys.stdout.buffer.write("€".encode()[:2])
        """)
        worker.call("f")
        self.assertEqual(worker.printed(), "ä€\ufffd\n\ufffd")

    def test_threads_print_whole_frames(self):
        worker = self.worker("""
            import threading
            def f():
                threads = [threading.Thread(target=lambda: [print("y" * 60000) for _ in range(20)]) for _ in range(4)]
                [t.start() for t in threads]; [t.join() for t in threads]
        """)
        worker.call("f")
        self.assertEqual(worker.printed().count("y"), 4 * 20 * 60000)

    def test_surrogates_are_printed_as_escapes(self):
        worker = self.worker("def f():\n    print('a\\ud800b'); return 'c'\n")
        self.assertEqual(worker.call("f")["result"], "c")
        self.assertEqual(worker.printed(), "a\\ud800b\n")

    def test_output_at_import_has_no_call(self):
        worker = self.worker("print('hi')\ndef f(): pass\n")
        self.assertEqual(worker.notes[0]["params"], {"id": None, "stream": "stdout", "text": "hi\n"})

    def test_closed_stdout_of_a_tool(self):
        worker = self.worker("import sys\ndef f():\n    sys.stdout.close(); print('still'); return 1\n")
        self.assertEqual(worker.call("f")["result"], 1)
        self.assertEqual(worker.printed(), "still\n")


class Fork(ShimTest):
    SOURCE = """
        import os, sys
        def f():
            print("before", end="")
            pid = os.fork()
            if pid == 0:
                print("in the child")
                sys.exit(7)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        def comes_back():
            pid = os.fork()
            if pid == 0:
                return "child"
            os.waitpid(pid, 0)
            return "parent"
        def stays():
            r, w = os.pipe()
            ready, tell = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(w)
                os.write(tell, b"x")
                os.read(r, 1)   # until the parent is gone
                os._exit(0)
            os.read(ready, 1)
            return [os.readlink("/proc/%d/fd/%s" % (pid, n)) for n in os.listdir("/proc/%d/fd" % pid)]
    """

    def test_child_prints_to_stderr_and_ends_itself(self):
        worker = self.worker(self.SOURCE)
        self.assertEqual(worker.call("f")["result"], 7)
        self.assertEqual(worker.call("comes_back")["result"], "parent")
        self.assertEqual(worker.printed(), "before")
        status, err = worker.end()
        self.assertEqual((status, err), (0, "in the child\n"))

    def test_a_child_that_comes_back_leaves_the_exit_handlers_to_its_parent(self):
        trace = os.path.join(self.folder, "trace")
        worker = self.worker("import atexit, os\natexit.register(lambda: open(%r, 'a').write('%%d\\n' %% os.getpid()))\n" % trace
                             + textwrap.dedent(self.SOURCE))
        self.assertEqual(worker.call("comes_back")["result"], "parent")
        self.assertEqual(worker.end()[0], 0)
        with open(trace) as file:
            self.assertEqual(file.read().split(), [str(worker.process.pid)])

    def test_child_does_not_hold_the_protocol(self):
        worker = self.worker(self.SOURCE)
        ours = {os.readlink("/proc/self/fd/%d" % pipe.fileno()) for pipe in (worker.process.stdin, worker.process.stdout)}
        held = worker.call("stays")["result"]
        self.assertFalse(ours & set(held), held)

    def test_plain_subprocess_does_not_either(self):
        worker = self.worker("import subprocess\ndef f(): return subprocess.check_output(['ls', '-l', '/proc/self/fd'], close_fds=False, text=True)\n")
        ours = os.readlink("/proc/self/fd/%d" % worker.process.stdout.fileno())
        self.assertNotIn(ours, worker.call("f")["result"])


class Log(ShimTest):
    def test_one_json_line_on_stderr(self):
        worker = self.worker("import hostler\ndef f(): hostler.log('hey', level='warning', n=3, odd=range(2))\n")
        worker.call("f")
        line = json.loads(worker.end()[1])
        self.assertEqual((line["hostler"], line["level"], line["message"], line["call"]), ("log", "warning", "hey", "c1"))
        self.assertEqual(line["fields"], {"n": "3", "odd": "range(0, 2)"})
        self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
