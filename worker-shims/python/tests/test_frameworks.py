"""What decorators leave in place of functions, and methods as tools, without any framework."""

import unittest

from harness import ShimTest


class Behind(ShimTest):
    def test_the_function_is_found_wherever_a_decorator_hides_it(self):
        hides = {
            "an attribute": "class D:\n    def __init__(self, f): self.inner = f\n",
            "a closure": "def D(f):\n    class Held: pass\n    held = Held()\n    held.run = lambda **k: f(**k)\n    return held\n",
            "slots": "class D:\n    __slots__ = ('x',)\n    def __init__(self, f): self.x = [f]\n",
            "nowhere": "kept = {}\nclass D:\n    def __init__(self, f): kept[id(self)] = f\n",
        }
        for where, decorator in hides.items():
            with self.subTest(where):
                worker = self.worker(decorator + "@D\ndef f(a: int) -> int:\n    return a + 1\n")
                self.assertEqual(worker.call("f", {"a": 1})["result"], 2)

    def test_what_can_be_called_is_called_itself(self):
        worker = self.worker("class D:\n    def __init__(self, f): self.f = f\n    def __call__(self, **k): return [self.f(**k)]\n"
                            "@D\ndef f(a: int) -> int:\n    return a\n")
        self.assertEqual(worker.call("f", {"a": 1})["result"], [1])

    def test_a_plain_file_imports_nothing_for_it(self):
        worker = self.worker("import sys\ndef f() -> bool:\n    return any('frameworks' in name for name in sys.modules)\n")
        self.assertIs(worker.call("f")["result"], False)


class Methods(ShimTest):
    def test_one_instance_is_made_by_the_first_call(self):
        worker = self.worker("made = 0\nclass Tools:\n    def __init__(self):\n        global made\n        made += 1\n"
                            "    def count(self, more: int) -> list: return [made, more]\n    @staticmethod\n    def fixed() -> int: return 7\n"
                            "    @classmethod\n    def named(cls) -> str: return cls.__name__\ndef before() -> int: return made\n")
        self.assertEqual(worker.call("before")["result"], 0)
        for _ in range(2):
            self.assertEqual(worker.call("Tools.count", {"more": 2})["result"], [1, 2])
        self.assertEqual(worker.call("Tools.fixed")["result"], 7)
        self.assertEqual(worker.call("Tools.named")["result"], "Tools")

    def test_arguments_arrive_as_annotated(self):
        worker = self.worker("from datetime import date\nclass Tools:\n    def year(self, day: date) -> int: return day.year\n")
        self.assertEqual(worker.call("Tools.year", {"day": "2026-01-02"})["result"], 2026)

    def test_a_constructor_that_fails_fails_the_call_alone(self):
        worker = self.worker("tries = 0\nclass Tools:\n    def __init__(self):\n        global tries\n        tries += 1\n"
                            "        if tries == 1: raise ValueError('not yet')\n    def f(self) -> int: return tries\n")
        self.assertIn("not yet", worker.call("Tools.f")["error"]["message"])
        self.assertEqual(worker.call("Tools.f")["result"], 2)

    def test_a_decorated_function_may_take_no_instance(self):
        decorator = "class D:\n    def __init__(self, f): self.func = f\n    def __call__(self, **k): return self.func(**k)\n"
        worker = self.worker(decorator + "class Tools:\n    def __init__(self): raise ValueError('not needed')\n"
                             "    @D\n    def calc(text: str) -> str: return text + '!'\n")
        self.assertEqual(worker.call("Tools.calc", {"text": "a"})["result"], "a!")

    def test_an_instance_of_the_file(self):
        worker = self.worker("class Bank:\n    def __init__(self, money): self.money = money\n    def put(self, amount: int) -> int:\n"
                            "        self.money += amount\n        return self.money\nbank = Bank(5)\n")
        self.assertEqual([worker.call("bank.put", {"amount": 1})["result"] for _ in range(2)], [6, 7])

    def test_what_is_not_there(self):
        worker = self.worker("class Tools: pass\nx = 1\n")
        for name in ("Tools.f", "Tools", "x", "x.real", "y.f", "", "."):
            self.assertEqual(worker.call(name)["error"]["code"], -32601, name)


if __name__ == "__main__":
    unittest.main()
