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

    def test_an_instance_that_the_file_made_without_a_name(self):
        worker = self.worker("held = []\nclass Bank:\n    def __init__(self, money, *, key): self.money = money\n    def get(self): return self.money\n"
                            "class Free:\n    def __init__(self, *, money=2): self.money = money\n    def get(self): return self.money\n    def __len__(self): return 0\n"
                            "class Gone:\n    def __init__(self, money): pass\n    def get(self): return 1\n"
                            "    def __len__(self): return 0\nclass Twice(Gone): pass\n"
                            "held += [Bank(5, key=1), Free(money=7), Twice(1), Twice(2)]\nGone(1)\n")
        self.assertEqual([worker.call(name + ".get")["result"] for name in ("held:Bank", "held:Free")], [5, 7])
        self.fault(worker.call("held:Gone.get"), -32000, "nothing holds the `Gone` that the file has made; give the one with the tools a name")
        self.fault(worker.call("held:Twice.get"), -32000, "the file has made 2 instances of `Twice`; give ")

    def test_what_is_not_there(self):
        worker = self.worker("class Tools: pass\nx = 1\n")
        for name in ("Tools.f", "Tools", "x", "x.real", "y.f", "", "."):
            self.assertEqual(worker.call(name)["error"]["code"], -32601, name)


class Given(ShimTest):
    """Parameters that a framework gives; classes of the file stand for those of frameworks."""

    def test_a_default_holds_where_the_settings_give_nothing(self):
        worker = self.worker("from typing import Annotated\nclass InjectedToolArg: pass\nclass Tools:\n"
                             "    def f(self, user: Annotated[str, InjectedToolArg] = 'nobody') -> str: return user\n"
                             "    def g(self, *, user: Annotated[str, InjectedToolArg] = None) -> str: return user\n"
                             "    def h(self, user: Annotated[str, InjectedToolArg()]) -> str: return user\n")
        self.assertEqual([worker.call("Tools." + name)["result"] for name in "fg"], ["nobody", None])
        self.assertEqual([worker.call("Tools." + name, config={"user": "ada"})["result"] for name in "fgh"], ["ada"] * 3)
        self.assertIn("set `user` under `[tool.tool.config]`", worker.call("Tools.h")["error"]["message"])

    def test_what_a_context_has_not_is_an_attribute_error(self):
        worker = self.worker("class Context: __module__ = 'fastmcp.server'\nclass Tools:\n    def f(self, ctx: Context): return ctx.translate\n"
                             "    def h(self, ctx: Context): return ctx.request_context.translate\n"
                             "    def g(self, ctx: Context): return hasattr(ctx, 'translate'), hasattr(ctx.session, 'translate')\n")
        fault = worker.call("Tools.f")["error"]
        self.assertEqual(fault["data"]["type"], "AttributeError")
        self.assertRegex(fault["message"], "^AttributeError: the context that hostler gives has no `translate`; it has: client_id, ")
        self.assertNotIn("_NotThere", fault["data"]["traceback"])
        self.assertEqual(worker.call("Tools.g")["result"], [False, False])
        self.assertRegex(worker.call("Tools.h")["error"]["message"], "request context .* has no `translate`; it has: lifespan_context, meta, ")

    def test_methods_have_the_lifespan_and_the_context_of_their_server(self):
        worker = self.worker("""
            import sys, types
            from contextlib import asynccontextmanager
            from contextvars import ContextVar
            context = ContextVar("context")
            class FastMCP:
                __module__ = "fastmcp"
                @asynccontextmanager
                async def _lifespan(self, server):
                    begun.append(1)
                    yield begun
                def tool(self, function): return function
            sys.modules["fastmcp"] = types.ModuleType("fastmcp")
            sys.modules["fastmcp.server.context"] = types.SimpleNamespace(_current_context=context)
            def get_context(): return context.get()
            begun = []
            mcp = FastMCP()
            class Math:
                factor = 2
                def double(self, x: int): return [x * self.factor, begun]
                def given(self): return get_context().lifespan_context
                async def later(self): return get_context().request_id
            calc = Math()
            mcp.tool(calc.double)
        """)
        self.assertEqual(worker.call("calc.double", {"x": 2})["result"], [4, [1]])
        self.assertEqual(worker.call("calc.given")["result"], [1])
        self.assertEqual(worker.call("Math.later")["result"], "c3")

    def test_a_state_of_agno_is_not_a_copy(self):
        worker = self.worker("import functools\nclass Toolkit: __module__ = 'agno.tools'\ndef checked(function):\n"
                             "    @functools.wraps(function)\n    def call(self, session_state): return function(self, dict(session_state))\n"
                             "    call.raw_function = function\n    return call\nclass Kept:\n    __module__ = 'agno.tools'\n"
                             "    def __init__(self, function): self.entrypoint = checked(function)\nclass Tools(Toolkit):\n    @Kept\n"
                             "    def f(self, session_state: dict) -> int:\n        session_state['n'] = session_state.get('n', 0) + 1\n"
                             "        return session_state['n']\n")
        call = {"call": {"id": "c", "session": "s"}}
        self.assertEqual([worker.call("Tools.f", **call)["result"] for _ in range(2)], [1, 2])
        self.assertEqual(worker.call("Tools.f", call={"id": "c", "session": "t"})["result"], 1)


