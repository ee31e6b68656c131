"""Several calls at once: async functions on one loop, others in threads, each with what is its own."""

import collections
import os
import signal

from harness import LIMIT, ShimTest

BOTH = ("plain", "later")  # what a test says of functions in threads holds for async ones too

SOURCE = """
    import asyncio, atexit, os, sys, threading, time
    import hostler
    atexit.register(lambda: os.write(2, b"atexit\\n"))
    gate = threading.Event()
    seen = []

    def plain(name="x"):
        print("in", name, end="")
        gate.wait(20)
        print(" out", name)
        return [name, threading.current_thread() is threading.main_thread()]

    async def later(name="x"):
        print("in", name, end="")
        while not gate.is_set(): await asyncio.sleep(0.001)
        print(" out", name)
        return [name, threading.current_thread() is threading.main_thread()]

    async def go(): gate.set()
    def pid(): return os.getpid()
    async def pid_later(): return os.getpid()
    def what_was_seen(): return seen
"""


class ConcurrentTest(ShimTest):
    def several(self, source=SOURCE, concurrency=8, **hello):
        return self.worker(source, concurrency=concurrency, **hello)

    @staticmethod
    def answers(worker, count):
        """So many answers by their ids; each comes once."""
        found = {}
        for _ in range(count):
            answer = worker.read()
            assert answer["id"] not in found, answer
            found[answer["id"]] = answer
        return found


