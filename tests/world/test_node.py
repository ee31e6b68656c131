"""ES modules: the worker shim for Node, and the tool that `hostler new --kind node` writes.

Needs Node, which `scripts/test world` provides.
"""

import asyncio
import json
import textwrap
import unittest

import test_install
from harness import ROOT, config_file, connected, environment, scratch
from test_executables import listed, script

SHIM = ROOT / "worker-shims" / "node" / "hostler-worker.mjs"
SERVE = '#!/usr/bin/env node\nimport { serve } from "%s";\nserve(import.meta);\n'
MODULE = r'''#!/usr/bin/env node
import { context, serve } from "%s";
serve(import.meta);

console.log("loaded");
export const secrets = ["KEY", "UNSET"];
let count = 0;

/**
 * Count.
 *
 * And say it.
 *
 * @param {number} [by=1] - How much,
 *   at once.
 * @param {"up"|"down"} [way="up"]
 * @param {string[]} [tags]
 * @param {?string} [note]
 * @param {Record<string, boolean>} [marks]
 * @returns {{count: number, pid: number}} How far it is.
 */
export function step({ by = 1 } = {}) {
  count += by;
  return { count, pid: process.pid };
}

/**
 * @param {object} args
 * @param {string} args.text What to say.
 * @param {number} [args.times]
 * @returns {Promise<string>}
 */
export async function say({ text, times = 1 }, { log, progress, signal }) {
  console.log("saying %%s", text);
  process.stderr.write("aside\n");
  log("said", { times });
  progress(1, 2, "half way");
  await null;
  console.log("said");
  return text.repeat(times);
}

export const given = async () => {
  const { config, secrets } = context();
  return [config, secrets.KEY];
};
export const unset = () => context().secrets.UNSET;
export const undeclared = () => context().secrets.OTHER;
export function fail() { throw new RangeError("beyond"); }
export function strange({ what }) {
  return { bigint: { a: [1n] }, nan: [0, NaN], set: { s: new Set() }, nothing: undefined, date: new Date(0) }[what];
}
export async function wait(args, { signal, progress }) {
  progress(0, undefined, `began ${process.pid}`);
  await new Promise((resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}
export function spin() { for (;;); }
export function leave() { process.exit(3); }
export async function crash() { setImmediate(() => { throw new Error("from nowhere"); }); await new Promise(() => {}); }
export async function other() { return context().call("step", { by: 10 }); }
export class NoTool {}
export default function none() {}
'''


