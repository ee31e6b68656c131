"""Order, cancellation, signals and the ends of a worker."""

import os
import signal

from harness import LIMIT, ShimTest


class Order(ShimTest):
    def test_write_ahead_is_answered_in_order(self):
        worker = self.worker("def f(i): return i\n")
        ids = [worker.begin("f", {"i": i}) for i in range(8)]
        answers = [worker.read() for _ in ids]
        self.assertEqual([(a["id"], a["result"]) for a in answers], [(id, i) for i, id in enumerate(ids)])

    def test_frames_split_and_joined_anywhere(self):
        worker = self.worker("def f(i): return i\n")
        data = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"call","params":{"function":"f","kwargs":{"i":%d}}}\r\n' % (i, i) for i in range(40))
        for start in range(0, len(data), 7):
            worker.process.stdin.write(data[start:start + 7])
        self.assertEqual([worker.read()["result"] for _ in range(40)], list(range(40)))

    def test_hello_first_and_once(self):
        worker = self.start(self.file("def f(): pass\n"))
        self.fault(worker.call("f"), -32600, "hello")
        self.assertIn("result", worker.hello())
        self.fault(worker.hello(), -32600, "already")


class Cancel(ShimTest):
    SOURCE = """
        import asyncio, os, time, threading
        log = []
        def seen(): return log
        def sleeps():
            try:  # before the print: the test cancels as soon as it reads it
                print("sleeping"); time.sleep(60)
            finally:
                log.append("cleaned")
        def spins():
            print("spinning")
            while True:
                try: sum(range(100))
                except Exception: log.append("caught")
        def prints():
            while True: print("printing")
        def stubborn():
            try: print("stubborn"); time.sleep(60)
            except BaseException: return "my result"
        def angry():
            try: print("angry"); time.sleep(60)
            finally: raise ValueError("cleaning failed")
        async def naps():
            try: print("napping"); await asyncio.sleep(60)
            except asyncio.CancelledError:
                log.append("async cleaned"); raise
        async def blocks():
            print("blocking"); time.sleep(60)
        async def child():
            print("child")
            await asyncio.gather(asyncio.sleep(60), asyncio.sleep(60))
        async def own():
            raise asyncio.CancelledError
        def waits():
            lock = threading.Lock(); lock.acquire(); print("waiting"); lock.acquire()
        def reads(): 
            r, w = os.pipe(); print("reading"); os.read(r, 1)
        def short(): return 1
    """

    def test_running_calls(self):
        for name, text, after in (
            ("sleeps", "sleeping", ["cleaned"]), ("spins", "spinning", []), ("waits", "waiting", []), ("reads", "reading", []),
            ("naps", "napping", ["async cleaned"]), ("blocks", "blocking", []), ("child", "child", []), ("prints", "printing", []),
            ("angry", "angry", []),
        ):
            with self.subTest(name):
                worker = self.worker(self.SOURCE)
                id = worker.begin(name)
                worker.note(text)
                worker.cancel(id)
                answer = worker.read()
                self.assertEqual(answer["id"], id)
                self.fault(answer, -32003)
                self.assertEqual(worker.call("seen")["result"], after)

    def test_async_without_the_signal(self):
        worker = self.worker(self.SOURCE)
        id = worker.begin("naps")
        worker.note("napping")
        worker.cancel(id, signalled=False)
        self.fault(worker.read(), -32003)
        self.assertEqual(worker.call("short")["result"], 1)

    def test_async_cleanup_is_never_skipped(self):
        # The signal hits the step before its await; CancelledError is raised all the same.
        worker = self.worker(self.SOURCE)
        for n in range(1, 60):
            id = worker.begin("naps")
            worker.note("napping")
            worker.notes.clear()
            worker.cancel(id)
            self.fault(worker.read(), -32003)
            self.assertEqual(worker.call("seen")["result"], ["async cleaned"] * n)

    def test_swallowed(self):
        worker = self.worker(self.SOURCE)
        id = worker.begin("stubborn")
        worker.note("stubborn")
        worker.cancel(id)
        self.assertEqual(worker.read()["result"], "my result")

    def test_queued_call_never_begins(self):
        worker = self.worker(self.SOURCE)
        running, queued, last = worker.begin("sleeps"), worker.begin("sleeps"), worker.begin("seen")
        worker.note("sleeping")
        worker.cancel(queued)  # with the signal: the running one must not be the one to stop
        worker.cancel(running)
        answers = [worker.read() for _ in range(3)]
        self.assertEqual([a["id"] for a in answers], [running, queued, last])
        self.fault(answers[0], -32003)
        self.fault(answers[1], -32003, "before it began")
        self.assertEqual(answers[2]["result"], ["cleaned"])

    def test_signal_without_a_reason(self):
        worker = self.worker(self.SOURCE)
        id = worker.begin("sleeps")
        worker.note("sleeping")
        for stranger in (id + 1, id - 1, None, "x"):
            worker.cancel(stranger)
        worker.cancel(id)
        self.fault(worker.read(), -32003)
        worker.cancel(id)  # long answered
        self.assertEqual(worker.call("short")["result"], 1)

    def test_an_async_cancelled_error_of_its_own(self):
        worker = self.worker(self.SOURCE)
        self.fault(worker.call("own"), -32000, "CancelledError")

    def test_async_calls_share_one_loop(self):
        source = "import asyncio\nseen = []\nasync def f():\n    seen.append(asyncio.get_running_loop())\n    return seen[0] is seen[-1]\n"
        worker = self.worker(source)
        self.assertEqual([worker.call("f")["result"] for _ in range(2)], [True, True])

    def test_storm_keeps_frames_whole(self):
        # Cancels hit printing calls at any instruction; every line must stay a frame.
        worker = self.worker("def f():\n    for i in range(100000): print('x' * 300)\n")
        for _ in range(150):
            id = worker.begin("f")
            worker.note("x")
            worker.notes.clear()
            worker.cancel(id)
            self.fault(worker.read(), -32003)
            worker.notes.clear()

    def test_race_with_the_beginning(self):
        # The signal comes at any instruction on the way into the tool; missed, it would sleep on.
        worker = self.worker("import time\ndef f(): time.sleep(60)\n")
        for n in range(600):
            id = worker.begin("f")
            for _ in range(n % 60 * 20):
                pass
            worker.cancel(id)
            self.fault(worker.read(), -32003)

    def test_cancelled_in_a_destructor(self):
        # Python drops what a destructor raises; the call must stop all the same.
        worker = self.worker("""
            import time
            class Slow:
                def __del__(self): print("dying"); time.sleep(60)
            def f():
                Slow()
                time.sleep(60)
        """)
        id = worker.begin("f")
        worker.note("dying")
        worker.cancel(id)
        worker.signalled = False  # without a second signal from outside
        self.fault(worker.read(), -32003)

    def test_race_with_the_answer(self):
        worker = self.worker("def f(): return 1\n")
        for _ in range(1000):
            id = worker.begin("f")
            worker.cancel(id)
            answer = worker.read()
            self.assertEqual(answer["id"], id)
            self.assertTrue(answer.get("result") == 1 or answer["error"]["code"] == -32003)


