"""The module `hostler`: config, secrets, progress, and requests to the host."""

from harness import ShimTest


class Given(ShimTest):
    def test_config(self):
        worker = self.worker("""
            import hostler
            try: hostler.config["a"]
            except hostler.HostlerError as error: early = str(error)
            def f(): return [hostler.config["a"], dict(hostler.config), hostler.config.get("b"), early]
            def g(): hostler.config["a"] = 1
        """)
        result = worker.call("f", config={"a": [1]})["result"]
        self.assertEqual(result[:3], [[1], {"a": [1]}, None])
        self.assertIn("only during a call", result[3])
        self.assertEqual(worker.call("f", config={"a": 2, "b": 3})["result"][:3], [2, {"a": 2, "b": 3}, 3])
        self.fault(worker.call("g"), -32000, "TypeError")

    def test_secrets(self):
        worker = self.worker("import hostler\ndef f(name): return hostler.secret(name)\n", secrets=["KEY", "OTHER"])
        self.assertEqual(worker.call("f", {"name": "KEY"}, secrets={"KEY": "s3"})["result"], "s3")
        error = self.fault(worker.call("f", {"name": "OTHER"}, secrets={"KEY": "s3"}), -32002, "OTHER")
        self.assertEqual(error["data"], {"secret": "OTHER"})
        self.fault(worker.call("f", {"name": "NEW"}), -32000, "secrets = [...]", "header")

    def test_progress(self):
        worker = self.worker("import hostler\ndef f():\n    hostler.progress(1, 2, 'half'); hostler.progress(2.5)\n")
        worker.call("f")
        self.assertEqual([note["params"] for note in worker.notes],
                         [{"id": 1, "progress": 1, "total": 2, "message": "half"}, {"id": 1, "progress": 2.5}])