class Node(unittest.IsolatedAsyncioTestCase):
    """Modules of functions, by worker-shims/node."""

    def tools(self, text=None):
        tools = scratch(self) / "tools"
        script(tools, "steps.mjs", text or MODULE % SHIM)
        return tools

    def serve(self, config="", **options):
        tools = self.tools()
        config = '[executables]\nschema_timeout = "30s"\n' + config
        return connected(tools, config=config_file(tools.parent, config), **options)

    def odd(self, body, **settings):
        """A hostler with one module, `odd`, of which only what follows its first lines is given."""
        tools = scratch(self) / "tools"
        script(tools, "odd.mjs", SERVE % SHIM + textwrap.dedent(body))
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
        config = f'[executables]\nschema_timeout = "30s"\n[tool.odd]\n{lines}'
        return connected(tools, config=config_file(tools.parent, config))

    async def test_its_exported_functions_are_tools_with_schemas_out_of_jsdoc(self):
        async with self.serve() as hostler:
            await hostler.value("step")  # waits until it was asked
            found = await hostler.tools()
            self.assertEqual(set(found), {"step", "say", "given", "unset", "undeclared", "fail", "strange", "wait", "spin",
                                          "leave", "crash", "other"})
            self.assertEqual(found["step"].description, "Count.\n\nAnd say it.")
            self.assertEqual(found["step"].input_schema, {"type": "object", "additionalProperties": False, "properties": {
                "by": {"type": "number", "default": 1, "description": "How much, at once."},
                "way": {"enum": ["up", "down"], "default": "up"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "marks": {"type": "object", "additionalProperties": {"type": "boolean"}},
            }})
            self.assertEqual(found["say"].input_schema["required"], ["text"])
            self.assertEqual(found["say"].input_schema["properties"]["text"], {"type": "string", "description": "What to say."})
            self.assertIsNotNone(found["say"].output_schema)
            self.assertEqual((await hostler.call("say", txt="a")).code, "INVALID_PARAMS")

    async def test_calls_with_all_that_goes_with_them(self):
        async with self.serve("[tool.steps]\nconfig = { a = 1 }\n", env=environment(KEY="k3y")) as hostler:
            first, second = await hostler.call("step", by=2), await hostler.call("step")
            self.assertEqual((first.value["count"], second.value["count"]), (2, 3))
            self.assertEqual(first.value["pid"], second.worker)
            said = await hostler.call("say", text="ab", times=2)
            self.assertEqual((said.value, said.output), ("abab", "saying ab\naside\nsaid\n"))
            self.assertEqual(await hostler.value("given"), [{"a": 1}, "k3y"])
            failed = await hostler.call("fail")
            self.assertEqual((failed.code, failed.message), ("TOOL_ERROR", "RangeError: beyond"))
            self.assertIn("steps.mjs", failed.details["traceback"])
            unset = await hostler.call("unset")
            self.assertEqual(unset.code, "MISSING_CREDENTIALS")
            self.assertIn("ut it into hostler's environment as UNSET", unset.message)
            undeclared = (await hostler.call("undeclared")).message
            self.assertIn("OTHER is not declared", undeclared)
            self.assertIn('or write `secrets = ["OTHER"]` under [tool.steps] in hostler.toml', undeclared)
            left = await hostler.call("leave")
            self.assertEqual((left.code, left.worker), ("TOOL_ERROR", second.worker))
            self.assertIn("may not use host.call", (await hostler.call("other")).message)

    async def test_results_that_are_no_json_are_told_by_their_place(self):
        async with self.serve() as hostler:
            for what, words in (("bigint", "result.a[0]: bigint"), ("nan", "result[1]: NaN"), ("set", "result.s: Set")):
                answer = await hostler.call("strange", what=what)
                self.assertEqual(answer.code, "INVALID_OUTPUT")
                self.assertIn(words, answer.message)
            self.assertIsNone(await hostler.value("strange", what="nothing"))
            self.assertEqual(await hostler.value("strange", what="date"), "1970-01-01T00:00:00.000Z")

    async def test_cancellation_and_death(self):
        async with self.serve('[tool.steps]\ntimeout = "2s"\n') as hostler:
            task, pid = await hostler.start("wait")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.assertEqual((await hostler.call("step")).worker, pid, "it heard its signal")
            spun = await hostler.call("spin")
            self.assertEqual((spun.code, spun.worker), ("TOOL_TIMEOUT", pid))
            step = await hostler.call("step")
            self.assertEqual(step.value["count"], 1)
            crashed = await hostler.call("crash")
            self.assertEqual((crashed.code, crashed.message, crashed.worker), ("TOOL_ERROR", "Error: from nowhere", step.worker))

    async def test_what_an_answered_call_left_behind_costs_nobody_else_anything(self):
        async with self.odd(r'''
            export function behind({ how }) {
              setTimeout(() => {
                if (how === "exit") process.exit(3);
                if (how === "reject") Promise.reject(new Error("too late"));
                if (how === "throw") throw new Error("too late");
              }, 1);
            }
            export const after = () => new Promise((resolve) => setTimeout(resolve, 50, process.pid));
        ''') as hostler:
            pid = await hostler.value("after")
            for how in ("exit", "reject", "throw"):
                await hostler.value("behind", how=how)
                self.assertEqual(await hostler.value("after"), pid, how)

    async def test_what_is_thrown_and_printed_is_told_whatever_it_is(self):
        async with self.odd(r'''
            import { writeSync } from "node:fs";
            import { spawnSync } from "node:child_process";
            export function toss({ what }) {
              throw { bare: Object.create(null), half: new Error("half \ud800"), nothing: null,
                      evil: Object.defineProperty(new Error(), "message", { get() { throw 1; } }) }[what];
            }
            export function print({ what }) {
              if (what === "apart") process.stdout.write("x".repeat(65535) + "\u{1f600}y");
              if (what === "half") console.log("a\ud800b");
              if (what === "bytes") for (const byte of Buffer.from("\u{1f600}")) process.stdout.write(Buffer.of(byte));
              if (what === "past") writeSync(1, "no line");
              if (what === "child") spawnSync("printf", ["no line"], { stdio: ["ignore", "inherit", "inherit"] });
              return process.pid;
            }
        ''', timeout="20s") as hostler:
            pid = await hostler.value("print", what="")
            for what, words in (("bare", "cannot be told"), ("half", "Error: half \ufffd"), ("nothing", "null"), ("evil", "cannot be told")):
                answer = await hostler.call("toss", what=what)
                self.assertEqual((answer.code, answer.worker), ("TOOL_ERROR", pid), what)
                self.assertIn(words, answer.message)
            for what, said in (("apart", "x" * 65535 + "\U0001f600y"), ("half", "a\ufffdb\n"), ("bytes", "\U0001f600"), ("past", ""), ("child", "")):
                answer = await hostler.call("print", what=what)
                self.assertEqual((answer.value, answer.output), (pid, said), what)

    async def test_what_json_would_empty_is_no_result_and_generators_are_lists(self):
        async with self.odd(r'''
            class Hidden { #x = 1; }
            export const give = ({ what }) => ({
              promise: [Promise.resolve(1)], pattern: /x/, error: new Error("x"), bytes: new Uint8Array(2), buffer: new ArrayBuffer(2),
              hidden: new Hidden(), date: new Date(NaN),
            })[what];
            export const none = () => ({ toJSON() {} });
            export function* some({ to }) { for (let i = 0; i < to; i++) yield i; }
            export async function* later({ to }) { yield* some({ to }); }
        ''') as hostler:
            for what, words in (("promise", "result[0]: Promise"), ("pattern", "result: RegExp"), ("error", "Error"), ("bytes", "Uint8Array"),
                                ("buffer", "ArrayBuffer"), ("hidden", "Hidden"), ("date", "Invalid Date")):
                answer = await hostler.call("give", what=what)
                self.assertEqual(answer.code, "INVALID_OUTPUT", what)
                self.assertIn(words, answer.message)
            self.assertEqual((await hostler.value("some", to=3), await hostler.value("later", to=2)), ([0, 1, 2], [0, 1]))
            self.assertIsNone(await hostler.value("none"))

    async def test_jsdoc_as_people_write_it(self):
        async with self.odd(r'''
            /** Says it, and not what it takes. */
            export function open({ text }) { return text; }
            /** Takes nothing. */
            export function closed() { return 1; }
            /**
             * @param {object} args */
            export function whole(args) { return args; }
            /** @param {string} a - First.
             *  @param {number} b   Second. */
            export function indented({ a, b }) { return [a, b]; }
            /**
             * @param {string} a
             * @param {number} a
             * @param {string - not closed
             * @param
             * @param {string} __proto__
             */
            export function twice({ a }) { return a; }
            /**
             * @param {number} n
             * @param {object[]} rows
             * @param {string} rows[].name
             */
            export function rows({ n, rows }) { return rows[0].name; }
        ''') as hostler:
            self.assertEqual((await hostler.value("open", text="a"), await hostler.value("whole", x=1)), ("a", {"x": 1}))
            found = await hostler.tools()
            nothing = {"type": "object", "properties": {}, "additionalProperties": False}
            self.assertEqual(found["closed"].input_schema, nothing)
            self.assertEqual(found["indented"].input_schema["properties"],
                             {"a": {"type": "string", "description": "First."}, "b": {"type": "number", "description": "Second."}})
            self.assertEqual(found["twice"].input_schema, {**nothing, "properties": {"a": {"type": "number"}}, "required": ["a"]})
            self.assertEqual(found["rows"].input_schema["properties"]["rows"]["items"],
                             {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})

    def test_why_a_module_does_not_say_what_it_is(self):
        head = SERVE % SHIM
        for name, text, words in (("waits", head + "await new Promise(() => {});", "a top-level await is not settled"),
                                  ("fails", head + "throw new Error('no bridge');", "Error: no bridge"),
                                  ("slips", head + "let x = ;", "SyntaxError: Unexpected token ';'"),
                                  ("nameless", head + "export default function () {}", "exports no function with a name of its own")):
            with self.subTest(name):
                tools = scratch(self) / "tools"
                script(tools, f"{name}.mjs", text)
                rows, _ = listed(tools, "--config", config_file(tools.parent, '[executables]\nschema_timeout = "30s"\n'))
                self.assertIn(words, rows[name]["reason"])

    async def test_a_module_that_fails_while_it_waits_is_told_at_once(self):
        body = 'export function odd() {}\nsetTimeout(() => { throw new Error("no bridge"); });\nawait new Promise(() => {});\n'
        async with self.odd(body, protocol="v1", functions=["odd"], startup_timeout="1h") as hostler:
            answer = await hostler.call("odd")
            self.assertEqual(answer.code, "STARTUP_FAILED")
            self.assertIn("Error: no bridge", answer.message)

    async def test_several_at_once_and_calls_of_others(self):
        async with self.serve("[tool.steps]\nconcurrency = 3\nhost_access = true\n") as hostler:
            task, pid = await hostler.start("wait")
            self.assertEqual(await hostler.value("other"), {"count": 10, "pid": pid})
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def test_a_module_may_name_the_shim_as_its_interpreter_and_needs_no_more(self):
        tools = self.tools(f"#!/usr/bin/env -S node {SHIM}\n/** @param {{string}} text */\nexport const shout = ({{ text }}) => text.toUpperCase();\n")
        async with connected(tools, config=config_file(tools.parent, '[executables]\nschema_timeout = "30s"\n')) as hostler:
            self.assertEqual(await hostler.value("shout", text="ab"), "AB")

    async def test_a_module_that_cannot_be_loaded_says_why(self):
        tools = self.tools(MODULE % SHIM + "\nthrow new Error('no bridge');\n")
        config = config_file(tools.parent, '[tool.steps]\nprotocol = "v1"\n[executables]\nschema_timeout = "30s"\n')
        async with connected(tools, config=config) as hostler:
            answer = await hostler.call("steps")
            self.assertEqual(answer.code, "STARTUP_FAILED")
            self.assertIn("steps could not be started: Error: no bridge", answer.message)


class New(test_install.Written):
    """`hostler new --kind node`."""

    def test_an_es_module_works_as_written(self):
        self.works("node", "good-node.mjs")
