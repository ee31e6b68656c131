// Clients of both SDKs beside each other: `node neighbours.mjs COMMAND [ARGUMENT …]`. What each got is printed as JSON.

import { connect } from "./connect.mjs";

const [command, ...args] = process.argv.slice(2);
const got = {};

async function begin(which) {
  const heard = [];
  const said = (got[which] = { heard });
  const handlers = {
    elicit: () => ({ action: "decline" }),
    sample: (request) => {
      heard.push(["model", request.params.messages[0].content.text]);
      return { role: "assistant", model: "m", content: { type: "text", text: which } };
    },
    roots: () => ({ roots: [{ uri: `file:///home/${which}` }] }),
    log: (note) => heard.push(["log", note.params.data.message]),
  };
  const client = await connect(which, command, args, handlers, { ...process.env, KEY: `key of ${which}` });
  if (which === "v1") await client.setLoggingLevel("warning");
  const _meta = which === "v1" ? undefined : { "io.modelcontextprotocol/logLevel": "warning" };
  const call = async (name, parameters = {}, options = undefined) => {
    const request = { name, arguments: parameters, _meta };
    const result = which === "v1" ? await client.callTool(request, undefined, options) : await client.callTool(request, options);
    return result.structuredContent?.result;
  };
  return { client, call, said };
}

const [old, later] = [await begin("v1"), await begin("v2")];
for (const { said, call } of [old, later]) {
  const name = said === got.v1 ? "v1" : "v2";
  said.say = await call("talk_say", { word: `of ${name}` });
  said.think = await call("talk_think", { word: `to ${name}` });
  said.key = await call("secret_key");
}
// The end of one client's call is not the other's.
const ends = new AbortController();
const began = new Promise((resolve) => {
  old.waiting = old.call("talk_wait", {}, { signal: ends.signal, onprogress: resolve }).catch((error) => error.name);
});
await began;
ends.abort();
await old.waiting;
later.said.again = await later.call("talk_say", { word: "again" });
await Promise.all([old.client.close(), later.client.close()]);
console.log(JSON.stringify(got));