class Asked(ShimTest):
    SOURCE = """
        import asyncio, threading, hostler
        def sum3(): return hostler.call("math.add", a=1, tool="x") + 1
        async def later(): return hostler.tools()
        def ask(): return hostler.llm("hi", system="be brief")
        def how(): return hostler.status()
        def anew(): return hostler.refresh()
        def chat(): return hostler.llm([{"role": "user", "content": "hi"}], max_tokens=5)
        def fails():
            try: hostler.call("a.b")
            except hostler.ToolError as error: return [error.code, error.message]
        def threaded():
            said = []
            def run():
                said.append(hostler.tools())
            thread = threading.Thread(target=run); thread.start(); thread.join()
            return said
        def several():
            said = []
            def run(at): said.append(hostler.call("a.b", at=at))
            threads = [threading.Thread(target=run, args=(at,)) for at in range(3)]
            for thread in threads: thread.start()
            own = hostler.call("a.b", at=9)
            for thread in threads: thread.join()
            return sorted(said), own
        async def later_elsewhere(): return await asyncio.to_thread(hostler.tools)
        def left_behind():
            def run():
                try: hostler.tools()
                except hostler.HostlerError as error: print(error)
            threading.Thread(target=run).start()
            import time; time.sleep(0.05)
            return 1
        def short(): return 1
        def bad(): return hostler.call("a.b", x=range(1))
    """
    ALL = ["call", "tools", "config", "llm", "elicit", "roots", "status", "refresh"]

    def test_round_trips(self):
        worker = self.worker(self.SOURCE, host=self.ALL)
        for name, method, params, result, expected in (
            ("sum3", "host.call", {"tool": "math.add", "arguments": {"a": 1, "tool": "x"}}, 41, 42),
            ("later", "host.tools", {}, [{"name": "a.b"}], [{"name": "a.b"}]),
            ("how", "host.status", {}, {"tools": 2}, {"tools": 2}),
            ("anew", "host.refresh", {}, "Tools refreshed.", "Tools refreshed."),
            ("ask", "host.llm", {"prompt": "hi", "system": "be brief", "max_tokens": 1000}, "ho", "ho"),
            ("chat", "host.llm", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}, "ho", "ho"),
        ):
            with self.subTest(name):
                id = worker.begin(name)
                request = worker.read()
                self.assertEqual((request["method"], request["params"]), (method, {**params, "id": id}))
                self.assertIsInstance(request["id"], str)
                worker.write({"id": request["id"], "result": result})
                self.assertEqual(worker.read()["result"], expected)

    def test_errors(self):
        worker = self.worker(self.SOURCE, host=self.ALL)
        worker.begin("fails")
        worker.write({"id": worker.read()["id"], "error": {"code": -32000, "message": "too slow", "data": {"code": "TOOL_TIMEOUT"}}})
        self.assertEqual(worker.read()["result"], ["TOOL_TIMEOUT", "too slow"])
        self.fault(worker.call("bad"), -32000, "the arguments.x: range")

    def test_not_allowed(self):
        worker = self.worker(self.SOURCE)
        self.fault(worker.call("sum3"), -32000, "host_access = true", "[tool.NAME]")

    def test_calls_and_cancels_arrive_while_waiting(self):
        worker = self.worker(self.SOURCE, host=self.ALL)
        first = worker.begin("sum3")
        request = worker.read()
        second, third = worker.begin("short"), worker.begin("short")
        worker.cancel(second)
        worker.write({"id": "w999", "result": 0}, {"id": request["id"], "result": 1})
        self.assertEqual(worker.read(), {"jsonrpc": "2.0", "id": first, "result": 2})
        self.fault(worker.read(), -32003)
        self.assertEqual(worker.read(), {"jsonrpc": "2.0", "id": third, "result": 1})

    def test_from_any_thread(self):
        worker = self.worker(self.SOURCE, host=self.ALL)
        for name, expected in (("threaded", [[1]]), ("later_elsewhere", [1])):
            with self.subTest(name):
                worker.begin(name)
                worker.write({"id": worker.read()["id"], "result": [1]})
                self.assertEqual(worker.read()["result"], expected)
        worker.begin("several")
        asked = [worker.read() for _ in range(4)]
        for request in reversed(asked):
            worker.write({"id": request["id"], "result": request["params"]["arguments"]["at"]})
        self.assertEqual(worker.read()["result"], [[0, 1, 2], 9])

    def test_a_thread_that_outlives_its_call_reads_nothing_of_the_next(self):
        worker = self.worker(self.SOURCE, host=self.ALL)
        for _ in range(3):
            worker.begin("left_behind")
            self.assertEqual(worker.read()["method"], "host.tools")
            self.assertEqual(worker.read()["result"], 1)
            self.assertEqual(worker.call("short")["result"], 1)

    def test_a_call_whose_thread_waits_is_cancelled(self):
        for name in ("threaded", "later_elsewhere"):
            with self.subTest(name):
                worker = self.worker(self.SOURCE, host=self.ALL)
                id = worker.begin(name)
                worker.read()
                worker.cancel(id)
                self.fault(worker.read(), -32003)
                self.assertEqual(worker.call("short")["result"], 1)

    def test_a_call_that_waits_behind_a_question_is_given_back(self):
        worker = self.worker(self.SOURCE, host=self.ALL)
        first = worker.begin("sum3")
        request = worker.read()
        second = worker.begin("short")
        worker.write({"method": "recall", "params": {"id": second}}, {"method": "recall", "params": {"id": first}})
        self.fault(worker.read(), -32005)
        worker.write({"id": request["id"], "result": 1})
        self.assertEqual(worker.read(), {"jsonrpc": "2.0", "id": first, "result": 2})

    def test_a_call_that_outlives_its_session_leaves_nothing(self):
        for concurrency in (1, 2):
            with self.subTest(concurrency):
                worker = self.worker("""
                    import hostler
                    from hostler_worker.state import state
                    def late(): hostler.roots(); hostler.session["token"] = 1
                    def kept() -> int: return len(state.sessions)
                """, host=["roots"], concurrency=concurrency)
                worker.begin("late", call={"id": "c", "deadline_ms": 1000, "session": "a"})
                request = worker.read()
                worker.write({"method": "session_ended", "params": {"session": "a"}}, {"id": request["id"], "result": []})
                worker.read()
                self.assertEqual(worker.call("kept")["result"], 0)

    def test_cancelled_while_waiting(self):
        for name in ("sum3", "later"):
            for signalled in (True, False):
                with self.subTest(name, signalled=signalled):
                    worker = self.worker(self.SOURCE, host=self.ALL)
                    id = worker.begin(name)
                    worker.read()
                    worker.cancel(id, signalled)
                    self.fault(worker.read(), -32003)
                    worker.write({"id": "w1", "result": 1})  # too late, and harmless
                    self.assertEqual(worker.call("short")["result"], 1)

    def test_host_gone_while_waiting(self):
        worker = self.worker(self.SOURCE, host=self.ALL)
        worker.begin("sum3")
        worker.read()
        self.assertEqual(worker.end()[0], 0)
