"""The tool file: what loads, what is a tool, and how a broken one is told."""

import os
import subprocess
import unittest

from harness import LIMIT, PYTHON, ShimTest

NEWER = subprocess.run([PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]).returncode == 0


class Loading(ShimTest):
    def functions(self, source, name="tool.py"):
        return self.start(self.file(source, name)).hello()["result"]["functions"]

    def test_hello(self):
        worker = self.start(self.file("def f(): pass\n"))
        result = worker.hello(secrets=[], host=[])["result"]
        self.assertEqual((result["protocol"], result["pid"], result["functions"]), (1, worker.process.pid, ["f"]))
        self.assertEqual(result["features"], ["cancel", "progress", "output", "describe", "concurrent", "interrupt", "stack", "recall", "sessions"])
        self.assertRegex(result["python"], r"^3\.\d+\.\d+$")

    def test_marked_functions_are_served_whatever_their_names(self):
        source = """
            import functools, hostler
            __all__ = ["tool"]
            def tool(): return [_note("7"), _greet("x")]
            @hostler.resource("notes://{id}", mime_type="image/png")
            def _note(id): return "note " + id
            @hostler.prompt
            def _greet(who): return "Hi " + who
            @hostler.prompt("other", title="Other")
            @functools.lru_cache
            def later(): return 1
            @hostler.resource("raw://x", mime_type="image/png")
            def raw(): return b"x"
            def hidden(): pass
        """
        self.assertEqual(sorted(self.functions(source)), ["_greet", "_note", "later", "raw", "tool"])
        worker = self.worker(source)
        self.assertEqual(worker.call("tool")["result"], ["note 7", "Hi x"], "the decorator returns the function")
        self.assertEqual(worker.call("later")["result"], 1)
        self.assertEqual(worker.call("raw")["result"], {"mime_type": "image/png", "base64": "eA=="})

    def test_a_decorator_without_its_uri_says_what_to_write(self):
        worker = self.start(self.file("import hostler\n@hostler.resource\ndef f(): pass\n"))
        self.assertIn("@hostler.resource", worker.hello()["error"]["message"])

    def test_other_protocol(self):
        worker = self.start(self.file("print('imported')\n"))
        self.fault(worker.hello(protocol=2), -32602, "protocol 1")
        self.assertEqual((worker.process.wait(LIMIT), worker.notes), (1, []))

    @unittest.skipUnless(NEWER, "type parameters are newer than this Python")
    def test_functions_with_type_parameters(self):
        self.assertEqual(self.functions("""
            type Ids[T] = list[T]
            class Box[T]:
                def method(self): pass
            def one[T](x: T) -> T: return x
            async def two[**P](): pass
            def _hidden[T](): pass
        """), ["one", "two"])

    def test_public_functions(self):
        self.assertEqual(self.functions("""
            import functools, json
            from os.path import join
            from dataclasses import dataclass
            def wrap(f):
                @functools.wraps(f)
                def inner(*args, **kwargs): return f(*args, **kwargs)
                return inner
            def bare(f):
                return functools.partial(f)
            def one(): pass
            async def two(): pass
            @functools.lru_cache
            def three(): pass
            @wrap
            def four(): pass
            @bare
            def five(): pass
            def _hidden(): pass
            alias = json.loads
            lam = lambda: 1
            class C:
                def method(self): pass
            if True:
                def six(): pass
        """), ["wrap", "bare", "one", "two", "three", "four", "five", "six"])

    def test_literal_all(self):
        self.assertEqual(self.functions("from os.path import join\n__all__ = ['b', '_c', 'join', 'nothing', 'D']\ndef a(): pass\ndef b(): pass\ndef _c(): pass\nclass D: pass\n"), ["b", "_c"])

    def test_main_block_and_names(self):
        worker = self.worker("import sys\nif __name__ == '__main__': raise SystemExit\ndef f(): return [__name__, sys.modules[__name__].f is f, sys.argv]\n", "json.py")
        name, same, argv = worker.call("f")["result"]
        self.assertEqual((name, same), ("_hostler_tool_json", True))
        self.assertEqual(len(argv), 1)

    def test_a_tool_may_be_called_like_a_module_it_imports(self):
        self.file("real = 1\n", "helper.py")
        worker = self.worker("import fractions, helper\ndef f(): return [str(fractions.Fraction(1, 2)), helper.real]\n", "fractions.py")
        self.assertEqual(worker.call("f")["result"], ["1/2", 1])

    def test_relative_imports_find_the_neighbours(self):
        self.file("count = 0\n", "units.py")
        self.file("x = 2\n", "deeper/more.py")
        worker = self.worker("from . import units\nfrom .units import count\nfrom .deeper.more import x\n"
                             "def f(): return [count, x, units is __import__('sys').modules[__package__ + '.units']]\n")
        self.assertEqual(worker.call("f")["result"], [0, 2, True])

    def test_a_folder_that_is_a_package_has_its_name(self):
        self.file("from .tool import f\nlimit = 3\n", "outer/shop/__init__.py")
        self.file("", "outer/__init__.py")
        self.file("from . import limit\nfrom ..units import unit\nimport outer.units\ntext = [limit, unit, outer.units.unit]\n", "outer/shop/helper.py")
        self.file("unit = 'kg'\n", "outer/units.py")
        worker = self.worker("def f():\n    from .helper import text\n    import outer.shop\n"
                             "    return [__package__, text, outer.shop.f is f]\n", "outer/shop/tool.py")
        self.assertEqual(worker.call("f")["result"], ["outer.shop", [3, "kg", "kg"], True])

    def test_a_package_that_imports_the_tool_file_runs_first(self):
        self.file("from .tool import f\nfrom . import tool\nlimit = 3\n", "shop/__init__.py")
        self.file("x = 2\n", "shop/units.py")
        self.file("x = 'no'\n", "shop/tool/__init__.py")  # Python would prefer it; the tool file is what is listed
        for text in ("from .units import x\n", "from shop.units import x\n", "try:\n    from .units import x\nexcept ImportError:\n    x = 0\n"):
            with self.subTest(text):
                worker = self.worker(text + "runs = globals().get('runs', 0) + 1\ndef f():\n    import shop, sys\n"
                                     "    return [x, runs, shop.f is f, shop.tool is sys.modules[__name__], __name__]\n", "shop/tool.py")
                self.assertEqual(worker.call("f")["result"], [2, 1, True, True, "_hostler_tool_tool"])
                cached = [name for _, _, names in os.walk(self.folder) for name in names if name.startswith("tool.") and name != "tool.py"]
                self.assertEqual(cached, [], "its text is what counts")

    def test_a_package_itself_is_a_tool_file(self):
        self.file("from . import name\nfrom shop import also\nx = [name, also]\n", "shop/units.py")
        for text in ("from .units import x\n", "import shop.units\nfrom shop.units import x\n"):
            with self.subTest(text):
                worker = self.worker("name = also = 'shop'\nruns = globals().get('runs', 0) + 1\n" + text +
                                     "def f():\n    import shop, sys\n    return [x, runs, shop.f is f, __package__, __name__]\n", "shop/__init__.py")
                self.assertEqual(worker.call("f")["result"], [["shop", "shop"], 1, True, "shop", "_hostler_tool___init__"])
        self.file("name = 'shop'\n", "shop/__init__.py")
        worker = self.worker("from . import name\ndef f(): return [name, __package__]\n", "shop/__main__.py")
        self.assertEqual(worker.call("f")["result"], ["shop", "shop"])

    def test_a_package_that_fails_is_not_served_half(self):
        self.file("from .tool import f\nraise ValueError('no shop')\n", "shop/__init__.py")
        self.file("x = 2\n", "shop/units.py")
        worker = self.start(self.file("from .units import x\ndef f(): ...\n", "shop/tool.py"))
        self.fault(worker.hello(), -32010, "ValueError: no shop")

    def test_a_package_that_is_installed_keeps_its_name(self):
        self.file("", "email/__init__.py")
        self.file("unit = 'kg'\n", "email/units.py")
        worker = self.worker("from email.message import EmailMessage\nfrom .units import unit\n"
                             "def f(): return [EmailMessage.__module__, unit]\n", "email/message.py")
        self.assertEqual(worker.call("f")["result"], ["email.message", "kg"])

    def test_a_folder_without_init_has_the_name_that_the_file_imports_from(self):
        self.file("unit = 'kg'\n", "shop/units.py")
        self.file("from shop.deep.tool import x\n", "shop/other.py")
        for text in ("from shop.units import unit\n", "import shop.units\nunit = shop.units.unit\n", "from shop import units\nunit = units.unit\n",
                     "from shop import (\n    units,\n)\nunit = units.unit\n", "from .units import unit\nimport shop.units\n"):
            with self.subTest(text):
                worker = self.worker(text + "def f(): return [unit, __package__]\n", "shop/tool.py")
                self.assertEqual(worker.call("f")["result"], ["kg", "shop"])
        for text in ("import os, shop.units\nunit = shop.units.unit\n", "from shop import (  # ours\n    # all\n    units)\nunit = units.unit\n"):
            worker = self.worker(text + "def f(): return [unit, __package__]\n", "shop/tool.py")
            self.assertEqual(worker.call("f")["result"], ["kg", "shop"], text)
        self.file("from shop.units import unit\n", "shop/sheets.py")
        for text in ("from .sheets import unit\n", "import sheets\nunit = sheets.unit\n", "def g():\n    from .sheets import unit\n    return unit\nunit = g()\n"):
            worker = self.worker(text + "def f(): return unit\n", "shop/tool.py")
            self.assertEqual(worker.call("f")["result"], "kg", "its neighbour is one of that package: " + text)
        self.file("x = 3\n", "shop/deep/more.py")
        worker = self.worker("from shop.units import unit\nfrom deep.more import x\ndef f(): return [unit, x, __package__]\n", "shop/deep/tool.py")
        self.assertEqual(worker.call("f")["result"], ["kg", 3, "shop.deep"])
        worker = self.worker("x = 1\nfrom shop.units import unit\nimport shop.other\ndef f(): return [unit, __package__, shop.other.x]\n", "shop/deep/tool.py")
        self.assertEqual(worker.call("f")["result"], ["kg", "shop.deep", 1])
        worker = self.start(self.file("from shop.nothing import x\n", "shop/tool.py"))
        self.fault(worker.hello(), -32010, "No module named 'shop'")
        self.file("unit = 'kg'\n", "json/units.py")
        worker = self.worker("import json.decoder\nfrom .units import unit\ndef f(): return [unit, json.dumps(1)]\n", "json/tool.py")
        self.assertEqual(worker.call("f")["result"], ["kg", "1"])

    def test_a_function_under_a_condition_says_so(self):
        worker = self.worker("def g(): ...\nif False or g is None:\n    def f(): ...\n")
        self.fault(worker.call("f"), -32601, "line 3 defines it, but it does not exist after the file has run")
        self.fault(worker.call("h"), -32601, "no function h in this tool file; it has: g")

    def test_a_decorator_that_returns_something_else_is_named(self):
        for returned, what in (("None", "None"), ("42", "an object of the type int")):
            with self.subTest(returned):
                worker = self.worker("def register(f): return %s\ndef g(): ...\n@register\ndef f(): ...\n" % returned)
                expected = "line 3 defines it, but the name is %s when the file has run; have its decorator return the function" % what
                self.fault(worker.call("f"), -32601, expected)

    def test_two_dots_lead_to_the_folder_around(self):
        self.file("unit = 'kg'\n", "shared/units.py")
        worker = self.worker("from ..shared.units import unit\ndef f(): return unit\n", "tools/tool.py")
        self.assertEqual(worker.call("f")["result"], "kg")

    def test_encodings_of_source(self):
        for source in ("\ufeffdef f(): return 'ä'\r\n".encode(), "# -*- coding: latin-1 -*-\ndef f(): return 'ä'\n".encode("latin-1")):
            self.assertEqual(self.worker(source).call("f")["result"], "ä")

    def test_dataclasses_and_pickle_find_the_module(self):
        worker = self.worker("from __future__ import annotations\nimport pickle\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
                             "def f(): return pickle.loads(pickle.dumps(P(1)))\n")
        self.assertEqual(worker.call("f")["result"], {"x": 1})


