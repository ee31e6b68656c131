"""Executables that stay, and Python files that serve themselves: workers that hostler does not bring."""

import asyncio
import json
import os
import signal
import sys
import unittest

import shared_mode
from harness import ROOT, TOOLS, alive, config_file, connected, environment, eventually_async, run, scratch, write_tool
from test_executables import listed, program, script

LEDGER = (TOOLS / "ledger.py").read_text()

# A bare worker. What it does is in its only argument.
BARE = r'''
import json, os, signal, threading, time
count = 0
def say(text):
    os.write(1, (text + "\n").encode())
def answer(result=None, error=None):
    say(json.dumps({"result": result, "error": error}))
for line in sys.stdin:
    asked = json.loads(line)
    kwargs = asked["kwargs"]
    do, count = kwargs.get("do", "count"), count + 1
    if "mark" in kwargs:
        open(kwargs["mark"] + ".new", "w").write(str(os.getpid()))
        os.rename(kwargs["mark"] + ".new", kwargs["mark"])
    if do == "count":
        answer({"pid": os.getpid(), "count": count, "asked": sorted(asked), "function": asked["function"]})
    elif do == "given":
        answer({"config": asked["config"], "secrets": asked["secrets"], "mode": os.environ.get("HOSTLER_TOOL_MODE"),
                "seen": {name: os.environ.get(name) for name in ("KEY", "PLAIN", "OWN", "UV_X")}})
    elif do == "tell":
        say(asked["secrets"]["KEY"])
        answer(error="no access with " + asked["secrets"]["KEY"])
    elif do == "raise":
        answer(error="ValueError: no such bridge")
    elif do == "print":
        say("working on it")
        say("")
        say('{"level": "info"}')
        answer("done")
    elif do == "aside":
        os.write(2, b"aside\n" * kwargs["times"])
        answer("done")
    elif do == "exit":
        os._exit(3)
    elif do == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif do == "hang":
        time.sleep(600)
    elif do == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    elif do == "garbage":
        say("{no json")
    elif do == "deaf":
        os.close(0)
        answer(os.getpid())
        time.sleep(600)
    elif do == "bytes":
        os.write(1, b'{"result": "\xff"}\n')
    elif do == "twice":
        os.write(1, b'{"result": "first"}\n{"result": "second"}\n')
    elif do == "later":
        answer("first")
        time.sleep(0.05)  # the next call is not there yet: the test waits for what hostler says of this
        answer("second")
    elif do == "close":
        os.close(1)
        time.sleep(600)
    elif do == "large":
        say('{"result": "' + "x" * (65 << 20) + '"}')
'''
SCHEMA = {"name": "station", "description": "A bare worker.", "protocol": "bare", "input_schema": {"type": "object"}}


def bare(test, config="", body=BARE, schema=SCHEMA, **options):
    """A hostler with one bare worker, `station`."""
    tools = scratch(test) / "tools"
    program(tools, "station", body, schema)
    return connected(tools, config=config_file(tools.parent, config), **options)