class Strands(ShimTest):
    """Modules with a `TOOL_SPEC`."""

    def test_the_function_takes_a_request(self):
        worker = self.worker("TOOL_SPEC = {'name': 'f'}\ndef f(tool, **kwargs):\n    if tool['input'].get('fail'):\n"
                             "        return {'status': 'error', 'content': [{'text': 'it failed'}]}\n"
                             "    return {'toolUseId': tool['toolUseId'], 'status': 'success', 'content': [{'text': tool['name']}, {'json': tool['input']}]}\n"
                             "async def g(tool): return {'status': 'success', 'content': [{'json': tool['input']}]}\n")
        self.assertEqual(worker.call("tool_spec:f", {"a": 1})["result"], ["f", {"a": 1}])
        self.assertEqual(worker.call("tool_spec:g", {"a": 1})["result"], {"a": 1})
        self.assertIn("it failed", worker.call("tool_spec:f", {"fail": True})["error"]["message"])


class Made(ShimTest):
    """Tools that a function makes. A server of no framework stands for those that are."""

    SERVER = ("class Server:\n    def __init__(self): self.held = []\n    def tool(self, f):\n        self.held.append(f)\n        return f\n")

    def serving(self, text, maker):
        """A worker with this file, and what calls a tool of the maker by its name or by the line of its first decorator."""
        worker = self.worker(text)
        lines = text.splitlines()

        def call(name, arguments=None, line=None, **params):
            if line is None:
                line = next(number for number, one in enumerate(lines, 1) if "def %s(" % name.lstrip(".") in one)
                while lines[line - 2].lstrip().startswith("@"):
                    line -= 1
            return worker.call("made:%s:%d:%s" % (maker, line, name), arguments, **params)

        return worker, call

    def test_the_function_is_called_once_by_the_first_call(self):
        text = (
            self.SERVER + "from datetime import date\nimport hostler\nmade = 0\ndef make(step=2):\n    global made\n    made += 1\n"
            "    server = Server()\n    unit = hostler.config['unit']\n    class Other:\n        def year(self, day): ...\n    if True:\n"
            "        @server.tool\n        def year(day: date) -> str: return unit + str(day.year * step)\n"
            "        @server.tool\n        async def later(day: date) -> int: return day.day\n    return server\n"
            "def count() -> int: return made\n")
        worker, call = self.serving(text, "make")
        year = 1 + text[:text.index("@server.tool")].count("\n")
        self.assertEqual(worker.call("count")["result"], 0)
        config = {"config": {"unit": "y"}}
        for _ in range(2):
            self.assertEqual(call("year", {"day": "2000-01-02"}, year, **config)["result"], "y4000", "not the method of that name")
            self.assertEqual(call("later", {"day": "2000-01-02"}, **config)["result"], 2)
        self.assertEqual(worker.call("count")["result"], 1)

    def test_two_tools_of_one_name_are_both_called(self):
        _, call = self.serving(self.SERVER + "def make():\n    server = Server()\n    @server.tool\n    def f() -> int: return 1\n"
                               "    @server.tool\n    def f() -> int: return 2\n    return server\n", "make")
        first = len(self.SERVER.splitlines()) + 3
        self.assertEqual([call("f", line=line)["result"] for line in (first, first + 2)], [1, 2])
        self.assertIn("not what the file defines", call("f", line=1)["error"]["message"])

    def test_one_branch_or_the_other_makes_a_tool(self):
        _, call = self.serving(self.SERVER + "def make():\n    server = Server()\n    if not server:\n        @server.tool\n        def f() -> int: return 1\n"
                               "    else:\n        @server.tool\n        def f() -> int: return 2\n    return server\n", "make")
        self.assertEqual(call("f", line=len(self.SERVER.splitlines()) + 4)["result"], 2)

    def test_one_that_the_file_has_called_is_not_called_again(self):
        text = self.SERVER + "def register(server, by):\n    @server.tool\n    def times(a: int) -> int: return a * by\nkept = Server()\n"
        _, call = self.serving(text + "register(kept, 3)\n", "register")
        self.assertEqual(call("times", {"a": 2})["result"], 6)
        _, call = self.serving(text + "register(kept, 3)\nregister(kept, 4)\n", "register")
        self.assertIn("2 times", call("times", {"a": 2})["error"]["message"])

    def test_decorators_of_the_author_are_part_of_a_tool(self):
        text = self.SERVER + (
            "from functools import partial, wraps\ndef bare(f):\n    def inner(a): return 'bare ' + f(a)\n    return inner\n"
            "def whole(f):\n    @wraps(f)\n    def inner(*args, **kwargs): return 'whole ' + f(*args, **kwargs)\n    return inner\n"
            "class Kept:\n    def __init__(self, f): self.f = f\n    def __call__(self, a): return 'kept ' + self.f(a)\n"
            "class Held:\n    def __init__(self, f): self.f = f\n    def run(self, a): return 'held ' + self.f(a)\n"
            "def check(f, a): return 'partial ' + f(a)\n"
            "class Limit:\n    def __call__(self, f):\n        self.last = f\n        @wraps(f)\n        def inner(a):\n            self.count = 1\n            return 'limit ' + f(a)\n"
            "        return inner\nlimit = Limit()\n"
            "def make():\n    server = Server()\n    @server.tool\n    def zero(a: str): return one(a) + two(a)\n    def local(one):\n        def inner(a): return 'local ' + one(a)\n        return inner\n"
            "    @server.tool\n    @bare\n    def one(a: str): return a\n    @server.tool\n    @whole\n    @bare\n    def two(a: str): return a\n"
            "    @server.tool\n    @Kept\n    def three(a: str): return a\n    @server.tool\n    @local\n    def four(a: str): return a\n"
            "    @server.tool\n    def five(a: str): return one(a)\n    @server.tool\n    def six(a: str): return a + five.__name__\n"
            "    @server.tool\n    @lambda f: partial(check, f)\n    def seven(a: str): return a\n"
            "    @server.tool\n    @lambda f: Held(f).run\n    def eight(a: str): return a\n"
            "    @server.tool\n    @limit\n    def ten(a: str): return a + '10'\n    @server.tool\n    @bare\n    @limit\n    def eleven(a: str): return a + '11'\n"
            "    @server.tool\n    @lambda f: [f, lambda a: 'one of ' + f(a)][1]\n    def nine(a: str): return a\n"
            "    return server\n")
        worker, call = self.serving(text, "make")
        expected = {"zero": "bare xwhole bare x", "one": "bare x", "two": "whole bare x", "three": "kept x", "four": "local x", "five": "bare x",
                    "six": "xfive", "ten": "limit x10", "eleven": "bare limit x11", "seven": "partial x", "eight": "held x", "nine": "one of x"}
        self.assertEqual({name: call(name, {"a": "x"})["result"] for name in reversed(expected)}, expected)
        registers = text.replace("def make():\n    server = Server()\n", "def make(server):\n").replace("    return server\n", "")
        worker, call = self.serving(registers, "make")
        self.assertEqual({name: call(name, {"a": "x"})["result"] for name in expected}, expected)
        hidden = text.replace("    return server\n", "    def run(): return server\n    return run\n")  # where nothing of a framework is found
        worker, call = self.serving(hidden, "make")
        self.assertEqual([call(name, {"a": "x"})["result"] for name in ("one", "two", "five")], ["bare x", "whole bare x", "bare x"])

    def test_one_that_another_maker_calls_again_keeps_its_tools(self):
        text = ("made = 0\ndef register(mcp):\n    global made\n    made += 1\n    own = made\n    @mcp.tool\n    def one() -> int: return own\n"
                "    @mcp.tool\n    def two() -> int: return own\ndef make():\n    class Server:\n        held = []\n"
                "        def tool(self, f):\n            self.held.append(f)\n            return f\n    mcp = Server()\n    @mcp.tool\n"
                "    def three() -> int: return made\n    register(mcp)\n    return mcp\n")
        worker, call = self.serving(text, "register")
        three = 1 + text[:text.index("@mcp.tool\n    def three")].count("\n")
        self.assertEqual(call("one")["result"], 1)
        self.assertEqual(worker.call("made:make:%d:three" % three)["result"], 2)
        self.assertEqual(call("two")["result"], 1)

    def test_one_that_needs_a_server_is_given_one(self):
        _, call = self.serving("def register(mcp):\n    @mcp.tool(name='x')\n    def one() -> int: return 1\n    @mcp.tool\n"
                               "    def two() -> int: return 2\n    @mcp.custom_route('/health', methods=['GET'])\n    async def health(r): ...\n"
                               "    mcp.settings.port = 3\n", "register")
        self.assertEqual(call("two")["result"], 2)
        self.assertEqual(call("one")["result"], 1)

    def test_a_method_that_a_class_gives_a_server(self):
        text = self.SERVER + ("server = Server()\nclass App:\n    tries = 0\n    def __init__(self): self.kept = self.get\n    def setup(self):\n"
                              "        App.tries += 1\n        server.tool(self.get)\n        if App.tries == 1: raise ValueError('not yet')\n"
                              "        server.tool(self.other)\n    def get(self, a: int) -> int: return a + App.tries\n    def other(self): return 'x'\n")
        _, call = self.serving(text, "App.setup")
        self.assertIn("not yet", call(".get", {"a": 1})["error"]["message"])
        self.assertEqual([call(".get", {"a": 1})["result"] for _ in range(2)], [3, 3], "it is tried again")
        self.assertEqual(call(".other")["result"], "x")

    def test_a_method_of_a_class_is_called_with_an_instance(self):
        text = self.SERVER + ("class App:\n    def __init__(self, unit='m'):\n        self.server, self.unit = Server(), unit%s\n"
                              "    def setup(self):\n        @self.server.tool\n        def long(a: int) -> str: return str(a) + self.unit\n%s")
        for case in (("", ""), ("\n        self.setup()", ""), ("", "app = App('k')\napp.setup()\n"), ("", "app = App('k')\n")):
            with self.subTest(case):
                _, call = self.serving(text % case, "App.setup")
                self.assertEqual(call("long", {"a": 2})["result"], "2k" if case[1] else "2m")

    def test_what_goes_wrong_in_it_fails_the_call_alone(self):
        _, call = self.serving(self.SERVER + "tries, held = 0, []\ndef make():\n    global tries\n    tries += 1\n    server = Server()\n"
                               "    held.append(server)\n    @server.tool\n    def f() -> int: return tries\n"
                               "    if tries < 3: raise ValueError('not yet')\n    return server\n", "make")
        for _ in range(2):
            self.assertIn("not yet", call("f")["error"]["message"], "what is half made is not served")
        self.assertEqual(call("f")["result"], 3)
        _, call = self.serving(self.SERVER + "def make():\n    server = Server()\n    if not server:\n        @server.tool\n"
                               "        def f(): ...\n    return server\n", "make")
        self.assertIn("under other conditions", call("f")["error"]["message"])

    def test_one_that_the_file_calls_with_what_it_needs_is_not_called(self):
        text = ("def register(server, client):\n    @server.tool\n    def f() -> str: return client\nmcp, held = Server(), []\n"
                "def build():\n    register(mcp, 'c')\n    return mcp\n%s")
        for calls, symbol, expected in (
            ("register(mcp, 'top')\n", "made:>register", "top"),
            ("register(mcp, 'a')\nregister(mcp, 'b')\n", "made:>register", "2 times"),
            ("", "made:>register", "not called while the file was loaded"),
            ("", "made:tool.py/build>register", "c"),
            ("def build(): ...\n", "made:tool.py/build>register", "`build` did not call `register`"),
            ("def build(): raise KeyError('no key')\n", "made:tool.py/build>register", "no key"),
        ):
            with self.subTest(calls + symbol):
                server = "class Server:\n    held = []\n    def tool(self, f):\n        self.held.append(f)\n        return f\n"
                worker, _ = self.serving(server + text % calls, "register")
                answer = worker.call("%s:7:f" % symbol)
                self.assertIn(expected, str(answer.get("result") or answer["error"]))

    def test_a_server_that_a_loop_runs_is_not_run(self):
        fake = ("import sys, types\nimport asyncio\nran = []\nclass FastMCP:\n    def __init__(self): self.held = []\n    def tool(self, f):\n"
                "        self.held.append(f)\n        return f\n    async def run_async(self): ran.append(self)\n"
                "FastMCP.__module__ = 'fastmcp'\nsys.modules['fastmcp'] = types.SimpleNamespace(FastMCP=FastMCP)\n"
                "def main():\n    mcp = FastMCP()\n    @mcp.tool\n    def f() -> int: return len(ran)\n    asyncio.run(mcp.run_async())\n")
        _, call = self.serving(fake, "main")
        self.assertEqual(call("f")["result"], 0)

    def test_a_server_is_not_run(self):
        fake = ("import sys, types\nimport threading\nran = []\nclass FastMCP:\n    def __init__(self): self.held = []\n    def tool(self, f):\n"
                "        self.held.append(f)\n        return f\n    def run(self): ran.append(self)\n"
                "FastMCP.__module__ = 'fastmcp'\nsys.modules['fastmcp'] = types.SimpleNamespace(FastMCP=FastMCP)\n"
                "def main():\n    mcp = FastMCP()\n    @mcp.tool\n    def f() -> int: return len(ran)\n"
                "    other = threading.Thread(target=FastMCP().run)\n    other.start()\n    other.join()\n    mcp.run()\n    mcp.held = None\n"
                "def go() -> int:\n    FastMCP().run()\n    return len(ran)\n")
        worker, call = self.serving(fake, "main")
        self.assertEqual(call("f")["result"], 1, "that of another thread ran")
        self.assertEqual(worker.call("go")["result"], 2, "and a later one does")


if __name__ == "__main__":
    unittest.main()