class Together(ConcurrentTest):
    def test_all_have_begun_before_one_ends(self):
        for kind in BOTH:
            with self.subTest(kind):
                worker = self.several(concurrency=9)
                names = ["n%d" % n for n in range(8)]
                ids = [worker.begin(kind, {"name": name}) for name in names]
                # Their lines are not ended: what they printed is still with them. Nothing ends before the last has begun.
                last = worker.begin("go")
                answers = self.answers(worker, 9)
                self.assertIsNone(answers.pop(last)["result"])
                self.assertEqual([answers[id]["result"] for id in ids], [[name, kind == "later"] for name in names])
                for id, name in zip(ids, names):
                    printed = "".join(note["params"]["text"] for note in worker.notes if note["params"]["id"] == id)
                    self.assertEqual(printed, "in %s out %s\n" % (name, name))

    def test_never_more_than_were_asked_for(self):
        for kind in BOTH:
            with self.subTest(kind):
                worker = self.several("""
                    import asyncio, threading, time
                    now, most = 0, 0
                    def enter():
                        global now, most
                        now += 1; most = max(most, now)
                    def leave():
                        global now
                        now -= 1
                    def plain(): enter(); time.sleep(0.002); leave()
                    async def later(): enter(); await asyncio.sleep(0.002); leave()
                    def count(): return [most, sum(t.name.startswith("hostler") for t in threading.enumerate())]
                """, concurrency=3)
                ids = [worker.begin(kind) for _ in range(12)]
                self.assertEqual(sorted(self.answers(worker, 12)), ids)
                most, threads = worker.call("count")["result"]
                self.assertEqual(most, 3)
                self.assertLessEqual(threads, 3)

    def test_a_single_caller_needs_a_single_thread(self):
        worker = self.several("import threading\ndef f(): return threading.current_thread().name\n", concurrency=16)
        self.assertEqual({worker.call("f")["result"] for _ in range(50)}, {"hostler-1"})

    def test_every_kind_of_function_and_value(self):
        worker = self.several("""
            import functools
            from datetime import date
            from typing import Annotated
            def generator(n: int):
                for i in range(n): yield i
            async def agenerator(n: int):
                for i in range(n): yield i
            async def handed_on(n: int): return agenerator(n)
            def wrap(f):
                @functools.wraps(f)
                def inner(*args, **kwargs): return f(*args, **kwargs)
                return inner
            @wrap
            async def wrapped(day: date): return day.year
            @wrap
            async def wrapped_generator(n: int):
                for i in range(n): yield i
            def picture() -> Annotated[bytes, "image/png"]: return b"png"
            async def picture_later() -> Annotated[bytes, "image/png"]: return b"png"
            def year(day: date, /, n: int = 1): return day.year
            def odd(): return range(2)
            async def odd_later(): return {"a": range(2)}
        """)
        picture = {"mime_type": "image/png", "base64": "cG5n"}
        for name, kwargs, expected in (
            ("generator", {"n": 3}, [0, 1, 2]), ("agenerator", {"n": 3}, [0, 1, 2]), ("handed_on", {"n": 2}, [0, 1]), ("wrapped", {"day": "2024-02-01"}, 2024),
            ("wrapped_generator", {"n": 2}, [0, 1]), ("picture", {}, picture), ("picture_later", {}, picture),
            ("year", {"day": "2024-02-01"}, 2024),
        ):
            with self.subTest(name):
                self.assertEqual(worker.call(name, kwargs).get("result"), expected)
        self.fault(worker.call("odd"), -32001, "result: range is not JSON")
        self.fault(worker.call("odd_later"), -32001, "result.a: range is not JSON")
        self.fault(worker.call("year", {"day": "x"}), -32602, "day")
        self.fault(worker.call("wrapped", {"day": "x"}), -32602, "day")
        self.fault(worker.call("agenerator", {"m": 3}), -32602, "unexpected keyword")
        self.fault(worker.call("none"), -32601, "no function none")

    def test_faults_are_those_of_their_calls(self):
        worker = self.several("""
            import asyncio, sys
            def deep(name): raise ValueError(name)
            def plain(name): deep(name)
            async def later(name):
                await asyncio.sleep(0)
                deep(name)
            async def exits(name): sys.exit(name)
            def exits_plain(name): sys.exit(name)
        """)
        ids = {worker.begin(kind, {"name": kind + str(n)}): (kind, n) for n in range(30) for kind in BOTH}
        answers = {}
        while len(answers) < len(ids):
            answer = worker.read()
            answers[answer["id"]] = answer
        for id, (kind, n) in ids.items():
            error = self.fault(answers[id], -32000)
            self.assertEqual(error["message"], "ValueError: %s%d" % (kind, n))
            frames = [line.split(" in ")[1] for line in error["data"]["traceback"].splitlines() if " in " in line]
            self.assertEqual(frames, [kind, "deep"], error["data"]["traceback"])
        for name in ("exits", "exits_plain"):
            self.fault(worker.call(name, {"name": "7"}), -32000, "asked to exit with status 1 (sys.exit: 7)")

    def test_the_same_value_from_many_threads(self):
        worker = self.several("""
            import dataclasses, time
            @dataclasses.dataclass
            class Item:
                n: int
            dumps = []
            class Slow:
                def model_dump(self, mode):
                    dumps.append(1)
                    time.sleep(0.0005)
                    return {"slow": True}
            shared = {"items": [[Item(1), Slow()], [Slow(), Item(2)]]}
            def f(): return shared
            def count(): return len(dumps)
        """)
        ids = [worker.begin("f") for _ in range(200)]
        expected = {"items": [[{"n": 1}, {"slow": True}], [{"slow": True}, {"n": 2}]]}
        for answer in self.answers(worker, len(ids)).values():
            self.assertEqual(answer.get("result"), expected, answer)
        self.assertEqual(worker.call("count")["result"], 2 * len(ids), "none took another's for a circle, and tried again")

    def test_types_are_described_when_nothing_runs(self):
        source = "import dataclasses\n@dataclasses.dataclass\nclass Spot:\n    x: int\ndef f(): return 1\nasync def g(): return 1\n"
        for name in ("f", "g"):
            with self.subTest(name):
                worker = self.several(source, describe={"given": ["Spot"]})
                self.assertEqual(worker.call(name)["result"], 1)
                while not any(note["method"] == "described" for note in worker.notes):
                    self.assertEqual(worker.call(name)["result"], 1)
                told = [note for note in worker.notes if note["method"] == "described"]
                self.assertEqual(len(told), 1)
                self.assertIn("Spot", told[0]["params"]["given"]["names"])


