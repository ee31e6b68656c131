"""Results: what becomes JSON and how, and what the fault says about the rest."""

import json

from harness import ShimTest


class Results(ShimTest):
    def results(self, source, *names):
        worker = self.worker(source)
        return [worker.call(name) for name in names]

    def one(self, expression, prelude=""):
        return self.results(prelude + "\ndef f(): return " + expression + "\n", "f")[0]

    def test_what_can_be_read_once_is_read_once(self):
        self.assertEqual(self.one("{'rows': (n for n in [1, 2]), date(2026, 1, 1): iter([map(str, [3])])}", "from datetime import date")["result"],
                         {"rows": [1, 2], "2026-01-01": [["3"]]})
        self.assertEqual(self.one("zip([1], [2])")["result"], [[1, 2]])

    def test_types(self):
        answer = self.one(
            "[E.A, S.B, b'hi', datetime(2026, 1, 31, 12, 0), date(2026, 1, 31), time(12, 30), timedelta(minutes=1, milliseconds=-500),"
            " timedelta(days=-1), Decimal('1.10'), UUID(int=1), Path('a/b'), (1, (2,)), D(1, [D(2, [])]), N(1, 2), M(), Scalar(),"
            " re.compile('a+'), re.compile(b'b'), 1 + 2j, 1.5j]",
            "from datetime import *; from decimal import Decimal; from uuid import UUID; from pathlib import Path; import re\n"
            "from enum import Enum; from dataclasses import dataclass; from typing import NamedTuple\n"
            "class E(Enum):\n    A = 'a'\nclass S(str, Enum):\n    B = 'b'\n"
            "@dataclass\nclass D:\n    x: int\n    y: list\n"
            "class N(NamedTuple):\n    a: int\n    b: int\n"
            "class M:\n    def model_dump(self, mode): return {'mode': mode}\n"
            "class Scalar:\n    shape = ()\n    def item(self): return 7\n")
        self.assertEqual(answer["result"], [
            "a", "b", "aGk=", "2026-01-31T12:00:00", "2026-01-31", "12:30:00", "PT59.5S", "-PT86400S", "1.10",
            "00000000-0000-0000-0000-000000000001", "a/b", [1, [2]], {"x": 1, "y": [{"x": 2, "y": []}]}, [1, 2], {"mode": "json"}, 7,
            "a+", "b", "1+2j", "1.5j"])

    def test_generators_are_listed(self):
        answers = self.results("def f():\n    yield 1\n    yield 2\nasync def g():\n    yield 3\n", "f", "g")
        self.assertEqual([answer["result"] for answer in answers], [[1, 2], [3]])

    def test_sets_and_queues_are_lists(self):
        answers = self.results(
            "from collections import deque\ndef a(): return {3, 1, 2}\ndef b(): return {'x': frozenset('ba')}\n"
            "def c(): return sorted(map(str, [{1, 'a'}][0]))\ndef d(): return deque([2, 1])\ndef e(): return len({1, 'a'}) and {1, 'a'}\n",
            "a", "b", "c", "d", "e")
        self.assertEqual([answer["result"] for answer in answers[:4]], [[1, 2, 3], {"x": ["a", "b"]}, ["1", "a"], [2, 1]])
        self.assertCountEqual(answers[4]["result"], [1, "a"], "what cannot be sorted is in any order")

    def test_not_json_names_the_place(self):
        for expression, words in {
            "range(1)": ["result: range", "return a list"],
            "{'items': [0, {'tags': range(1)}]}": ["result.items[1].tags: range", "return a list"],
            "[float('nan')]": ["result[0]: nan"],
            "{'a b': float('-inf')}": ['result["a b"]: -inf'],
            "{'x': object()}": ["result.x: object"],
            "[range(3)]": ["result[0]: range", "return a list"],
            "{(1, 2): 3}": ["tuple", "key"],
            "{'m': Broken()}": ["result.m", "RuntimeError: no dump"],
            "10 ** 5000": ["integer"],
            "['a', 'b\\ud800c']": ["result[1]: '\\ud800' is half a character"],
            "{'x': {'\\ud800': 1}}": ["result.x: '\\ud800' is half a character"],
        }.items():
            with self.subTest(expression):
                answer = self.one(expression, "class Broken:\n    def model_dump(self, mode): raise RuntimeError('no dump')\n")
                if expression.startswith("10") and "result" in answer:
                    continue  # 3.9 prints any integer
                self.fault(answer, -32001, *words)

    def test_tables_are_not_to_be_made_a_list_of_their_columns(self):
        table = "class T:\n    def __iter__(self): return iter('ab')\n    def iterrows(self): pass\n    def to_dict(self, kind): pass\n"
        self.fault(self.one("{'t': T()}", table), -32001, "result.t: T is not JSON", '.to_dict("records")')
        frame = "class F:\n    def __iter__(self): return iter('ab')\n    def iter_rows(self): pass\n    def to_dicts(self): pass\n"
        self.fault(self.one("F()", frame), -32001, "return its rows: .to_dicts()")
        array = "class A:\n    def __len__(self): return 1\n    def __iter__(self): return iter('a')\n    def tolist(self): pass\n"
        self.fault(self.one("A()", array), -32001, "return its .tolist()")

    def test_cycle_and_depth(self):
        source = """
            def cycle():
                a = {"b": []}; a["b"].append(a); return a
            def deep():
                a = []
                for _ in range(200000): a = [a]
                return a
            def fine(): return {"again": 1}
        """
        cycle, deep, fine = self.results(source, "cycle", "deep", "fine")
        self.fault(cycle, -32001, "result.b[0]: circular reference")
        self.fault(deep, -32001, "result[0][0]", "nested deeper")
        self.assertEqual(fine["result"], {"again": 1})

    def test_keys(self):
        prelude = "from enum import Enum\nfrom datetime import date\nclass E(Enum):\n    A = 'a'\n"
        self.assertEqual(self.one("{1: 1, 2.5: 2, True and None: 3}")["result"], {"1": 1, "2.5": 2, "null": 3})
        self.assertEqual(self.one("{True: 1, False: 0}")["result"], {"true": 1, "false": 0})
        self.assertEqual(self.one("{E.A: 1, date(2026, 1, 1): 2}", prelude)["result"], {"a": 1, "2026-01-01": 2})
        self.assertEqual(self.one("{'1': 1, '2': [{'3': 4}]}")["result"], {"1": 1, "2": [{"3": 4}]})

    def test_duplicate_keys(self):
        for expression, words in {
            "{1: 'a', '1': 'b'}": ['"1"'], "[{'x': {None: 1, 'null': 2}}]": ["result[0].x.null", '"null"'],
            "{True: 1, 'true': 2}": ['"true"'], "{2.5: 1, '2.5': 2}": ['"2.5"'], "{-1: 1, '-1': 2}": ['"-1"'], "{1e30: 1, '1e+30': 2}": ['"1e+30"'],
        }.items():
            with self.subTest(expression):
                self.fault(self.one(expression), -32001, "two keys", *words)

    def test_five_megabytes_each_way(self):
        worker = self.worker("def f(text): return {'text': text}\n")
        text = "ä" * (5 << 20)
        self.assertEqual(worker.call("f", {"text": text})["result"]["text"], text)
        self.assertEqual(worker.call("f", {"text": "after"})["result"], {"text": "after"})

    def test_over_64_megabytes(self):
        worker = self.worker("def f(): return 'x' * (65 << 20)\ndef g(): return 1\n")
        self.fault(worker.call("f"), -32001, "65 MB", "64 MB")
        self.assertEqual(worker.call("g")["result"], 1)

    def test_head_of_replies(self):
        worker = self.worker("def f(): return 1\ndef g(): raise ValueError\n")
        worker.write({"id": 'a"b', "method": "call", "params": {"function": "f", "kwargs": {}}})
        self.assertEqual(worker.line(), b'{"jsonrpc":"2.0","id":"a\\"b","result":1}')
        worker.begin("g")
        self.assertTrue(worker.line().startswith(b'{"jsonrpc":"2.0","id":1,"error":'))