class Bare(unittest.IsolatedAsyncioTestCase):
    async def test_one_process_makes_many_calls_and_is_told_four_things(self):
        async with bare(self) as hostler:
            first, second = await hostler.value("station"), await hostler.call("station")
            self.assertEqual((first["count"], second.value["count"]), (1, 2))
            self.assertEqual(first["pid"], second.value["pid"])
            self.assertEqual(second.worker, first["pid"], "its own pid")
            self.assertFalse(second.metadata["cold"])
            self.assertEqual((first["asked"], first["function"]), (["config", "function", "kwargs", "secrets"], "station"))
        await asyncio.to_thread(shared_mode.end)
        await eventually_async(lambda: not alive(first["pid"]), "it leaves with hostler")

    def test_it_is_listed_as_a_worker_with_the_settings_of_one(self):
        tools = scratch(self) / "tools"
        program(tools, "station", BARE, SCHEMA)
        program(tools, "plain", "", {"name": "plain"})
        rows, _ = listed(tools)
        self.assertEqual({name: (row["kind"], row["status"]) for name, row in rows.items()},
                         {"station": ("worker", "ready"), "plain": ("executable", "ready")})
        shown = run("show", "station", "--tools", tools).stdout
        for words in ("protocol      bare", "idle_timeout", "max_workers"):
            self.assertIn(words, shown)
        for words in ("launcher", "startup_timeout", "host_access"):
            self.assertNotIn(words, shown)

    async def test_a_shell_script_is_enough_and_an_operator_names_its_functions(self):
        tools = scratch(self) / "tools"
        script(tools, "counter", "#!/bin/sh\nwhile read -r line; do n=$((n+1)); echo \"{\\\"result\\\":[$n,$$],\\\"error\\\":null}\"; done\n")
        config = config_file(tools, '[tool.counter]\nprotocol = "bare"\nfunctions = ["up", "again"]\n')
        async with connected(tools, config=config) as hostler:
            first, second = await hostler.value("up", by=1), await hostler.value("again")
            self.assertEqual((first[0], second[0], first[1]), (1, 2, second[1]))
            self.assertEqual(set(await hostler.tools()), {"up", "again"})

    async def test_an_operator_has_it_started_for_each_call_again(self):
        both = ("import json, os, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n"
                "    done = {'pid': os.getpid(), 'by': 'line' if 'function' in asked else 'call'}\n"
                "    print(json.dumps({'result': done, 'error': None} if 'function' in asked else done), flush=True)\n")
        tools = scratch(self) / "tools"
        program(tools, "both", both, {"protocol": "bare"})
        async with connected(tools) as hostler:
            first, second = await hostler.value("both"), await hostler.value("both")
            self.assertEqual(first, {"by": "line", "pid": second["pid"]})
        config = config_file(tools.parent, '[tool.both]\nprotocol = "once"\n')
        async with connected(tools, config=config) as hostler:
            first, second = await hostler.value("both"), await hostler.value("both")
            self.assertEqual((first["by"], first["pid"] == second["pid"]), ("call", False))
        shown = run("show", "both", "--tools", tools, "--config", config).stdout
        self.assertRegex(shown, "protocol +once")
        self.assertNotIn("max_workers", shown)

    async def test_config_and_secrets_come_with_the_call_and_not_with_the_process(self):
        env = environment(KEY="very secret", PLAIN="plain", UV_X="x")
        config = '[tool.station]\nsecrets = ["KEY", "UNSET"]\nconfig = { depth = 3 }\nenv = { OWN = "own" }\n'
        async with bare(self, config, env=env) as hostler:
            given = await hostler.value("station", do="given")
            self.assertEqual((given["config"], given["secrets"], given["mode"]), ({"depth": 3}, {"KEY": "very secret"}, "worker"))
            self.assertEqual(given["seen"], {"KEY": None, "PLAIN": "plain", "OWN": "own", "UV_X": None})
            told = await hostler.call("station", do="tell")
            self.assertEqual(told.code, "TOOL_ERROR")
            self.assertNotIn("very secret", json.dumps(told.outcome) + told.text + hostler.stderr())
            self.assertIn("no access with", told.message)

    async def test_an_executable_asks_for_secrets_in_its_schema(self):
        async with bare(self, schema={**SCHEMA, "secrets": ["KEY"]}, env=environment(KEY="very secret")) as hostler:
            given = await hostler.value("station", do="given")
            self.assertEqual((given["secrets"], given["seen"]["KEY"]), ({"KEY": "very secret"}, None))

    async def test_an_error_is_the_tools_and_other_lines_are_its_output(self):
        async with bare(self) as hostler:
            failed = await hostler.call("station", do="raise")
            self.assertEqual((failed.code, failed.message), ("TOOL_ERROR", "ValueError: no such bridge"))
            printed = await hostler.call("station", do="print")
            self.assertEqual((printed.value, printed.output), ("done", 'working on it\n\n{"level": "info"}\n'))
            self.assertEqual(printed.worker, failed.worker)
            for times in (1, 2, 1000, 20000) * 20:
                self.assertEqual((await hostler.call("station", do="aside", times=times)).output, "aside\n" * times)

    async def test_a_death_is_told_and_the_next_call_has_a_new_process(self):
        async with bare(self) as hostler:
            first = await hostler.value("station")
            for do, code, words in (("exit", "TOOL_CRASHED", "exited with code 3"), ("kill", "PROCESS_KILLED", "SIGKILL")):
                died = await hostler.call("station", do=do)
                self.assertEqual(died.code, code)
                self.assertIn(words, died.message)
                after = await hostler.value("station")
                self.assertEqual(after["count"], 1)
                self.assertNotEqual(after["pid"], first["pid"])

    async def test_an_overdue_call_costs_the_process_and_the_next_works(self):
        async with bare(self, '[tool.station]\ntimeout = "300ms"\n') as hostler:
            for do in ("hang", "stubborn"):
                late = await hostler.call("station", do=do)
                self.assertEqual(late.code, "TOOL_TIMEOUT")
                self.assertIn("its worker was stopped", late.message)
                await eventually_async(lambda: not alive(late.worker), "it is gone")
                self.assertEqual((await hostler.value("station"))["count"], 1)

    async def test_overdue_calls_are_no_reason_to_refuse_calls(self):
        async with bare(self, '[tool.station]\ntimeout = "100ms"\n') as hostler:
            codes = [(await hostler.call("station", do="hang")).code for _ in range(6)]
            self.assertEqual(codes, ["TOOL_TIMEOUT"] * 6)

    async def test_a_cancelled_call_costs_the_process_and_the_next_works(self):
        async with bare(self) as hostler:
            for do in ("hang", "stubborn"):
                mark = scratch(self) / "mark"
                task = asyncio.ensure_future(hostler.call("station", do=do, mark=str(mark)))
                await eventually_async(mark.exists, "it runs")
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                after = await hostler.value("station")
                self.assertEqual(after["count"], 1)
                await eventually_async(lambda: not alive(int(mark.read_text())), "it is gone")

    async def test_wrong_answers(self):
        async with bare(self, '[tool.station]\ntimeout = "1s"\n') as hostler:
            garbage = await hostler.call("station", do="garbage")
            self.assertEqual((garbage.code, garbage.output), ("TOOL_TIMEOUT", "{no json\n"))
            no_text = await hostler.call("station", do="bytes")
            self.assertEqual(no_text.code, "INVALID_OUTPUT")
            self.assertIn("in UTF-8", no_text.message)
            for do in ("twice", "later"):
                first = await hostler.call("station", do=do)
                self.assertEqual(first.value, "first")
                await eventually_async(lambda: hostler.said().count("dropped an answer") == (1 if do == "twice" else 2), do)
                after = await hostler.value("station")
                self.assertEqual(after["pid"], first.worker, "the second is nobody's")
            closed = await hostler.call("station", do="close")
            self.assertEqual(closed.code, "TOOL_CRASHED")
            self.assertIn("closed its connection", closed.message)
            self.assertEqual((await hostler.value("station"))["count"], 1)

    async def test_one_that_closes_its_input_costs_no_time_limit(self):
        async with bare(self, '[tool.station]\ntimeout = "1m"\n') as hostler:
            first = await hostler.value("station", do="deaf")
            deaf = await asyncio.wait_for(hostler.call("station"), 10)
            self.assertEqual(deaf.code, "TOOL_CRASHED")
            self.assertIn("closed its connection", deaf.message)
            await eventually_async(lambda: not alive(first), "it is gone")
            self.assertEqual((await hostler.value("station"))["count"], 1)

    async def test_a_python_file_behind_uv_may_have_exited_or_been_killed(self):
        tools = scratch(self)
        write_tool(tools, "serves", "import os\n\n\ndef f() -> int: ...\n\n\nif __name__ == '__main__':\n    input()\n    os._exit(137)\n")
        config = config_file(tools, '[tool.serves]\nprotocol = "bare"\n')
        async with connected(tools, config=config) as hostler:
            answer = await hostler.call("serves_f")
            self.assertEqual(answer.code, "PROCESS_KILLED")
            self.assertIn("status 137 or SIGKILL", answer.message)

    async def test_a_python_file_behind_uv_that_closes_its_input_costs_no_time_limit(self):
        tools = scratch(self)
        body = "import json, os, sys\nfor line in sys.stdin:\n    print(json.dumps({'result': os.getpid()}), flush=True)\n    if '\"close\":true' in line:\n        os.close(0)\n        import time\n        time.sleep(600)\n"
        write_tool(tools, "serves", "def f(close: bool = False) -> int: ...\n\n\nif __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in body.splitlines()))
        config = config_file(tools, '[tool.serves]\nprotocol = "bare"\ntimeout = "1m"\n')
        async with connected(tools, config=config) as hostler:
            worker = await hostler.value("serves_f", close=True)
            await eventually_async(lambda: not alive(worker), "it is ended, though uv holds its input open")
            await hostler.call("serves_f")  # hostler may not have seen the death yet
            self.assertNotEqual(await hostler.value("serves_f"), worker)

    async def test_an_answer_beyond_the_limit_ends_its_call_and_no_other(self):
        async with bare(self) as hostler:
            large = await hostler.call("station", do="large")
            self.assertEqual(large.code, "INVALID_OUTPUT")
            self.assertEqual((await hostler.value("station"))["pid"], large.worker)

    async def test_one_that_always_dies_at_once_is_not_started_for_ever(self):
        body = "sys.stderr.write('no bridge here\\n')\nsys.exit(4)\n"
        async with bare(self, body=body) as hostler:
            first = await hostler.call("station")
            self.assertEqual((first.code, first.details["exit_code"]), ("STARTUP_FAILED", 4), "it read no call")
            self.assertEqual(first.details["stderr"].strip(), "no bridge here")
            large = await hostler.call("station", text="x" * 300_000)
            self.assertEqual(large.code, "STARTUP_FAILED")
            codes = [await hostler.call("station") for _ in range(5)]
            self.assertIn("was not called: its worker died 5 times in a row", codes[-1].message)

    async def test_one_that_reads_its_first_call_and_dies_has_crashed(self):
        for body in ("sys.stdin.read(1)\nsys.exit(4)\n", "sys.stdin.readline()\nsys.exit(4)\n"):
            async with bare(self, body=body) as hostler:
                self.assertEqual((await hostler.call("station", text="x" * 300_000)).code, "TOOL_CRASHED", body)

    async def test_one_whose_answers_are_none_is_told_what_an_answer_is(self):
        words = 'It has never answered: an answer is one line, `{"result": …, "error": null}`, flushed. Raise its `timeout`'
        async with bare(self, '[tool.station]\ntimeout = "300ms"\n', body="for line in sys.stdin:\n    print('\"done\"', flush=True)\n") as hostler:
            self.assertIn(words, (await hostler.call("station")).message)
        async with bare(self, '[tool.station]\ntimeout = "300ms"\n') as hostler:
            await hostler.value("station")
            self.assertNotIn("It has never answered", (await hostler.call("station", do="garbage")).message)

    async def test_one_that_never_answers_is_stopped(self):
        async with bare(self, '[tool.station]\ntimeout = "300ms"\n', body="import time\ntime.sleep(600)\n") as hostler:
            late = await hostler.call("station", text="x" * (1 << 20))
            self.assertEqual(late.code, "TOOL_TIMEOUT")
            await eventually_async(lambda: not alive(late.worker), "it is gone")

    async def test_the_whole_pool_stands_around_it(self):
        config = '[tool.station]\nmax_workers = 2\nmax_calls = 2\nidle_timeout = "200ms"\n'
        async with bare(self, config) as hostler:
            mark = scratch(self) / "mark"
            task = asyncio.ensure_future(hostler.call("station", do="hang", mark=str(mark)))
            await eventually_async(mark.exists, "it runs")
            pids = [(await hostler.value("station"))["pid"] for _ in range(5)]
            self.assertNotIn(int(mark.read_text()), pids, "another worker makes the calls beside it")
            self.assertGreaterEqual(len(set(pids)), 3, "two calls each")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await eventually_async(lambda: not any(map(alive, pids)), "idle ones leave")

    async def test_it_cannot_be_asked_for_several_at_once(self):
        async with bare(self, "[tool.station]\nconcurrency = 4\n") as hostler:
            refused = await hostler.call("station")
            self.assertEqual(refused.code, "STARTUP_FAILED")
            self.assertIn("set `concurrency = 1`", refused.message)

    async def test_a_changed_file_answers_and_a_running_call_ends_undisturbed(self):
        tools, gate = scratch(self) / "tools", scratch(self) / "gate"
        waits = "\nif True:\n    pass\nfor line in sys.stdin:\n    import json, os\n" \
                "    if json.loads(line)['kwargs'].get('wait'): open(%r).read()\n" \
                "    print(json.dumps({'result': [%r, os.getpid()], 'error': None}), flush=True)\n"
        os.mkfifo(gate)
        program(tools, "station", waits % (str(gate), "old"), SCHEMA)
        async with connected(tools) as hostler:
            old = await hostler.value("station")
            running = asyncio.ensure_future(hostler.call("station", wait=True))
            writer = await asyncio.to_thread(open, gate, "w")
            program(tools, "station", waits % (str(gate), "new"), SCHEMA)
            new = await hostler.value("station")
            self.assertEqual((old[0], new[0]), ("old", "new"))
            writer.close()
            self.assertEqual((await running).value, old)
            await eventually_async(lambda: not alive(old[1]), "the old one leaves")
            (tools / "station").unlink()
            await eventually_async(lambda: not alive(new[1]), "so does one whose file is gone")


class SelfServing(unittest.IsolatedAsyncioTestCase):
    """tests/tools/ledger.py: a Python file with a loop of its own, which nothing was changed in."""

    def tools(self, header=""):
        tools = scratch(self) / "tools"
        tools.mkdir()
        text = LEDGER.replace("# dependencies = []\n", "# dependencies = []\n" + header)
        (tools / "ledger.py").write_text(text)
        return tools

    async def test_the_shim_calls_its_functions_and_leaves_its_loop_alone(self):
        tools = self.tools()
        async with connected(tools) as hostler:
            self.assertEqual(set(await hostler.tools()), {"ledger_book", "ledger_fail", "ledger_given"})
            await hostler.value("ledger_book", amount=2)
            booked = await hostler.value("ledger_book", amount=3)
            self.assertEqual((booked["total"], booked["served_by"]), (5, "an importer"))

    async def test_it_serves_itself_where_the_operator_says_so(self):
        for launcher in ("uv", "direct"):
            with self.subTest(launcher):
                tools = self.tools()
                text = f'[tool.ledger]\nprotocol = "bare"\nlauncher = "{launcher}"\nsecrets = ["KEY"]\nconfig = {{ a = 1 }}\n'
                config, env = config_file(tools.parent, text), environment(KEY="k3y")
                async with connected(tools, config=config, env=env, verbose=True) as hostler:
                    tool = (await hostler.tools())["ledger_book"]
                    self.assertEqual(tool.input_schema["properties"]["amount"]["description"], "How much.")
                    await hostler.value("ledger_book", amount=2)
                    booked = await hostler.call("ledger_book", amount=3)
                    self.assertEqual((booked.value["total"], booked.value["served_by"]), (5, "itself"))
                    self.assertEqual(booked.value["file"], str(tools / "ledger.py"))
                    self.assertEqual(booked.worker, booked.value["pid"], "the interpreter's own pid")
                    self.assertEqual(await hostler.value("ledger_given"), {"config": {"a": 1}, "secrets": ["KEY"]})
                    failed = await hostler.call("ledger_fail", text="oh")
                    self.assertEqual((failed.code, failed.message), ("TOOL_ERROR", "ValueError: oh"))
                    await hostler.kill(booked.worker)
                    again = await hostler.value("ledger_book")
                    self.assertEqual(again["total"], 1)

    async def test_it_serves_itself_where_its_header_says_so(self):
        tools = self.tools('# [tool.hostler]\n# protocol = "bare"\n')
        async with connected(tools) as hostler:
            booked = await hostler.value("ledger_book")
            self.assertEqual(booked["served_by"], "itself")
            fresh = LEDGER.replace("# dependencies = []\n", '# dependencies = []\n# [tool.hostler]\n# protocol = "bare"\n')
            write_tool(tools, "ledger", fresh.replace('"itself"', '"itself, changed"'), header="")
            after = await hostler.value("ledger_book")
            self.assertEqual((after["served_by"], after["total"]), ("itself, changed", 1))
            await eventually_async(lambda: not alive(booked["pid"]), "the old one leaves")
        config = config_file(tools.parent, '[tool.ledger]\nprotocol = "v1"\n')
        async with connected(tools, config=config) as hostler:
            self.assertEqual((await hostler.value("ledger_book"))["served_by"], "an importer", "the operator's word is stronger")

    async def test_how_it_died_is_told_through_its_launcher(self):
        body = ('import json, os, signal, sys\nfrom neighbour import NAME\ndef die(how: int) -> None:\n    os.kill(os.getpid(), how)\n'
                'def near() -> str:\n    return NAME\n'
                'if __name__ == "__main__":\n    for line in sys.stdin:\n        asked = json.loads(line)\n'
                '        print(json.dumps({"result": globals()[asked["function"]](**asked["kwargs"])}))\n')
        tools = scratch(self) / "tools"
        write_tool(tools, "mortal", body, '# /// script\n# [tool.hostler]\n# protocol = "bare"\n# ///\n')
        write_tool(tools, "neighbour", 'NAME = "near"\n', header="")
        async with connected(tools) as hostler:
            self.assertEqual(await hostler.value("mortal_near"), "near", "answers are not kept back, and neighbours are found")
            for how, code in ((signal.SIGKILL, "PROCESS_KILLED"), (signal.SIGSEGV, "TOOL_CRASHED")):
                died = await hostler.call("mortal_die", how=int(how))
                self.assertEqual((died.code, died.details["signal"]), (code, how.name))

    async def test_one_that_cannot_be_loaded_says_why(self):
        tools = scratch(self) / "tools"
        write_tool(tools, "lost", "import nowhere_at_all\ndef f() -> int:\n    return 1\n",
                   '# /// script\n# [tool.hostler]\n# protocol = "bare"\n# ///\n')
        async with connected(tools) as hostler:
            answer = await hostler.call("lost_f")
            self.assertEqual((answer.code, answer.details["exit_code"]), ("STARTUP_FAILED", 1))
            self.assertIn("No module named 'nowhere_at_all'", answer.message)
            self.assertIn("No module named 'nowhere_at_all'", answer.details["stderr"])
            self.assertIn('`# dependencies = ["nowhere_at_all"]`', answer.message)


# The least worker of docs/protocol.md, in plain sh.
LEAST = r"""#!/bin/sh
if [ "$1" = --schema ]; then
    echo '{"name": "clock", "description": "Counts.", "protocol": "v1", "input_schema": {"type": "object"}}'
    exit
fi
while read -r line; do
    id=${line#*'"id":'} id=${id%%,*}
    case $line in
    *'"method":"hello"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocol":1,"pid":'$$'}}' ;;
    *'"kwargs":{"hang":true}'*) exec sleep 600 ;;
    *'"method":"call"'*) n=$((n + 1)); echo '{"jsonrpc":"2.0","id":'"$id"',"result":['$n,$$']}' ;;
    esac
done
"""

# A worker that does all of it, without a shim.
WHOLE = r'''
import json, os, threading, time
out = threading.Lock()
running, gone = {}, set()
def say(**members):
    with out:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\n")
        sys.stdout.flush()
def error(id, code, message, **data):
    say(id=id, error={"code": code, "message": message, "data": data})
def make(id, params):
    do, kwargs = params["function"], params["kwargs"]
    if do == "raise_it":
        error(id, -32000, "LookupError: no such bridge", type="LookupError", traceback="at bridge 7")
    elif do == "given":
        say(id=id, result=[params["config"], params["secrets"], os.environ.get("HOSTLER_TOOL_MODE"), os.environ.get("KEY")])
    elif do == "caller":
        say(id=id, result={name: params["call"][name] for name in ("trace", "tags")})
    elif do == "missing":
        error(id, -32002, "KEY is not set", secret="KEY")
    elif do == "talk":
        say(method="output", params={"id": id, "stream": "stdout", "text": "looking\n"})
        say(method="progress", params={"id": id, "progress": 1, "total": 2, "message": "half way"})
        say(id=id, result="done")
    elif do == "wait":
        say(method="progress", params={"id": id, "progress": 0, "message": "began %d" % os.getpid()})
        while id not in gone:
            time.sleep(0.01)
        error(id, -32003, "the call was cancelled")
    elif do == "ask":
        running["asking"] = id  # before the answer may come
        say(id="w1", method=kwargs.get("method", "host.call"), params={"tool": "given", "arguments": {}, "id": id})
    elif kwargs.get("bare"):
        say(id=id)
    else:
        say(id=id, result={"pid": os.getpid(), "count": make.count})
make.count = 0
for line in sys.stdin:
    frame = json.loads(line)
    method, id, params = frame.get("method"), frame.get("id"), frame.get("params")
    if method == "hello":
        say(id=id, result={"protocol": 1, "pid": os.getpid(), "functions": NAMES, "features": FEATURES})
    elif method == "call":
        make.count += 1
        threading.Thread(target=make, args=(id, params), daemon=True).start()
    elif method == "cancel":
        gone.add(params["id"])
    elif method == "ping":
        say(id=id, result=None)
    elif method == "shutdown":
        sys.exit()
    elif id == "w1":
        say(id=running["asking"], result=frame.get("result") or frame["error"]["message"])
'''
NAMES = ["count", "raise_it", "given", "missing", "talk", "wait", "ask", "caller"]


def whole(test, config="", features=("cancel", "progress", "output", "concurrent"), **options):
    """A hostler with an executable that speaks protocol v1."""
    tools = scratch(test) / "tools"
    schema = [{"name": name, "protocol": "v1", "secrets": ["KEY"], "input_schema": {"type": "object"}} for name in NAMES]
    program(tools, "station", f"NAMES, FEATURES = {NAMES!r}, {list(features)!r}\n" + WHOLE, schema)
    return connected(tools, config=config_file(tools.parent, config), **options)


class Speaking(unittest.IsolatedAsyncioTestCase):
    """Executables on protocol v1."""

    async def test_the_least_worker_of_the_protocols_page_serves(self):
        self.assertTrue(LEAST in (ROOT / "docs" / "protocol.md").read_text(), "the page shows what is tested")
        tools = scratch(self) / "tools"
        script(tools, "clock", LEAST)
        async with connected(tools, config=config_file(tools.parent, '[tool.clock]\ntimeout = "300ms"\n')) as hostler:
            first, second = await hostler.call("clock"), await hostler.call("clock")
            self.assertEqual((first.value[0], second.value[0]), (1, 2))
            self.assertEqual((first.value[1], second.worker), (second.value[1], second.value[1]))
            late = await hostler.call("clock", hang=True)
            self.assertEqual(late.code, "TOOL_TIMEOUT")
            self.assertEqual((await hostler.value("clock"))[0], 1, "one that knows no cancel is replaced")
        rows, _ = listed(tools)
        self.assertEqual(rows["clock"]["kind"], "worker")

    async def test_an_answer_to_a_call_that_nobody_made_is_in_the_log(self):
        tools = scratch(self) / "tools"
        script(tools, "clock", LEAST.replace("""'"$id"',"result":['$n""", """9'"$id"',"result":['$n"""))
        config = config_file(tools.parent, 'log = "info"\n[tool.clock]\ntimeout = "300ms"\n')
        async with connected(tools, config=config) as hostler:
            self.assertEqual((await hostler.call("clock")).code, "TOOL_TIMEOUT")
            self.assertIn("a worker answered a call that it does not hold", hostler.said())

    async def test_an_id_that_comes_back_as_another_kind_of_value(self):
        tools = scratch(self) / "tools"
        floats = LEAST.replace("""'"$id"',""", """'"$id"'.0,""").replace("""1,"pid":'$$'""", """1.0,"pid":'$$'.0""")
        script(tools, "floats", floats)
        script(tools, "texts", LEAST.replace("""'"$id"',"result":['$n""", """"'"$id"'","result":['$n"""))
        async with connected(tools) as hostler:
            self.assertEqual((await hostler.value("floats"))[0], 1)
            wrong = await hostler.call("texts")
            self.assertEqual(wrong.code, "INVALID_OUTPUT")
            self.assertIn("write it as the number in the call", wrong.message)

    async def test_many_calls_by_one_process_with_all_that_goes_with_them(self):
        async with whole(self, "[tool.station]\nconfig = { a = 1 }\n", env=environment(KEY="k3y")) as hostler:
            first, second = await hostler.value("count"), await hostler.call("count")
            self.assertEqual(second.value, {"pid": first["pid"], "count": 2})
            self.assertEqual(await hostler.value("given"), [{"a": 1}, {"KEY": "k3y"}, "worker", None])
            raised = await hostler.call("raise_it")
            self.assertEqual((raised.code, raised.message), ("TOOL_ERROR", "LookupError: no such bridge"))
            self.assertEqual(raised.details["traceback"], "at bridge 7")
            talked = await hostler.call("talk")
            self.assertEqual((talked.value, talked.output), ("done", "looking\n"))
            self.assertIn("has no host access", await hostler.value("ask"))
            self.assertIn("unknown request host.sparkle", await hostler.value("ask", method="host.sparkle"))
            nothing = await hostler.call("count", bare=True)
            self.assertEqual((nothing.code, nothing.worker), ("INVALID_OUTPUT", first["pid"]))
            self.assertIn("neither `result` nor `error`", nothing.message)
        async with whole(self) as hostler:
            self.assertEqual((await hostler.call("missing")).code, "MISSING_CREDENTIALS")

    async def test_the_worker_learns_the_clients_trace_and_tags(self):
        async with whole(self) as hostler:
            self.assertEqual(await hostler.value("caller"), {"trace": None, "tags": []})
            trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
            known = await hostler.call("caller", meta={"traceparent": trace, "hostler/tags": ["night", 'a "b"\n']})
            self.assertEqual(known.value, {"trace": known.result.meta["traceparent"], "tags": ["night", 'a "b"\n']})
            self.assertEqual(known.value["trace"].split("-")[1], trace.split("-")[1])

    async def test_one_that_cancels_keeps_its_process_and_gets_no_signals(self):
        async with whole(self, '[tool.station]\ntimeout = "300ms"\n') as hostler:
            late = await hostler.call("wait")
            self.assertEqual(late.code, "TOOL_TIMEOUT")
            self.assertEqual((await hostler.value("count"))["pid"], late.worker)
        async with whole(self) as hostler:
            task, pid = await hostler.start("wait")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.assertEqual((await hostler.value("count"))["pid"], pid)

    async def test_one_that_does_not_cancel_costs_its_process(self):
        async with whole(self, features=("progress",)) as hostler:
            task, pid = await hostler.start("wait")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.assertNotEqual((await hostler.value("count"))["pid"], pid)

    async def test_several_calls_at_once_and_questions_to_hostler_where_the_operator_allows_them(self):
        config = "[tool.station]\nconcurrency = 4\nhost_access = true\n"
        async with whole(self, config) as hostler:
            task, pid = await hostler.start("wait")
            self.assertEqual((await hostler.value("count"))["pid"], pid, "beside the one that waits")
            self.assertEqual((await hostler.value("ask"))[2], "worker", "it called another function")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        async with whole(self, config, features=("cancel",)) as hostler:
            self.assertIn("set `concurrency = 1`", (await hostler.call("count")).message)

    async def test_one_that_says_no_hello_or_another_is_told(self):
        rows = {
            "silent": ("import time\ntime.sleep(600)\n", "did not answer `hello` within 300ms. Flush"),
            "unflushed": ("sys.stdin.readline()\nprint('{\"id\":0,\"result\":{\"protocol\":1,\"pid\":1}}')\nsys.stdin.read()\n",
                          "Flush its output after each line, do less before it reads the first one, or raise its `startup_timeout` at "),
            "quick": ("sys.stderr.write('no bridge')\nsys.exit(5)\n", "exited with exit status 5 during startup; last line of stderr: no bridge"),
            "newer": ("sys.stdin.readline()\nprint('{\"id\":0,\"result\":{\"protocol\":2,\"pid\":1}}', flush=True)\nsys.stdin.read()\n",
                      "uses protocol v2, hostler uses v1"),
            "liar": ("sys.stdin.readline()\nprint('{\"id\":0,\"result\":{\"protocol\":1,\"pid\":1}}', flush=True)\nsys.stdin.read()\n",
                     "not a process of this worker"),
            "refuses": ("sys.stdin.readline()\nprint('{\"id\":0,\"error\":{\"code\":-32010,\"message\":\"no bridge\"}}', flush=True)\n",
                        "refuses could not be started: no bridge"),
        }
        tools = scratch(self) / "tools"
        for name, (body, _) in rows.items():
            program(tools, name, body, {"protocol": "v1"})
        config = config_file(tools.parent, "".join(f'[tool.{name}]\nstartup_timeout = "300ms"\n' for name in ("silent", "unflushed")))
        async with connected(tools, config=config) as hostler:
            for name, (_, words) in rows.items():
                with self.subTest(name):
                    answer = await hostler.call(name)
                    self.assertEqual(answer.code, "STARTUP_FAILED")
                    self.assertIn(words, answer.message)

    async def test_one_that_cannot_be_run_any_more_is_told_with_what_to_do(self):
        tools = scratch(self) / "tools"
        interpreter = tools.parent / "python"
        interpreter.symlink_to(sys.executable)
        program(tools, "lost", BARE, {"protocol": "bare"}, shebang=f"#!{interpreter}")
        async with connected(tools) as hostler:
            self.assertEqual((await hostler.value("lost"))["count"], 1)
            interpreter.unlink()
            await hostler.call("lost", do="exit")
            answer = await hostler.call("lost")
            self.assertEqual(answer.code, "COMMAND_NOT_FOUND")
            self.assertIn(f"lost could not be started: its first line names {interpreter}, which does not exist", answer.message)

    def test_what_it_says_of_its_protocol_is_looked_at(self):
        tools = scratch(self) / "tools"
        program(tools, "odd", "", {"protocol": "v7"})
        rows, _ = listed(tools)
        self.assertEqual((rows["odd"]["status"], rows["odd"]["kind"]), ("schema-unknown", "executable"))
        self.assertIn('"v7"', rows["odd"]["reason"])
        config = config_file(tools.parent, '[tool.odd]\nprotocol = "v7"\nfunctions = ["a-b"]\n[tool]\nfunctions = ["x"]\n')
        told = run("list", "--tools", tools, "--config", config)
        self.assertEqual(told.returncode, 2)
        for place in ("2: `tool.odd.protocol`", "3: `tool.odd.functions`", "5: `tool.functions`"):
            self.assertIn(f"hostler.toml:{place}", told.stderr)
