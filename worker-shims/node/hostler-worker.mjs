// The worker side of hostler's protocol v1 (docs/protocol.md) for ES modules. Node 18 or later, nothing to install.
//
//     #!/usr/bin/env node
//     import { serve } from "./hostler-worker.mjs";
//     serve(import.meta);
//
//     /**
//      * Say something.
//      *
//      * @param {string} text What to say.
//      * @param {number} [times=1] How often.
//      * @returns {string}
//      */
//     export function say({ text, times = 1 }, { log }) {
//       log("saying", { times });
//       return text.repeat(times);
//     }
//
// Exported functions are the tools. Each is called with its arguments by name, and with `{ config, secrets, signal, log,
// progress, call }`, which `context()` gives as well. Without the two lines at its beginning a module can begin with
// `#!/usr/bin/env -S node /path/to/hostler-worker.mjs` instead.

import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync, realpathSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";
import { fileURLToPath, pathToFileURL } from "node:url";

import { schemas } from "./jsdoc.mjs";

const VERSION = 1;
const LONGEST = 64 * 1024 * 1024;
const RAISED = -32000, INVALID_OUTPUT = -32001, MISSING_SECRET = -32002, CANCELLED = -32003, NOT_LOADED = -32010;
const NOT_JSON = -32700, NO_REQUEST = -32600, UNKNOWN = -32601, WRONG_PARAMS = -32602;

const current = new AsyncLocalStorage();

/** What goes with the call that is being made: `{ config, secrets, signal, log, progress, call }`. */
export function context() {
  const call = current.getStore();
  if (!call) throw new Error("context() means something during a call only");
  return call.context;
}

/** Serves the functions that a module exports, if that is the program that was started. To be said at its beginning. */
export function serve(meta) {
  if (isProgram(fileURLToPath(meta.url))) run(fileURLToPath(meta.url), process.argv.slice(2));
}

function isProgram(path) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === realpathSync(path);
}

function run(file, words) {
  const write = process.stdout.write.bind(process.stdout);
  if (words.includes("--schema")) {
    process.stdout.write = process.stderr.write.bind(process.stderr);
    // Not now: the module that says `serve` has to be whole first.
    setImmediate(() => describe(file, write));
  } else {
    new Worker(file, write).listen();
  }
}

async function describe(file, write) {
  const waits = () => writeError("the module waits for something that never comes: a top-level await is not settled\n");
  process.once("exit", waits);
  try {
    const found = await load(file);
    if (found.functions.size === 0) throw new Error("the module exports no function with a name of its own: export function NAME");
    write(JSON.stringify(schemas(found, readFileSync(file, "utf8"))) + "\n", () => process.exit(0));
  } catch (error) {
    writeError(`${traced(error) ?? ""}\n${told(error)}\n`, () => process.exit(1));
  }
  process.off("exit", waits);
}

/** The module's functions by name, and the secrets it asks for. */
async function load(file) {
  const module = await import(pathToFileURL(realpathSync(file)).href);
  const isTool = ([name, value]) =>
    typeof value === "function" && /^[A-Za-z]\w*$/.test(name) && name !== "default" && !/^class\b/.test(String(value));
  return { functions: new Map(Object.entries(module).filter(isTool)), secrets: module.secrets ?? [] };
}

class Refusal extends Error {
  constructor(code, message, data) {
    super(message);
    Object.assign(this, { code, data });
  }
}

class Worker {
  constructor(file, write) {
    Object.assign(this, { file, write, greeted: false, functions: null, concurrency: 1, secrets: [], host: [] });
    this.waiting = [];
    this.running = new Map();
    this.asked = new Map();
    this.asks = 0;
    this.shutdown = undefined;
  }

