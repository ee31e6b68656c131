// One TypeScript client against one hostler: `node talk.mjs v1|v2 COMMAND [ARGUMENT …]`. Its results are printed as JSON.

import { connect } from "./connect.mjs";

const [which, command, ...args] = process.argv.slice(2);
const asked = [];

function onElicit(request) {
  asked.push(request.params.message);
  return { action: "accept", content: { name: "Ada", count: 3 } };
}

async function call(client, name, parameters = {}, options = {}) {
  const progress = [];
  const onprogress = (note) => progress.push(note.progress);
  const request = { name, arguments: parameters };
  const result =
    which === "v1" ? await client.callTool(request, undefined, { onprogress }) : await client.callTool(request, { onprogress, ...options });
  return { ...result, progress };
}

const client = await connect(which, command, args, {
  elicit: onElicit,
  sample: () => ({ role: "assistant", model: "m", content: { type: "text", text: "a dot" } }),
  roots: () => ({ roots: [{ uri: "file:///home/me" }] }),
  log: () => {},
});
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