class Processes(ShimTest):
    SOURCE = """
        import multiprocessing, os, sys
        from dataclasses import dataclass
        from . import helper
        @dataclass
        class Point:
            x: int
        def _double(point): return Point(point.x * 2 + helper.more)
        def _initialised(): print("in a child", file=sys.stderr)
        def f(method, argv=None):
            sys.argv = argv or sys.argv
            context = multiprocessing.get_context(method)
            with context.Pool(2, _initialised) as pool:
                return [point.x for point in pool.map(_double, [Point(1), Point(2)])]
        def pooled(method):
            from concurrent.futures import ProcessPoolExecutor
            with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
                return [pool.submit(_double, Point(3)).result().x, __name__]
    """

    def test_children_of_every_kind_find_the_functions(self):
        self.file("more = 0\n", "helper.py")
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                worker = self.worker(self.SOURCE, "json.py")
                self.assertEqual(worker.call("f", {"method": method}).get("result"), [2, 4])
                self.assertEqual(worker.call("pooled", {"method": method})["result"], [6, "_hostler_tool_json"])
                self.assertEqual(worker.call("f", {"method": method, "argv": ["prog", "-v"]})["result"], [2, 4])
                status, err = worker.end()
                self.assertEqual((status, set(err.splitlines())), (0, {"in a child"}))
        left = [name for _, _, names in os.walk(self.folder) for name in names if name.startswith("json")]
        self.assertEqual(left, ["json.py"])