  listen() {
    this.divert();
    let pieces = [];
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", (text) => {
      const lines = text.split("\n");
      pieces.push(lines[0]);
      for (const rest of lines.slice(1)) {
        this.take(pieces.join(""));
        pieces = [rest];
      }
    });
    process.stdin.on("end", () => {
      if (this.shutdown === undefined) this.exit(0);
    });
  }

  /** What the module prints is output of the call it belongs to, and no frame. A wish to exit is an exception. */
  divert() {
    for (const stream of ["stdout", "stderr"]) {
      const decoder = new StringDecoder("utf8");
      process[stream].write = (chunk, encoding, done) => {
        const id = current.getStore()?.id ?? null;
        const text = typeof chunk === "string" ? chunk : decoder.write(Buffer.from(chunk));
        for (const piece of pieces(text)) this.say({ method: "output", params: { id, stream, text: piece } });
        (typeof encoding === "function" ? encoding : done)?.();
        return true;
      };
    }
    // A module that fails while it is loaded is told so in the answer to hello, which may not have come yet.
    this.trouble = new Promise((_, reject) => { this.early = reject; });
    this.trouble.catch(() => {});
    for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, (error) => this.stray(error));
    this.exit = process.exit.bind(process);
    process.exit = (status) => {
      if (current.getStore()) throw new Error(`the tool asked to exit with status ${status ?? 0}`);
      this.exit(status);
    };
  }

  /**
   * What nobody caught. It is the fault of the call that it came from; of one that is answered already, the others are not to
   * suffer. Where it came from none, the state of the whole module is in doubt.
   */
  stray(error) {
    const call = current.getStore();
    if (!this.functions) return this.early(error);
    if (call && !call.answered) return call.fail(error);
    writeError(`nobody caught ${traced(error) ?? told(error)}\n`);
    if (!call) this.exit(1);
  }

  say(members) {
    this.send(JSON.stringify({ jsonrpc: "2.0", ...members }, (_, value) => (typeof value === "string" ? whole(value) : value)));
  }

  /** A frame, on a line of its own also where a child of the tool left one open. */
  send(frame) {
    this.write(`\n${frame}\n`);
  }

  refuse(id, code, message, data) {
    this.say({ id, error: { code, message, ...(data && { data }) } });
  }

  take(line) {
    if (line.trim() === "") return;
    let frame;
    try {
      frame = JSON.parse(line);
    } catch (error) {
      return this.refuse(null, NOT_JSON, `not JSON: ${error.message}`);
    }
    const { id = null, method, params = {} } = frame ?? {};
    if (typeof method !== "string") return this.answered(id, frame);
    if (method === "hello") return this.hello(id, params);
    if (method === "call") return this.call(id, params);
    if (method === "cancel") return this.cancel(params.id);
    if (method === "ping") return this.say({ id, result: null });
    if (method === "shutdown") {
      this.shutdown = { id };
      return this.next();
    }
    if (id !== null) this.refuse(id, UNKNOWN, `no method ${method}`);
  }

  async hello(id, { protocol, concurrency = 1, secrets = [], host = [] }) {
    if (this.greeted) return this.refuse(id, NO_REQUEST, "a second hello");
    this.greeted = true;
    if (protocol !== VERSION) {
      this.refuse(id, WRONG_PARAMS, `this worker speaks protocol v${VERSION}`);
      return this.exit(1);
    }
    Object.assign(this, { concurrency, secrets, host });
    try {
      const { functions } = await Promise.race([this.trouble, load(this.file)]);
      this.functions = functions;
    } catch (error) {
      this.refuse(id, NOT_LOADED, told(error), { type: typeOf(error), traceback: traced(error) });
      return this.exit(1);
    }
    const features = ["cancel", "progress", "output", "concurrent"];
    const functions = [...this.functions.keys()];
    this.say({ id, result: { protocol: VERSION, pid: process.pid, node: process.versions.node, functions, features } });
    this.next();
  }

  call(id, params) {
    if (!this.greeted) return this.refuse(id, NO_REQUEST, "call before hello");
    this.waiting.push({ id, params, controller: new AbortController() });
    this.next();
  }

  cancel(id) {
    const call = this.running.get(id) ?? this.waiting.find((call) => call.id === id);
    call?.controller.abort(new Refusal(CANCELLED, "the call was cancelled"));
  }

  /** Begins what may begin. */
  next() {
    if (this.greeted && !this.functions) return; // it is being loaded
    while (this.waiting.length > 0 && this.running.size < this.concurrency) {
      const call = this.waiting.shift();
      this.running.set(call.id, call);
      this.make(call).then((answer) => {
        this.running.delete(call.id);
        this.send(answer);
        this.next();
      });
    }
    if (this.shutdown !== undefined && this.running.size === 0 && this.waiting.length === 0) {
      const { id } = this.shutdown;
      if (id !== null) this.say({ id, result: null });
      this.exit(0);
    }
  }

  /** Makes a call; the line to be answered. */
  async make(call) {
    const { id, params, controller: { signal } } = call;
    try {
      if (signal.aborted) throw signal.reason;
      const made = this.functions.get(params.function);
      if (!made) throw new Refusal(UNKNOWN, `no function ${params.function}; there are ${[...this.functions.keys()].join(", ")}`);
      call.context = this.context(call);
      const failed = new Promise((_, reject) => { call.fail = reject; });
      const result = await Promise.race([failed, current.run(call, async () => collected(await made(params.kwargs, call.context), signal))]);
      const text = encoded(result);
      if (Buffer.byteLength(text) > LONGEST - 256) throw new Refusal(INVALID_OUTPUT, "the result is longer than 64 MB");
      return `{"jsonrpc":"2.0","id":${id},"result":${text}}`;
    } catch (error) {
      return JSON.stringify({ jsonrpc: "2.0", id, error: fault(error, signal) }, (_, value) => (typeof value === "string" ? whole(value) : value));
    } finally {
      call.answered = true;
    }
  }

  context({ id, params, controller: { signal } }) {
    const log = (message, fields = {}, level = "info") => {
      const line = { hostler: "log", level, message, fields, call: params.call?.id, time: new Date().toISOString() };
      writeError(JSON.stringify(line) + "\n");
    };
    const progress = (progress, total, message) => this.say({ method: "progress", params: { id, progress, total, message } });
    const call = (tool, args = {}) => this.ask("host.call", { tool, arguments: args, id });
    return { config: params.config ?? {}, secrets: guarded(params.secrets ?? {}, this.secrets), signal, log, progress, call };
  }

  /** A request to hostler. */
  ask(method, params) {
    if (!this.host.includes(method.slice(5))) {
      return Promise.reject(new Error(`this tool may not use ${method}; the operator allows it with host_access = true`));
    }
    const id = `w${++this.asks}`;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      this.say({ id, method, params });
    });
  }

  answered(id, frame) {
    const asked = this.asked.get(id);
    if (!asked) return this.refuse(null, NO_REQUEST, "not a request");
    this.asked.delete(id);
    if (frame.error) asked.reject(Object.assign(new Error(frame.error.message), frame.error.data));
    else asked.resolve(frame.result);
  }
}