class Apart(ConcurrentTest):
    SOURCE = """
        import asyncio, contextvars, logging, sys, threading, time
        import hostler
        logging.basicConfig(format="log %(message)s", stream=sys.stderr)
        before = contextvars.ContextVar("before")
        before.set("import")

        def speak(mark):
            sys.stdout.write("<" + mark); sys.stderr.write("[" + mark)
            hostler.progress(1, message=mark)
            yield
            logging.warning(mark)
            sys.stdout.write(mark + ">\\n"); sys.stderr.write(mark + "]\\n")
            sys.stdout.buffer.write(("é" + mark).encode()[:1]); sys.stdout.buffer.flush()
            yield
            sys.stdout.buffer.write(("é" + mark).encode()[1:] + b"\\n")
            assert before.get() == "import"
            before.set(mark)
            return

        def given(mark): return [mark, hostler.config["mark"], hostler.secret("KEY")]

        def plain(mark):
            for _ in speak(mark): time.sleep(0)
            return given(mark)

        async def later(mark):
            for _ in speak(mark): await asyncio.sleep(0)
            return given(mark)

        async def inner(mark):
            async def child():
                for _ in speak(mark): await asyncio.sleep(0)
                return given(mark)
            return await asyncio.get_running_loop().create_task(child())

        async def elsewhere(mark):
            def run():
                for _ in speak(mark): time.sleep(0)
                return given(mark)
            context = contextvars.copy_context()
            return await asyncio.get_running_loop().run_in_executor(None, context.run, run)

        async def leaves(mark):
            async def late():
                await asyncio.sleep(0.01)
                try: hostler.secret("KEY")
                except hostler.HostlerError as error: asides.append(str(error))
                hostler.progress(2)
                print("late")
            kept.append(asyncio.get_running_loop().create_task(late()))
        kept, asides = [], []
        async def what_is_left():
            await asyncio.gather(*kept)
            return asides

        def unknown():
            said = []
            def run():
                try: hostler.config["mark"]
                except hostler.HostlerError as error: said.append(str(error))
                print("from nowhere")
            thread = threading.Thread(target=run); thread.start(); thread.join()
            return said
    """

    def test_hundreds_of_calls_and_not_one_word_of_another(self):
        worker = self.several(self.SOURCE, concurrency=16, secrets=["KEY"])
        kinds = ("plain", "later", "inner", "elsewhere")
        marks, answers = {}, {}
        while len(answers) < 600:
            while len(marks) < 600 and len(marks) - len(answers) < 16:
                mark = "m%dm" % len(marks)
                id = worker.begin(kinds[len(marks) % 4], {"mark": mark}, config={"mark": mark}, secrets={"KEY": "key" + mark})
                marks[id] = mark
            answer = worker.read()
            self.assertNotIn(answer["id"], answers)
            answers[answer["id"]] = answer
        printed, told = collections.defaultdict(str), collections.defaultdict(list)
        for note in worker.notes:
            params = note["params"]
            if note["method"] == "progress":
                told[params["id"]].append(params["message"])
            else:
                printed[params["id"], params["stream"]] += params["text"]
        self.assertEqual({id for id, _ in printed}, set(marks))
        for id, mark in marks.items():
            self.assertEqual(answers[id].get("result"), [mark, mark, "key" + mark], answers[id])
            self.assertEqual(told[id], [mark])
            self.assertEqual(printed[id, "stdout"], "<%s%s>\n\u00e9%s\n" % (mark, mark, mark))
            self.assertEqual(printed[id, "stderr"], "[%slog %s\n%s]\n" % (mark, mark, mark))

    def test_what_a_call_leaves_running_has_nothing_any_more(self):
        worker = self.several(self.SOURCE, secrets=["KEY"])
        worker.call("leaves", {"mark": "x"}, secrets={"KEY": "1"})
        left = worker.call("what_is_left", secrets={"KEY": "2"})["result"]
        self.assertIn("only during a call", left[0])
        self.assertEqual([note["params"]["id"] for note in worker.notes], [1], "its output is still its own")

    def test_a_thread_without_context_belongs_to_no_call(self):
        worker = self.several(self.SOURCE)
        said = worker.call("unknown", config={"mark": 1})["result"]
        self.assertIn("copy_context().run", said[0])
        self.assertEqual([(note["params"]["id"], note["params"]["text"]) for note in worker.notes], [(None, "from nowhere\n")])

    def test_log_lines_name_their_call(self):
        worker = self.several("import hostler\ndef plain(): hostler.log('p')\nasync def later(): hostler.log('l')\n")
        worker.call("plain"), worker.call("later")
        import json

        lines = [json.loads(line) for line in worker.end()[1].splitlines()]
        self.assertEqual([(line["message"], line["call"]) for line in lines], [("p", "c1"), ("l", "c2")])

    def test_closed_and_replaced_streams(self):
        worker = self.several("""
            import io, sys
            def closes(): sys.stdout.close(); print("still", end="")
            def wraps():
                stream = io.TextIOWrapper(sys.stdout.buffer, "utf-8"); stream.write("wrapped"); del stream
                print("after", end="")
            def facts(): return [sys.stdout.encoding, sys.stdout.fileno(), sys.stdout.isatty(), isinstance(sys.stdout, io.TextIOBase)]
        """)
        for name in ("closes", "wraps"):
            worker.call(name)
        self.assertEqual(worker.printed(), "stillwrappedafter")
        self.assertEqual(worker.call("facts")["result"], ["utf-8", 2, False, True])


