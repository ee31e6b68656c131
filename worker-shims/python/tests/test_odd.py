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