const writeError = process.stderr.write.bind(process.stderr);

/** Anything can be thrown, also what cannot be made a text of. */
function told(error) {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    return "something was thrown that cannot be told";
  }
}

function member(error, name) {
  try {
    return typeof error?.[name] === "string" ? error[name] : null;
  } catch {
    return null;
  }
}

const traced = (error) => member(error, "stack");
const typeOf = (error) => member(error, "name") ?? typeof error;

function fault(error, signal) {
  if (error instanceof Refusal) return { code: error.code, message: error.message, data: error.data };
  // What a function throws when it is told to stop is its way of stopping.
  if (signal.aborted) return { code: CANCELLED, message: "the call was cancelled", data: { traceback: traced(error) } };
  return { code: RAISED, message: told(error), data: { type: typeOf(error), traceback: traced(error) } };
}

const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A text without half a surrogate pair, which would spoil its whole frame. */
function whole(text) {
  return text.isWellFormed?.() ? text : text.replace(HALF, "\ufffd");
}

/** A text in pieces of at most 65,536 characters, none of which ends within one. */
function* pieces(text) {
  for (let at = 0; at < text.length; ) {
    const end = at + 65536;
    const splits = end < text.length && /[\ud800-\udbff]/.test(text[end - 1]);
    yield text.slice(at, (at = splits ? end - 1 : end));
  }
}

/** What a generator gives, as a list; anything else as it is. */
async function collected(value, signal) {
  const isGenerator = typeof value?.next === "function" && (value[Symbol.asyncIterator] ?? value[Symbol.iterator]);
  if (!isGenerator) return value;
  const items = [];
  for await (const item of value) {
    if (signal.aborted) throw signal.reason;
    items.push(item);
  }
  return items;
}

/** Secrets that say what is wrong when one is read that is not there. */
function guarded(values, declared) {
  return new Proxy(values, {
    get(values, name) {
      if (typeof name !== "string" || Object.hasOwn(values, name) || name === "toJSON") return values[name];
      if (declared.includes(name)) throw new Refusal(MISSING_SECRET, `the secret ${name} is not set`, { secret: name });
      throw new Refusal(RAISED, `the secret ${name} is not declared: export const secrets = ["${name}"]`, { undeclared: name });
    },
  });
}

/** JSON text, or a refusal that names the place of what is none: JSON.stringify would leave it out, or make it null. */
function encoded(value) {
  const strange = (value, place, above) => {
    if (value instanceof Date && Number.isNaN(value.getTime())) return `${place}: Invalid Date`;
    if (typeof value?.toJSON === "function") return null;
    if (typeof value === "number" && !Number.isFinite(value)) return `${place}: ${value}`;
    if (["bigint", "function", "symbol"].includes(typeof value)) return `${place}: ${typeof value}`;
    if (value === null || typeof value !== "object") return null;
    if (isLost(value)) return `${place}: ${value.constructor?.name ?? "object"}`;
    if (above.includes(value)) return `${place}: an object within itself`;
    const within = [...above, value];
    for (const [key, item] of Object.entries(value)) {
      const found = strange(item, Array.isArray(value) ? `${place}[${key}]` : `${place}.${key}`, within);
      if (found) return found;
    }
    return null;
  };
  const found = strange(value, "result", []);
  if (found) throw new Refusal(INVALID_OUTPUT, `${found} is not JSON`);
  return JSON.stringify(value ?? null) ?? "null";
}

/** Whether JSON.stringify would write down nothing of what an object holds, or something else. */
function isLost(value) {
  if (value instanceof Map || value instanceof Set || value instanceof Error || ArrayBuffer.isView(value)) return true;
  if (Array.isArray(value) || Object.keys(value).length > 0) return false;
  const prototype = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return !isPlain && !(value instanceof Number || value instanceof String || value instanceof Boolean);
}

if (isProgram(fileURLToPath(import.meta.url))) {
  const [file, ...words] = process.argv.slice(2);
  if (file === undefined) {
    process.stderr.write("usage: hostler-worker.mjs MODULE.mjs [--schema]\n");
    process.exit(2);
  }
  run(file, words);
}