class Broken(ShimTest):
    def broken(self, source, *words):
        path = self.file(source)
        worker = self.start(path)
        error = self.fault(worker.hello(), -32010, *words)
        self.assertEqual(error["data"]["file"], path)
        self.assertEqual(worker.process.wait(LIMIT), 1)
        return error["data"]

    def test_missing_module(self):
        data = self.broken("import os\nimport no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'")
        self.assertEqual((data["type"], data["line"]), ("ModuleNotFoundError", 2))
        self.assertNotIn("hostler_worker", data["traceback"])

    def test_others(self):
        self.assertEqual(self.broken("def f(:\n", "SyntaxError")["line"], 1)
        self.assertEqual(self.broken("x = 1\nraise SystemExit(4)\n", "status 4")["line"], 2)
        self.assertEqual(self.broken("raise KeyboardInterrupt\n", "KeyboardInterrupt")["line"], 1)
        self.assertEqual(self.broken("class B(BaseException):\n    def __str__(self): 1/0\nraise B\n", "B: <its text")["line"], 3)
        self.broken(b"x = \xff\n", "SyntaxError")

    def test_in_a_helper(self):
        self.file("1 / 0\n", "other.py")
        data = self.broken("\n\nimport other\n", "ZeroDivisionError")
        self.assertEqual(data["line"], 3)
        self.assertIn("other.py", data["traceback"])

    def test_missing_file(self):
        worker = self.start(self.folder + "/none.py")
        self.fault(worker.hello(), -32010, "FileNotFoundError")
