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

class Made(ShimTest):
    """Tools that a function makes. A server of no framework stands for those that are."""

    SERVER = ("class Server:\n    def __init__(self): self.held = []\n    def tool(self, f):\n        self.held.append(f)\n        return f\n")

    def test_the_function_is_called_once_by_the_first_call(self):
        worker = self.worker(self.SERVER + "from datetime import date\nimport hostler\nmade = 0\ndef make(step=2):\n    global made\n    made += 1\n"
                             "    server = Server()\n    unit = hostler.config['unit']\n    if True:\n        @server.tool\n"
                             "        def year(day: date) -> str: return unit + str(day.year * step)\n"
                             "        @server.tool\n        async def later(day: date) -> int: return day.day\n    return server\n"
                             "def count() -> int: return made\n")
        config = {"config": {"unit": "y"}}
        self.assertEqual(worker.call("count")["result"], 0)
        for _ in range(2):
            self.assertEqual(worker.call("made:make:year", {"day": "2000-01-02"}, **config)["result"], "y4000")
            self.assertEqual(worker.call("made:make:later", {"day": "2000-01-02"}, **config)["result"], 2)
        self.assertEqual(worker.call("count")["result"], 1)

    def test_one_that_the_file_has_called_is_not_called_again(self):
        worker = self.worker(self.SERVER + "def register(server, by):\n    @server.tool\n    def times(a: int) -> int: return a * by\n"
                             "kept = Server()\nregister(kept, 3)\n")
        self.assertEqual(worker.call("made:register:times", {"a": 2})["result"], 6)

    def test_one_that_needs_a_server_is_given_one(self):
        worker = self.worker("def register(mcp):\n    @mcp.tool(name='x')\n    def one() -> int: return 1\n    @mcp.tool\n"
                             "    def two() -> int: return 2\n    @mcp.custom_route('/health', methods=['GET'])\n    async def health(r): ...\n"
                             "    mcp.settings.port = 3\n")
        self.assertEqual(worker.call("made:register:two")["result"], 2)
        self.assertEqual(worker.call("made:register:one")["result"], 1)

    def test_a_method_of_a_class_is_called_with_an_instance(self):
        text = self.SERVER + ("class App:\n    def __init__(self, unit='m'):\n        self.server, self.unit = Server(), unit%s\n"
                              "    def setup(self):\n        @self.server.tool\n        def long(a: int) -> str: return str(a) + self.unit\n%s")
        for case in (("", ""), ("\n        self.setup()", ""), ("", "app = App('k')\napp.setup()\n")):
            with self.subTest(case):
                worker = self.worker(text % case)
                self.assertEqual(worker.call("made:App.setup:long", {"a": 2})["result"], "2k" if case[1] else "2m")

    def test_what_goes_wrong_in_it_fails_the_call_alone(self):
        worker = self.worker(self.SERVER + "tries = 0\ndef make():\n    global tries\n    tries += 1\n    if tries == 1: raise ValueError('not yet')\n"
                             "    server = Server()\n    if tries > 2:\n        @server.tool\n        def f() -> int: return tries\n    return server\n")
        self.assertIn("not yet", worker.call("made:make:f")["error"]["message"])
        self.assertIn("did not make the tool `f`", worker.call("made:make:f")["error"]["message"])
        self.assertEqual(worker.call("made:make:f")["result"], 3)



if __name__ == "__main__":
    unittest.main()