class Errors(ShimTest):
    def test_trimmed_and_chained_traceback(self):
        worker = self.worker("""
            import json
            def f():
                try:
                    json.loads("{")
                except ValueError as error:
                    raise LookupError("outer") from error
        """)
        error = self.fault(worker.call("f"), -32000, "LookupError: outer")
        trace = error["data"]["traceback"]
        self.assertEqual(error["data"]["type"], "LookupError")
        self.assertIn("direct cause", trace)
        self.assertIn("JSONDecodeError", trace)
        self.assertIn("json.loads", trace)
        self.assertIn("raw_decode", trace)  # the innermost frame
        self.assertNotIn("in loads", trace)
        self.assertNotIn("hostler_worker", trace)

    def test_exception_group(self):
        worker = self.worker("def f():\n    raise ExceptionGroup('both', [ValueError('one'), KeyError('two')])\n")
        answer = worker.call("f")
        if "NameError" in answer["error"]["message"]:
            self.skipTest("no groups in this Python")
        self.fault(answer, -32000, "ExceptionGroup: both", "ValueError: one; KeyError: 'two'")
        self.assertIn("ValueError: one", answer["error"]["data"]["traceback"])
        self.assertIn("KeyError: 'two'", answer["error"]["data"]["traceback"])

    def test_exit_and_its_kin_do_not_end_the_worker(self):
        worker = self.worker("""
            import sys
            def exit2(): sys.exit(2)
            def exit_text(): sys.exit("no such thing")
            def interrupt(): raise KeyboardInterrupt
            def generator(): raise GeneratorExit
            async def later(): sys.exit(3)
            async def fine(): return 5
        """)
        self.fault(worker.call("exit2"), -32000, "status 2 (sys.exit); raise an exception or return instead")
        self.fault(worker.call("exit_text"), -32000, "no such thing")
        self.fault(worker.call("interrupt"), -32000, "KeyboardInterrupt")
        self.fault(worker.call("generator"), -32000, "GeneratorExit")
        self.fault(worker.call("later"), -32000, "status 3")
        self.assertEqual(worker.call("fine")["result"], 5)

    def test_exceptions_that_fail_to_print(self):
        worker = self.worker("""
            class Bad(Exception):
                def __str__(self): raise RuntimeError("no")
                __repr__ = __str__
            def f(): raise Bad()
            def g(): raise ValueError("surrogate \\ud800")
            def h(): h()
        """)
        self.fault(worker.call("f"), -32000, "Bad")
        self.fault(worker.call("g"), -32000, "surrogate ?")
        self.assertLess(len(json.dumps(self.fault(worker.call("h"), -32000, "RecursionError"))), 70000)

    def test_protocol_errors(self):
        worker = self.worker("def f(a): return a\ndef g(): pass\nasync def h(a): return a\n")
        self.fault(worker.call("nope"), -32601, "f, g, h")
        self.fault(worker.call("f"), -32602, "missing 1 required positional argument: 'a'")
        self.fault(worker.call("h", {"b": 1}), -32602, "unexpected keyword argument")
        for line, code in ((b"not json\n", -32700), (b"[]\n", -32600), (b'{"jsonrpc":"2.0","id":9,"method":"what"}\n', -32601),
                           (b'{"a":NaN}\n', -32700), (b'\xff\n', -32700), (b"[" * 100000 + b"\n", -32700)):
            worker.process.stdin.write(line)
            self.fault(worker.read(), code)
        worker.process.stdin.write(b"\r\n\n")
        self.assertEqual(worker.call("f", {"a": [1.5, "ä", None]})["result"], [1.5, "ä", None])
