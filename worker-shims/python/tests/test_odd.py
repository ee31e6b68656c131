"""Tools that do odd things to the worker they run in: it lives, and tells what they did."""

from harness import ShimTest

WRAPPED = """
    import io, sys
    def replaced():
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
        print("hello")
    def collected():
        out = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
        print("hello", file=out)
    def detached():
        sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8")
        print("hello")
    def only_detached():
        sys.stdout.detach()
        print("hello")
    def without_its_buffer():
        sys.stdout.buffer.detach()
        print("hello")
    def closed():
        sys.stdout.buffer.close()
        print("hello")
    def all_closed():
        sys.stdout.close(); sys.stdout.buffer.close(); sys.stdout.buffer.raw.close()
        print("hello")
    def taken_apart():
        io.TextIOWrapper.detach(sys.stdout)
    def nothing():
        sys.stdout = sys.stderr = None
    def broken():
        class Broken:
            def flush(self): sys.exit(4)
        sys.stdout = sys.stderr = Broken()
    def fine(): return 1
"""


class Streams(ShimTest):
    def test_output_belongs_to_its_call_whatever_became_of_the_stream(self):
        for name in ("replaced", "collected", "detached", "only_detached", "without_its_buffer", "closed", "all_closed"):
            with self.subTest(name):
                worker = self.worker(WRAPPED)
                for count in (1, 2):
                    self.assertIn("result", worker.call(name))
                    self.assertEqual([note["params"]["text"] for note in worker.notes], ["hello\n"])
                    self.assertEqual(worker.notes[0]["params"]["id"], worker.count)
                    worker.notes.clear()
                self.assertEqual(worker.call("fine")["result"], 1)
                self.assertEqual(worker.end(), (0, ""))

    def test_streams_beyond_repair_do_not_end_the_worker(self):
        for name in ("taken_apart", "nothing", "broken"):
            with self.subTest(name):
                worker = self.worker(WRAPPED)
                self.assertIn("result", worker.call(name))
                self.assertEqual(worker.call("fine")["result"], 1)

    def test_a_wrapped_stream_in_a_fork(self):
        worker = self.worker("""
            import io, os, sys
            def f():
                sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
                print("before")
                pid = os.fork()
                if pid == 0:
                    print("in the child")
                    sys.exit(7)
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        """)
        self.assertEqual(worker.call("f")["result"], 7)
        self.assertEqual(worker.printed(), "before\n")
        self.assertEqual(worker.end()[1], "in the child\n")


class Exceptions(ShimTest):
    SOURCE = """
        import sys
        def itself():
            error = ValueError("a"); error.exceptions = (error,); raise error
        def strangers():
            error = ValueError("a"); error.exceptions = (1, "x"); raise error
        def members():
            class E(Exception):
                @property
                def exceptions(self): raise RuntimeError("no")
            raise E("a")
        class Recursive(Exception):
            def __str__(self): return str(self)
            def __repr__(self): return repr(self)
        def recursive(): raise Recursive()
        def exits_with_one(): sys.exit(Recursive())
        def long_status(): sys.exit(10 ** 5000)
        def no_code():
            class E(SystemExit):
                code = property(lambda self: 1 / 0)
            raise E()
        def no_class():
            class E(Exception):
                __class__ = property(lambda self: 1 / 0)
            raise E("a")
        def no_name():
            class M(type):
                __module__ = property(lambda self: 1 / 0)
            class E(Exception, metaclass=M): pass
            raise E("a")
        def odd_number():
            error = OSError("a"); error.errno = []; raise error
        def text_of_its_own():
            class Text(str):
                def __len__(self): raise RuntimeError("no")
            class E(Exception):
                def __str__(self): return Text("mine")
            raise E()
        def fine(): return 1
    """

    def test_they_are_told_and_the_worker_lives(self):
        worker = self.worker(self.SOURCE)
        for name, words in {
            "itself": "ValueError: a", "strangers": "ValueError: a", "members": "E: a", "recursive": "Recursive: <its text",
            "exits_with_one": "<its text", "long_status": "exit with status", "no_code": "exit", "no_class": "E",
            "no_name": "E: a", "odd_number": "OSError: a", "text_of_its_own": "mine",
        }.items():
            with self.subTest(name):
                self.fault(worker.call(name), -32000, words)
                self.assertEqual(worker.call("fine")["result"], 1)

    def test_at_import_too(self):
        worker = self.start(self.file("error = ValueError('a'); error.exceptions = (error,)\nraise error\n"))
        self.fault(worker.hello(), -32010, "ValueError: a")

    def test_in_what_becomes_the_result(self):
        worker = self.worker("""
            import sys
            class Dumps:
                def __init__(self, what): self.what = what
                def model_dump(self, mode): raise self.what
            class Text(Exception):
                def __str__(self): raise RuntimeError("no")
            class Listed(list):
                def __iter__(self): sys.exit(3)
            class Keyed(dict):
                def items(self): raise KeyboardInterrupt
            def exits(): return {"a": Dumps(SystemExit(3))}
            def interrupts(): return [Dumps(KeyboardInterrupt())]
            def silent(): return [Dumps(Text())]
            def listed(): return {"b": Listed([1])}
            def keyed(): return Keyed({1: 2})
            def half(): return [Listed([1]), "\\ud800"]
            def fine(): return 1
        """)
        for name, words in {
            "exits": ("result.a", "status 3"), "interrupts": ("result[0]", "KeyboardInterrupt"), "silent": ("result[0]", "Text"),
            "listed": ("result.b", "status 3"), "keyed": ("KeyboardInterrupt",), "half": ("status 3",),
        }.items():
            with self.subTest(name):
                self.fault(worker.call(name), -32001, *words)
                self.assertEqual(worker.call("fine")["result"], 1)

    def test_a_wrong_type_given_to_the_shim_is_the_tools_own_fault(self):
        worker = self.worker("""
            import hostler, sys
            def writes(): sys.stdout.write(b"hi")
            def reports(): hostler.progress(1, *[2, 3, 4])
            def draws(): return hostler.Image(5)
            async def later(): sys.stdout.write(b"hi")
        """)
        for name, line in {"writes": 'sys.stdout.write(b"hi")', "reports": "hostler.progress", "draws": "hostler.Image(5)", "later": "sys.stdout"}.items():
            with self.subTest(name):
                error = self.fault(worker.call(name), -32000, "TypeError")
                self.assertIn(line, error["data"]["traceback"])
                self.assertNotIn("hostler_worker", error["data"]["traceback"])

    def test_a_file_that_python_cannot_read_shows_itself_only(self):
        worker = self.start(self.file("x = 1\ndef f(:\n"))
        error = self.fault(worker.hello(), -32010, "SyntaxError")
        self.assertNotIn("hostler_worker", error["data"]["traceback"])
        self.assertIn("def f(:", error["data"]["traceback"])
        self.assertIn("line 2", error["data"]["traceback"])