class Cancelled(ConcurrentTest):
    SOURCE = """
        import asyncio, threading, time
        import hostler
        log = []
        gate = threading.Event()
        def seen(): return log
        def spins(mark="spinning"):
            print(mark)
            while True:
                try: sum(range(100))
                except Exception: log.append("caught")
        def naps_often():
            try:
                print("napping")
                while True: time.sleep(0.001)
            finally: log.append("cleaned")
        def stubborn():
            try:
                print("stubborn")
                while True: pass
            except BaseException: return "my result"
        def angry():
            try:
                print("angry")
                while True: pass
            finally: raise ValueError("cleaning failed")
        class Slow:
            def __del__(self):
                print("dying")
                while not gate.is_set(): pass
        def dies():
            Slow()
            while True: pass
        async def sleeps():
            print("sleeping")
            try: await asyncio.sleep(60)
            except asyncio.CancelledError:
                log.append("async cleaned"); raise
        async def stubborn_later():
            print("stubborn later")
            try: await asyncio.sleep(60)
            except asyncio.CancelledError: return "my result"
        async def own(): raise asyncio.CancelledError
        async def oneself():
            asyncio.current_task().cancel()
            print("x" * 100, flush=True)
            return 1
        def wrapper(f):
            def inner(): return f()
            return inner
        @wrapper
        async def wrapped():
            print("wrapped")
            await asyncio.sleep(60)
        def waits(): print("waiting"); gate.wait(20); return 1
        async def go(): gate.set()
        async def short(): return 1
    """

    def test_one_ends_and_the_others_go_on(self):
        for name, text, after in (
            ("spins", "spinning", []), ("naps_often", "napping", ["cleaned"]), ("angry", "angry", []),
            ("sleeps", "sleeping", ["async cleaned"]), ("wrapped", "wrapped", []),
        ):
            with self.subTest(name):
                worker = self.several(self.SOURCE)
                other = worker.begin("waits")
                worker.note("waiting")
                id = worker.begin(name)
                worker.note(text)
                worker.cancel(id, signalled=False)
                answer = worker.read()
                self.assertEqual(answer["id"], id)
                self.fault(answer, -32003)
                last = worker.begin("go")
                answers = self.answers(worker, 2)
                self.assertEqual((answers[other]["result"], answers[last]["result"]), (1, None))
                self.assertEqual(worker.call("seen")["result"], after)

    def test_swallowed(self):
        worker = self.several(self.SOURCE)
        for name, text in (("stubborn", "stubborn"), ("stubborn_later", "stubborn later")):
            id = worker.begin(name)
            worker.note(text + "\n")
            worker.cancel(id, signalled=False)
            self.assertEqual(worker.read()["result"], "my result")
        self.assertEqual(worker.call("short")["result"], 1)

    def test_in_a_destructor(self):
        worker = self.several(self.SOURCE)
        id = worker.begin("dies")
        worker.note("dying")
        worker.cancel(id, signalled=False)
        self.fault(worker.read(), -32003)

    def test_a_signal_means_nothing(self):
        worker = self.several(self.SOURCE)
        id = worker.begin("sleeps")
        worker.note("sleeping")
        for _ in range(20):
            os.kill(worker.process.pid, signal.SIGUSR1)
            self.assertEqual(worker.call("short")["result"], 1)
        worker.cancel(id, signalled=False)
        self.fault(worker.read(), -32003)

    def test_what_waits_never_begins(self):
        worker = self.several(self.SOURCE, concurrency=2)
        first, second = worker.begin("waits"), worker.begin("sleeps")
        worker.note("sleeping")
        third = worker.begin("sleeps")
        worker.cancel(third, signalled=False)
        worker.cancel(second, signalled=False)
        answers = self.answers(worker, 2)
        self.fault(answers[second], -32003, "the call was cancelled")
        self.fault(answers[third], -32003, "before it began")
        worker.begin("go")
        self.assertEqual(self.answers(worker, 2)[first]["result"], 1)

    def test_a_cancelled_error_of_its_own(self):
        worker = self.several(self.SOURCE)
        self.fault(worker.call("own"), -32000, "CancelledError")
        self.assertEqual(worker.call("oneself")["result"], 1)

    def test_races_with_beginning_and_end(self):
        # Cancels come at any instruction: each call is answered once, and its thread is there for the next.
        worker = self.several("""
            import asyncio
            def plain(n):
                for i in range(n): pass
                return n
            async def later(n):
                for i in range(n % 7): await asyncio.sleep(0)
                return n
            def prints(n):
                for i in range(n): print("x" * 50)
                return n
        """, concurrency=4)
        kinds = ("plain", "later", "prints")
        for round in range(300):
            ids = [worker.begin(kinds[(round + k) % 3], {"n": round * (5 if k else 50)}) for k in range(4)]
            for _ in range(round % 40 * 20):
                pass
            for id in ids[:3]:
                worker.cancel(id, signalled=False)
            for id, answer in self.answers(worker, 4).items():
                if "result" not in answer:
                    self.fault(answer, -32003)
                    self.assertNotEqual(id, ids[3])
            worker.notes.clear()
        self.assertEqual(worker.call("plain", {"n": 3})["result"], 3)

    def test_nothing_is_raised_behind_the_end(self):
        # What the worker does for one call, again and again, and a cancellation at any moment of it.
        worker = self.several("""
            import sys, threading
            from hostler_worker.running import Call, Cancelled
            def trial(rounds):
                sys.setswitchinterval(1e-6)
                late, told, box, gate = 0, 0, [None], threading.Semaphore(0)
                def stop():
                    while True:
                        gate.acquire()
                        if box[0] is None: return
                        box[0].stop()
                stopper = threading.Thread(target=stop)
                stopper.start()
                for n in range(rounds):
                    box[0] = call = Call(n, {}, None, {})
                    gate.release()
                    try:
                        try:
                            try:
                                if call.enter():
                                    # No `while`: Python 3.13.0 does not guard the jump at its end.
                                    for _ in range(n % 50 if n < rounds - 1 else 10**9): abs(1)
                            finally:
                                call.leave()
                        except Cancelled:
                            told += 1
                        for _ in range(300): abs(1)
                    except Cancelled:
                        late += 1
                box[0] = None
                gate.release()
                stopper.join()
                return [late, told]
        """)
        late, told = worker.call("trial", {"rounds": 20000})["result"]
        self.assertEqual(late, 0)
        self.assertGreater(told, 0)