class Ends(ShimTest):
    SOURCE = """
        import atexit, os, signal, sys, time
        atexit.register(lambda: os.write(2, b"atexit\\n"))
        def sleeps():
            try: print("sleeping"); time.sleep(60)
            except BaseException as error:
                os.write(2, type(error).__name__.encode() + b"\\n")
                os.kill(os.getpid(), signal.SIGTERM)   # a second one changes nothing
                os.write(2, b"cleaned\\n")
                raise
        def stubborn():
            try: print("stubborn"); time.sleep(60)
            except BaseException: return 5
        async def naps():
            import asyncio
            print("napping")
            await asyncio.sleep(60)
        def hangs():
            import re
            print("hanging")
            re.match(r"(a+)+$", "a" * 60 + "b")
    """

    def test_end_of_input(self):
        worker = self.worker(self.SOURCE)
        self.assertEqual(worker.end(), (0, "atexit\n"))

    def test_shutdown(self):
        for message in ({"id": 9, "method": "shutdown"}, {"method": "shutdown"}):
            worker = self.worker(self.SOURCE)
            worker.write(message)
            if "id" in message:
                self.assertEqual(worker.read(), {"jsonrpc": "2.0", "id": 9, "result": None})
            self.assertEqual(worker.process.wait(LIMIT), 0)
            self.assertEqual(worker.process.stderr.read(), b"atexit\n")

    def test_shutdown_comes_after_what_was_written_before_it(self):
        worker = self.worker("def f(): return 1\n")
        worker.begin("f"), worker.write({"id": 9, "method": "shutdown"})
        worker.process.stdin.close()
        self.assertEqual([worker.read()["id"], worker.read()["id"]], [1, 9])

    def test_nothing_is_begun_for_a_host_that_is_gone(self):
        worker = self.worker("import time\ndef f():\n    print('go'); time.sleep(.2); return 1\ndef g(): open('begun', 'w')\n")
        worker.begin("f"), worker.begin("g")
        worker.note("go")
        self.assertEqual(worker.end()[0], 0)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "begun")))

    def test_term_idle(self):
        worker = self.worker(self.SOURCE)
        worker.process.terminate()
        self.assertEqual(worker.process.wait(LIMIT), -signal.SIGTERM)
        self.assertEqual(worker.process.stderr.read(), b"atexit\n")

    def test_term_running(self):
        for name, text, err in (("sleeps", "sleeping", b"SystemExit\ncleaned\natexit\n"), ("stubborn", "stubborn", b"atexit\n"), ("naps", "napping", b"atexit\n")):
            with self.subTest(name):
                worker = self.worker(self.SOURCE)
                worker.begin(name)
                worker.note(text)
                worker.process.terminate()
                self.assertEqual(worker.process.wait(LIMIT), -signal.SIGTERM)
                self.assertEqual(worker.process.stderr.read(), err)

    def test_each_session_has_a_dictionary_until_it_ends(self):
        for concurrency in (1, 4):
            with self.subTest(concurrency):
                worker = self.worker("""
                    import hostler
                    from hostler_worker.state import state
                    def add(n: int) -> list:
                        hostler.session["sum"] = hostler.session.get("sum", 0) + n
                        return [hostler.session.id, hostler.session["sum"], len(state.sessions)]
                """, concurrency=concurrency)
                of = lambda session, n: worker.call("add", {"n": n}, call={"id": "c", "deadline_ms": 1000, "session": session})["result"]
                self.assertEqual([of("a", 1), of("b", 5), of("a", 2)], [["a", 1, 1], ["b", 5, 2], ["a", 3, 2]])
                worker.write({"method": "session_ended", "params": {"session": "a"}})
                self.assertEqual([of("b", 1), of("a", 7)], [["b", 6, 1], ["a", 7, 2]])

    def test_stack_of_a_worker_that_holds_the_lock(self):
        worker = self.worker(self.SOURCE)
        worker.begin("hangs")
        worker.note("hanging")
        worker.process.send_signal(signal.SIGUSR2)
        text = b""
        while b"in hangs" not in text:
            data = os.read(worker.process.stderr.fileno(), 65536)
            self.assertTrue(data)
            text += data
        self.assertIn(b"tool.py", text)

    def test_a_crash_prints_its_stack(self):
        worker = self.worker("import ctypes\ndef f(): ctypes.string_at(0)\n")
        worker.begin("f")
        self.assertRaises(EOFError, worker.read)
        self.assertEqual(worker.process.wait(LIMIT), -signal.SIGSEGV)
        self.assertIn(b"Segmentation fault", worker.process.stderr.read())
