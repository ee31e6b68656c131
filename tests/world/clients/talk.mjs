// One TypeScript client against one hostler: `node talk.mjs v1|v2 COMMAND [ARGUMENT …]`. Its results are printed as JSON.

const [which, command, ...args] = process.argv.slice(2);
const asked = [];

function onElicit(request) {
  asked.push(request.params.message);
  return { action: "accept", content: { name: "Ada", count: 3 } };
}

async function connect() {
  const about = { name: `typescript-${which}`, version: "1" };
  const options = { capabilities: { elicitation: {}, sampling: {}, roots: {} } };
  const sample = () => ({ role: "assistant", model: "m", content: { type: "text", text: "a dot" } });
  const roots = () => ({ roots: [{ uri: "file:///home/me" }] });
  if (which === "v1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const types = await import("@modelcontextprotocol/sdk/types.js");
    const client = new Client(about, options);
    client.setRequestHandler(types.ElicitRequestSchema, onElicit);
    client.setRequestHandler(types.CreateMessageRequestSchema, sample);
    client.setRequestHandler(types.ListRootsRequestSchema, roots);
    await client.connect(new StdioClientTransport({ command, args, env: process.env }));
    return client;
  }
  const { Client } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const mode = which === "v2-legacy" ? "legacy" : "auto";
  const client = new Client(about, { ...options, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", onElicit);
  client.setRequestHandler("sampling/createMessage", sample);
  client.setRequestHandler("roots/list", roots);
  await client.connect(new StdioClientTransport({ command, args, env: process.env }));
  return client;
}

async function call(client, name, parameters = {}, options = {}) {
  const progress = [];
  const onprogress = (note) => progress.push(note.progress);
  const request = { name, arguments: parameters };
  const result =
    which === "v1" ? await client.callTool(request, undefined, { onprogress }) : await client.callTool(request, { onprogress, ...options });
  return { ...result, progress };
}

const client = await connect();
const { tools } = await client.listTools();
const text = (result) => result.content.map((block) => block.text ?? "").join("");
const big = await call(client, "real_big", { megabytes: 6 });
const linked = await call(client, "linked_big", { megabytes: 12 });
const link = linked.content.find((block) => block.type === "resource_link");
const said = {
  tools: tools.map((tool) => tool.name),
  add: (await call(client, "real_add", { a: 2, b: 3 })).structuredContent,
  big: { length: text(big).length || JSON.stringify(big.structuredContent).length, isError: big.isError ?? false },
  huge: text(await call(client, "real_big", { megabytes: 12 })).slice(0, 40),
  link: link ? (await client.readResource({ uri: link.uri })).contents[0].text?.length ?? 0 : null,
  steps: (await call(client, "real_steps")).progress,
  order: (await call(client, "real_order")).structuredContent,
  model: text(await call(client, "real_model")),
  roots: (await call(client, "real_roots")).structuredContent,
  wrong: (await call(client, "real_add", { a: "x", b: 3 })).isError,
  after: (await call(client, "real_add", { a: 1, b: 1 })).structuredContent,
  asked,
};
await client.close();
console.log(JSON.stringify(said));