class Asked(ConcurrentTest):
    SOURCE = """
        import asyncio, contextvars, hostler
        asker = contextvars.ContextVar("asker", default=None)
        def plain(n): return [n, hostler.call("math.add", n=n)]
        async def later(n):
            asker.set(n)
            return [n, hostler.call("math.add", n=n)]
        async def elsewhere(n):
            context = contextvars.copy_context()
            return [n, await asyncio.get_running_loop().run_in_executor(
                None, lambda: context.run(hostler.call, "math.add", n=n))]
        async def short(): return 1
        def short_plain(): return asker.get()
    """
    ALL = ["call", "tools", "config", "llm"]
    KINDS = ("plain", "later", "elsewhere")

    def test_each_gets_the_answer_to_its_own_question(self):
        worker = self.several(self.SOURCE, concurrency=9, host=self.ALL)
        wanted, answered = {}, 0
        for n in range(300):
            wanted[worker.begin(self.KINDS[n % 3], {"n": n})] = n
        while answered < 300:
            message = worker.read()
            if "method" in message:
                params = message["params"]
                self.assertEqual(params["arguments"], {"n": wanted[params["id"]]})
                worker.write({"id": message["id"], "result": params["arguments"]["n"] * 2})
            else:
                n = wanted[message["id"]]
                self.assertEqual(message.get("result"), [n, n * 2], message)
                answered += 1

    def test_questions_of_threads_are_open_together(self):
        worker = self.several(self.SOURCE, host=self.ALL)
        for n in range(6):
            worker.begin(("plain", "elsewhere")[n % 2], {"n": n})
        questions = [worker.read() for _ in range(6)]
        self.assertEqual(worker.call("short")["result"], 1)
        for question in reversed(questions):
            worker.write({"id": question["id"], "result": question["params"]["arguments"]["n"]})
        answers = self.answers(worker, 6).values()
        self.assertEqual(sorted(answer["result"] for answer in answers), [[n, n] for n in range(6)])

    def test_a_loop_that_waits_still_reads(self):
        worker = self.several(self.SOURCE, host=self.ALL)
        first = worker.begin("later", {"n": 1})
        question = worker.read()
        self.assertIsNone(worker.call("short_plain")["result"])  # threads go on, in contexts of their own
        second = worker.begin("short")  # begins when the loop is free
        worker.write({"id": question["id"], "result": 2})
        answers = self.answers(worker, 2)
        self.assertEqual((answers[first]["result"], answers[second]["result"]), ([1, 2], 1))

    def test_cancelled_while_waiting(self):
        for kind in self.KINDS:
            with self.subTest(kind):
                worker = self.several(self.SOURCE, host=self.ALL)
                id = worker.begin(kind, {"n": 1})
                question = worker.read()
                worker.cancel(id, signalled=False)
                self.fault(worker.read(), -32003)
                worker.write({"id": question["id"], "result": 1})  # too late, and harmless
                self.assertEqual(worker.call("short")["result"], 1)

    def test_host_gone_while_waiting(self):
        for kind in self.KINDS:
            with self.subTest(kind):
                worker = self.several(self.SOURCE, host=self.ALL)
                worker.begin(kind, {"n": 1})
                worker.read()
                self.assertEqual(worker.end(), (0, ""))


