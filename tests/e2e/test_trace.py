"""The trace of a call: from its client through hostler, the tool, what the tool starts and what it calls, and back."""

import json
import unittest

from harness import config_file, connected, environment, run, scratch, write_tool
from test_executables import program

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
STATE = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"

TOOL = '''
import os, subprocess
import hostler

def child():
    show = "echo ${TRACEPARENT-none} ${TRACESTATE-none}"
    return subprocess.run(["/bin/sh", "-c", show], stdout=subprocess.PIPE, text=True).stdout.split()

def seen() -> dict:
    return {"given": dict(hostler.trace), "child": child()}

def outer() -> list:
    return [dict(hostler.trace), hostler.call("inner.seen")]
'''
ENVIRONMENT = ("import json, os\nprint(json.dumps([os.environ.get('TRACEPARENT'), os.environ.get('TRACESTATE')]))\n")


class Traced(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.tools = self.folder / "tools"
        write_tool(self.tools, "one", TOOL, header="")
        write_tool(self.tools, "inner", TOOL)
        program(self.tools, "prog", ENVIRONMENT, {"name": "prog", "description": "Shows.", "parameters": {}})

    def span(self, answer):
        """The span that the result names: one of the client's trace, and new."""
        version, trace, span, flags = answer.result.meta["traceparent"].split("-")
        self.assertEqual((version, trace, flags, len(span)), ("00", TRACE, "01", 16))
        self.assertNotEqual(span, SPAN)
        self.assertEqual(answer.metadata["traceparent"], answer.result.meta["traceparent"])
        return span

    async def test_a_call_is_a_span_of_its_clients_trace_everywhere(self):
        config = config_file(self.folder, '[builtin]\nenable = ["shell"]\nroots = ["."]\n')
        meta = {"traceparent": PARENT, "tracestate": STATE}
        for mode in ("auto", "legacy"):
            async with connected(self.tools, config=config, cwd=self.folder, mode=mode) as hostler:
                first, second = [await hostler.call("one_seen", meta=meta) for _ in range(2)]
                own = f"00-{TRACE}-{self.span(first)}-01"
                self.assertEqual(first.value, {"given": {"traceparent": own, "tracestate": STATE}, "child": [own, STATE]})
                self.assertNotEqual(self.span(first), self.span(second))
                alone = await hostler.call("one_seen", meta={"traceparent": PARENT})
                own = f"00-{TRACE}-{self.span(alone)}-01"
                self.assertEqual(alone.value, {"given": {"traceparent": own}, "child": [own, "none"]})
                ran = await hostler.call("prog", meta=meta)
                self.assertEqual(ran.value, [f"00-{TRACE}-{self.span(ran)}-01", STATE])
                shell = await hostler.call("bash", meta=meta, command="echo $TRACEPARENT $TRACESTATE")
                self.assertIn(f"00-{TRACE}-{self.span(shell)}-01 {STATE}", shell.text)

    async def test_a_call_of_a_tool_is_a_span_within_its_own(self):
        async with connected(self.tools, verbose=True) as hostler:
            answer = await hostler.call("one_outer", meta={"traceparent": PARENT, "tracestate": STATE})
            own, inner = answer.value
            self.assertEqual(own["traceparent"], answer.result.meta["traceparent"])
            self.assertEqual(inner["given"]["tracestate"], STATE)
            _, trace, span, _ = inner["given"]["traceparent"].split("-")
            self.assertEqual((trace, inner["child"][0]), (TRACE, inner["given"]["traceparent"]))
            self.assertNotIn(span, (SPAN, self.span(answer)))

    async def test_without_a_trace_or_with_an_unusable_one_there_is_none(self):
        inherited = {"TRACEPARENT": PARENT.replace("01", "00", 1)}
        async with connected(self.tools, env=environment(**inherited)) as hostler:
            untraced = (await hostler.value("one_seen"))["child"]
            for value in (PARENT.upper(), PARENT + "-x", "00-0-0-01", f"00-{'0' * 32}-{SPAN}-01", "\u0000" * 55, 7, None, "x" * 9999):
                answer = await hostler.call("one_seen", meta={"traceparent": value, "tracestate": STATE})
                self.assertEqual(answer.value, {"given": {}, "child": untraced})
                self.assertNotIn("traceparent", answer.result.meta)
            broken = await hostler.call("one_seen", meta={"traceparent": PARENT, "tracestate": "a=1,=,ü"})
            self.assertEqual(list(broken.value["given"]), ["traceparent"])
            self.span(broken)
            self.assertEqual((await hostler.value("one_seen"))["child"], untraced)

    async def test_of_several_calls_at_once_each_has_its_own(self):
        write_tool(self.tools, "several", TOOL, header='# /// script\n# requires-python = ">=3.9"\n# dependencies = []\n'
                                                       '# [tool.hostler]\n# concurrency = 4\n# ///\n')
        async with connected(self.tools) as hostler:
            for _ in range(3):
                answer = await hostler.call("several_seen", meta={"traceparent": PARENT})
                self.assertEqual(answer.value, {"given": {"traceparent": f"00-{TRACE}-{self.span(answer)}-01"}, "child": ["none", "none"]})

    def test_a_command_is_of_the_trace_that_it_was_started_in(self):
        done = run("call", "one.seen", "--json", "--tools", self.tools, env=environment(TRACEPARENT=PARENT))
        outcome = json.loads(done.stdout)
        own = outcome["metadata"]["traceparent"]
        self.assertEqual(outcome["result"], {"given": {"traceparent": own}, "child": [own, "none"]})
        self.assertEqual((own.split("-")[1], own.split("-")[2] != SPAN), (TRACE, True))


if __name__ == "__main__":
    unittest.main()