class Ends(ConcurrentTest):
    SOURCE = """
        import asyncio, atexit, os, signal, threading, time
        atexit.register(lambda: os.write(2, b"atexit\\n"))
        def sleeps(): print("sleeping"); time.sleep(60)
        def spins():
            print("spinning")
            while True: pass
        async def naps(): print("napping"); await asyncio.sleep(60)
        async def elsewhere():
            print("elsewhere")
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)
        async def stubborn():
            try: print("stubborn"); time.sleep(60)
            except BaseException: return 5
        async def angry():
            try: print("angry"); time.sleep(60)
            except BaseException: raise ValueError
        def f(): return 1
        async def g(): return 1
        def takes_the_signal(): signal.pthread_kill(threading.get_ident(), signal.SIGTERM); time.sleep(60)
    """
    RUNNING = (("sleeps", "sleeping"), ("spins", "spinning"), ("naps", "napping"), ("elsewhere", "elsewhere"))

    def test_end_of_input(self):
        worker = self.several(self.SOURCE)
        self.assertEqual(worker.end(), (0, "atexit\n"))
        worker = self.several(self.SOURCE)
        worker.call("f"), worker.call("g")
        self.assertEqual(worker.end(), (0, "atexit\n"))

    def test_end_of_input_with_calls_running(self):
        for name, text in self.RUNNING:
            with self.subTest(name):
                worker = self.several(self.SOURCE)
                worker.begin(name)
                worker.note(text)
                self.assertEqual(worker.end(), (0, "atexit\n"))

    def test_shutdown(self):
        for message in ({"id": 9, "method": "shutdown"}, {"method": "shutdown"}):
            worker = self.several(self.SOURCE)
            worker.call("f"), worker.call("g")
            worker.write(message)
            if "id" in message:
                self.assertEqual(worker.read(), {"jsonrpc": "2.0", "id": 9, "result": None})
            self.assertEqual(worker.process.wait(LIMIT), 0)
            self.assertEqual(worker.process.stderr.read(), b"atexit\n")

    def test_shutdown_comes_after_what_was_written_before_it(self):
        for _ in range(5):
            worker = self.several(self.SOURCE)
            ids = [worker.begin("fg"[n % 2]) for n in range(8)]
            worker.write({"id": 99, "method": "shutdown"})
            worker.process.stdin.close()
            read = [worker.read()["id"] for _ in range(9)]
            self.assertEqual((sorted(read[:8]), read[8]), (ids, 99))
            self.assertEqual(worker.process.wait(LIMIT), 0)

    def test_term(self):
        worker = self.several(self.SOURCE)
        worker.process.terminate()
        self.assertEqual(worker.process.wait(LIMIT), -signal.SIGTERM)
        self.assertEqual(worker.process.stderr.read(), b"atexit\n")
        for name, text in (*self.RUNNING, ("stubborn", "stubborn"), ("angry", "angry")):
            with self.subTest(name):
                worker = self.several(self.SOURCE)
                worker.begin(name)
                worker.note(text)
                worker.process.terminate()
                self.assertEqual(worker.process.wait(LIMIT), -signal.SIGTERM)
                self.assertEqual(worker.process.stderr.read(), b"atexit\n")

    def test_term_that_a_thread_gets_while_the_loop_waits(self):
        worker = self.several(self.SOURCE)
        worker.begin("takes_the_signal")
        self.assertEqual(worker.process.wait(LIMIT), -signal.SIGTERM)

    def test_a_forked_child_that_comes_back(self):
        worker = self.several("""
            import os
            def plain():
                pid = os.fork()
                if pid == 0: return "child"
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            async def later(): return plain()
        """)
        for kind in BOTH:
            self.assertEqual(worker.call(kind)["result"], 0)

    def test_hello_is_said_once(self):
        worker = self.several(self.SOURCE)
        self.fault(worker.hello(), -32600, "already")
        worker.write({"id": 4, "method": "sparkle"})
        self.fault(worker.read(), -32601, "sparkle")

    def test_one_at_a_time_loads_nothing_of_this(self):
        worker = self.worker("import sys\ndef f(): return [n for n in ('asyncio', '_contextvars', 'contextvars', 'hostler_worker.several', 'hostler_worker.running') if n in sys.modules]\n", concurrency=1)
        self.assertEqual(worker.call("f")["result"], [])
